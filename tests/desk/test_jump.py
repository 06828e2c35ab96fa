"""The jump box: everything is found by its words, in bounded time, and nothing that the gate found is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from alphaloom.desk.web import Desk, jump
from alphaloom.ledger import Attempt, Evaluation, Run
from alphaloom.news import NEWS_FOLDER, NewsItem, NewsStore, Provenance
from alphaloom.news.screening.injection.detector import Sign

from .workspace import CASE, CHILD, LEAK, NOON, SCRIPT, lay


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    lay(tmp_path)
    desk = Desk(tmp_path, lambda: NOON)
    with desk.open() as ledger:
        ledger.runs.start(Run("book-global", {"book": {}}, 1, "d", NOON.isoformat()))
        for number in range(12):
            factor = f"fd{number:015x}"
            text = f"rank(volume / {number})"
            ledger.evaluations.add(Evaluation("r1", factor, text, "r01/h00", {"t": 1.0, "rank_ic": 0.01}))
            ledger.attempts.add(Attempt("r1", f"a{number}", "r01/h00", text, factor, "scored", "close"))
            ledger.attempts.add(Attempt("r1", f"b{number}", "r01/h00", text, None, "parse", "close"))
    return desk


def find(client: TestClient, words: str) -> dict[str, list[str]]:
    """Return the pages that words lead to, by kind."""
    page = client.get("/jump.json", params={"q": words}).json()
    return {group["kind"]: [hit["href"] for hit in group["hits"]] for group in page["groups"]}


def test_everything_is_found_by_its_words_and_leads_to_its_page(client: TestClient) -> None:
    assert find(client, "R1")["Campaigns"] == ["/runs/r1"]
    assert find(client, "global") == {"Books": ["/books/global"]}
    assert find(client, "alert")["Library"] == [f"/library/{LEAK}"]
    assert find(client, LEAK[:6])["Factors by id"] == [f"/runs/r1/factors/{LEAK}"]
    assert find(client, "inb") == {"Pages": ["/inbox"]}
    assert find(client, "VOLUME 11") == {"Formulas": ["/runs/r1/factors/fd00000000000000b"]}
    (hypothesis,) = find(client, "script onerror")["Hypotheses"]
    assert client.get(f"/runs/r1.json?{hypothesis.partition('?')[2]}").json()["matches"] == 14
    assert find(client, "close") == {}, "why a formula was refused is no formula"
    for words in ("100%", "_", '"text"', "", "   "):
        assert client.get("/jump", params={"q": words}).status_code == 200


def test_texts_are_found_held_back_or_not(desk: Desk, client: TestClient) -> None:
    known, place = datetime(2026, 1, 3, tzinfo=UTC), Provenance("a", 1, "0")
    read = NewsItem("wire", "", (), "Zinc falls", SCRIPT, known, known, "news", place, 0.5)
    held = replace(read, title="Zinc rises", flags=(Sign("order", 9.0, SCRIPT),))
    with NewsStore(desk.workspace / NEWS_FOLDER) as store:
        store.put([read, held])
    assert find(client, "zinc falls") == {"Texts": [f"/texts/{read.id}"]}
    assert find(client, "Zinc") == {"Texts": [f"/texts/{read.id}", f"/texts/{held.id}"]}


def test_more_hits_than_are_shown_and_what_was_not_searched_are_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(words: str) -> Any:
        return client.get("/jump.json", params={"q": words}).json()

    (formulas,) = (group for group in ask("volume")["groups"] if group["kind"] == "Formulas")
    assert (len(formulas["hits"]), formulas["more"]) == (jump.HITS_SHOWN, True)
    assert "There are more" in client.get("/jump?q=volume").text
    assert not ask("volume")["notes"]
    monkeypatch.setattr(jump, "HYPOTHESIS_SECONDS", -1.0)
    monkeypatch.setattr(jump, "JUMP_SECONDS", -1.0)
    monkeypatch.setattr(jump, "ATTEMPTS_READ", 4)
    assert ask("unheard")["notes"] == [
        "Not all ids were searched: only those of the newest 0 of 2 runs.",
        "Not all hypotheses were searched: only those of the newest 0 of 1 campaigns.",
        "Not all formulas were searched: only those of the newest 4 of 26 proposals.",
    ]


def test_nothing_that_the_gate_found_is_told(desk: Desk, client: TestClient) -> None:
    (desk.workspace / "policy.yaml").write_text("judge_blind: true\n")
    for words in ("alert", "rank", CASE[:6], CHILD, "f"):
        text = client.get("/jump.json", params={"q": words}).text.replace(SCRIPT, "")
        for word in ("accepted", "awaiting", "rejected", "RankIC", "selection", "0.2"):
            assert word not in text, (words, word)
    hits = find(client, "accepted")
    assert hits == {}
    page = client.get("/jump", params={"q": "script"})
    assert "<script>alert" not in page.text
    assert page.text.count("&lt;script&gt;") >= 3
