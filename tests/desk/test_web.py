"""The desk in a browser: who may open it, what waits, and what a decision leaves on record."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.report.report import REPORT_MARK
from alphaloom.desk.web import Desk, Sessions, build_app, what_if
from alphaloom.desk.web.review.inbox import Inbox, Waiting
from alphaloom.evaluation import Reviews, SearchBench
from alphaloom.evidence import Window
from alphaloom.ledger import Evaluation, VerdictRow
from alphaloom.search import SearchConstraints

from ..evidence.lab import SMALL, market
from . import example
from .workspace import CASE, CHILD, HERE, LEAK, NOON, SAME, SCRIPT, lay, lay_seal


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    lay(tmp_path)
    return Desk(tmp_path, lambda: NOON)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> SearchBench:
    """Return the open market of every run: a small one, of which the last days are dropped."""
    panel = market()
    days = [str(day) for day in panel.dates]
    made = SearchBench.cut(panel, Window("search", 0, 210, days[0], days[209]), SMALL, SearchConstraints())
    monkeypatch.setattr(what_if, "open_bench", lambda *_: made)
    return made


def test_a_launch_address_opens_once_in_time_and_survives_a_restart(tmp_path: Path) -> None:
    now = [NOON]
    sessions = Sessions(tmp_path, lambda: now[0])
    launch, late = sessions.issue_launch("ada"), sessions.issue_launch("ada")
    secret = sessions.enter(launch)
    assert secret
    assert sessions.enter(launch) is None
    assert sessions.enter("x") is None
    found = Sessions(tmp_path, lambda: now[0]).find(secret)
    assert found
    assert found.person == "ada"
    kept = (tmp_path / "desk" / "sessions.json").read_text()
    assert secret not in kept
    assert launch not in kept
    now[0] += timedelta(minutes=11)
    assert sessions.enter(late) is None
    now[0] += timedelta(hours=12)
    assert sessions.find(secret) is None


def test_commands_that_pages_name_work_on_the_workspace_that_is_open(desk: Desk, client: TestClient) -> None:
    for place, command in {
        "/books": "book open NAME",
        "/record": "audit verify",
        "/runs/r1/models": "models spend r1",
    }.items():
        assert f"<code>alphaloom {command} --workspace {desk.workspace}</code>" in client.get(place).text


def test_without_a_session_no_page_and_no_change_is_answered(desk: Desk) -> None:
    stranger = TestClient(build_app(desk), base_url=HERE, follow_redirects=False, cookies={desk.cookie: "forged"})
    for place in (
        "/inbox",
        "/inbox.json",
        "/runs",
        "/runs/r1",
        "/runs/r1/live",
        "/library",
        "/books",
        f"/runs/r1/cases/{CASE}",
        f"/runs/r1/factors/{CHILD}",
        f"/runs/r1/what-if/{CHILD}",
        "/compare",
    ):
        answer = stranger.get(place)
        assert answer.status_code == 401, place
        assert CASE not in answer.text
    assert stranger.post(f"/runs/r1/cases/{CASE}", headers=SAME, data={"choice": "approve"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:8000"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({}, 403),
        ({**SAME, "content-length": "999999"}, 413),
    ],
)
def test_changes_from_elsewhere_are_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.post(f"/runs/r1/cases/{CASE}", headers=headers, data={"choice": "approve"}).status_code == status


def test_a_decision_is_recorded_with_what_was_on_the_screen_and_leads_to_what_waits_next(
    desk: Desk, client: TestClient
) -> None:
    place = f"/runs/r1/cases/{CASE}"
    page = client.get(place).text
    shown = re.search(r'name="shown" value="(\w+)"', page)
    assert shown
    assert f'action="{place}"' in page  # no fragment, which would lead past the evidence of the next case
    refused = client.post(place, headers=SAME, data={"choice": "approve", "shown": "other"})
    assert refused.status_code == 409
    assert '<a href="">' in refused.text
    answer = client.post(place, headers=SAME, data={"choice": "approve", "shown": shown[1], "comment": "clear reason"})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/runs/r1/alarms/{LEAK}?recorded=approve"
    assert "Your approval is recorded." in client.get(answer.headers["location"]).text
    with desk.open() as ledger:
        decision = Reviews.of(ledger, ledger.runs.find("r1")).decision(CASE)
        assert decision
        assert (decision.by, decision.decision, decision.comment, decision.shown) == (
            "ada",
            "approve",
            "clear reason",
            shown[1],
        )
        assert decision.case in page
        told = client.get("/inbox.json").json()["waiting"]
        assert [(one["kind"], one["href"]) for one in told[1:]] == [("resume", "/runs/r1")]
        assert f"alphaloom resume r1 --workspace {desk.workspace}" in client.get("/runs/r1").text
        assert "ada approved it: clear reason" in client.get("/runs/r1").text
        assert "approved by you" in client.get(f"{place}.json").json()["cases"][0]["word"]
        assert CASE not in {row.factor_id for row in ledger.library.rows()}
        Reviews.of(ledger, ledger.runs.find("r1")).settle()  # as the run goes on
        assert CASE in {row.factor_id for row in ledger.library.rows()}
    assert client.post(place, headers=SAME, data={"choice": "reject", "shown": shown[1]}).status_code == 409


def test_the_next_thing_is_the_one_below_that_still_waits_and_after_the_last_the_first() -> None:
    def wait(*names: str) -> Inbox:
        return Inbox(tuple(Waiting("case", "", "", "", f"/{name}") for name in names))

    before = wait("a", "b", "c", "d")
    assert before.next_after("/b", wait("a", "d")) == "/d"
    assert before.next_after("/d", wait("b", "c")) == "/b"
    assert before.next_after("/b", wait("b", "resume")) == "/resume"
    assert before.next_after("/elsewhere", wait("c")) == "/c"
    assert before.next_after("/b", wait()) == "/inbox"


def test_the_list_of_factors_says_why_a_person_rejected_one(desk: Desk, client: TestClient) -> None:
    place = f"/runs/r1/cases/{CASE}"
    with desk.open() as ledger:
        ledger.evaluations.add(Evaluation("r1", CASE, SCRIPT, "r01/h00", {"t": 4.2, "rank_ic": 0.03}))
        ledger.verdicts.add(VerdictRow("r1", CASE, "accepted", [], {}))

    def read_line() -> tuple[str, str]:
        found = client.get("/runs/r1.json").json()["factors"]
        return next((one["standing"], one["reason"]) for one in found if one["id"] == CASE)

    assert read_line() == ("awaiting approval", "")
    shown = client.get(f"{place}.json").json()["shown"]
    form = {"choice": "reject", "shown": shown, "comment": "too crowded"}
    assert client.post(place, headers=SAME, data=form).status_code == 303
    assert read_line() == ("rejected", "review: ada rejected it: too crowded")


def test_an_alarm_is_acknowledged_with_a_reason(desk: Desk, client: TestClient) -> None:
    from alphaloom.risk import list_alarms, read_standings

    place = f"/runs/r1/alarms/{LEAK}"
    assert client.post(place, headers=SAME, data={"reason": " "}).status_code == 409
    with desk.open() as ledger:
        assert read_standings(ledger, LEAK)[LEAK].leak_alarm
    command = ["evidence", "acknowledge", "r1", LEAK[:6], "--by", "bo", "--workspace", str(desk.workspace), "--reason"]
    assert run_command([*command, " "]) == 2
    assert client.post(place, headers=SAME, data={"reason": "the fields are of the close"}).status_code == 303
    assert run_command([*command, "a second time"]) == 2
    with desk.open() as ledger:
        assert not list_alarms(ledger)
        assert not read_standings(ledger, LEAK)[LEAK].leak_alarm


def test_no_text_that_a_model_wrote_becomes_markup(desk: Desk, client: TestClient, bench: SearchBench) -> None:
    lay_seal(desk.workspace)
    for place in (
        "/inbox",
        "/runs",
        "/runs/r1",
        "/runs/r1/models",
        "/runs/r2/seal",
        "/record?verify=all",
        f"/record?verify={quote(SCRIPT)}",
        "/library",
        f"/library/{LEAK}",
        f"/runs/r1/cases/{CASE}",
        f"/runs/r1/alarms/{LEAK}",
        f"/runs/r1/factors/{LEAK}",
        f"/runs/r1/factors/{CHILD}",
        f"/runs/r1/what-if/{CHILD}?formula={quote(SCRIPT)}",
        f"/runs/r1/what-if/{LEAK}",
        f"/compare?a=r1:{LEAK}&b=r1:{CHILD}&all=1",
        "/compare?a=r1&b=r1&all=1",
        f"/compare?a={quote(SCRIPT)}&b={quote(SCRIPT)}",
        f"/compare?a={quote(SCRIPT)}",
        f"/runs/{SCRIPT}",
    ):
        answer = client.get(place)
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert "<script>alert" not in answer.text, place
        assert "<img src" not in answer.text, place
    assert client.get("/inbox").text.count("&lt;script&gt;") >= 2
    assert client.get("/record?verify=r1").text.count("&lt;script&gt;") >= 1


def test_every_page_is_a_record_too(client: TestClient) -> None:
    factor = f"/runs/r1/factors/{CHILD}"
    for place in (
        "/inbox",
        "/runs",
        "/runs/r1",
        "/library",
        f"/library/{LEAK}",
        "/books",
        f"/runs/r1/cases/{CASE}",
        factor,
    ):
        assert client.get(f"{place}.json").json(), place
    assert [one["kind"] for one in client.get("/inbox.json").json()["waiting"]] == ["alarm", "case"]
    for place in ("/runs/none.json", "/runs/%00.json", "/runs/~nobody.json", "/record.json?verify=%00"):
        assert client.get(place).json()["code"] == "unknown_run", place
    assert client.get("/runs.json").json()["runs"][0]["verdicts"] == {"awaiting approval": 1}
    assert client.get("/runs/r1.json").json()["facets"] == {"awaiting approval": 1, "scored": 1}


def test_an_edited_file_of_a_run_is_neither_shown_nor_an_error(desk: Desk, client: TestClient) -> None:
    folder = desk.workspace / "runs" / "r1"
    for edited in ('{"round": "x"}', '{"round": NaN}', '{"mechanisms": NaN}', '{"elapsed_s": 1e999}', "[" * 9_999):
        (folder / "now.json").write_text(edited)
        assert client.get("/runs/r1.json").json()["standing"]["round"] == 0
    assert client.get("/runs/r1/report").status_code == 409
    (folder / "results.json").write_text(json.dumps(example.results()))
    (folder / "report.html").write_text("<p>forged figures")
    answer = client.get("/runs/r1/report")
    assert "forged figures" not in answer.text
    assert REPORT_MARK in answer.text
    assert "script-src" not in answer.headers["content-security-policy"]
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert client.get("/runs/r1/report.json").status_code == 404  # a document, and no record


def test_the_models_of_a_campaign_are_told_as_the_command_line_tells_them(
    desk: Desk, client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    page = client.get("/runs/r1/models.json").json()
    capsys.readouterr()
    assert run_command(["models", "spend", "r1", "--json", "--workspace", str(desk.workspace)]) == 0
    assert page["spend"] == json.loads(capsys.readouterr().out)
    assert page["spend"]["by_question"][f"factor/{SCRIPT}"]["models"] == {SCRIPT: 1}
    assert ["went up", "0 by the prompt, 0 since the local tier had failed"] in page["lines"]
    assert 'href="/runs/r1/models"' in client.get("/runs/r1").text


def test_a_factor_page_tells_where_it_comes_from_and_shows_selection_figures_of_its_own_trial_alone(
    client: TestClient,
) -> None:
    child = client.get(f"/runs/r1/factors/{CHILD}.json").json()
    first, last = child["lineage"]["steps"]
    assert (first["id"], last["id"], last["weakness"], last["advice"]) == (LEAK, CHILD, SCRIPT, SCRIPT)
    assert "".join(piece["text"] for piece in last["change"] if piece["kind"] != "removed") == "ts_mean(close, 5)"
    assert [one["key"] for one in child["lineage"]["tries"]] == ["r01/h00/s1/c0/a0"]
    assert [(one["place"], one["cost_usd"]) for one in child["lineage"]["calls"]] == [("r01/h00/s1/a1", 0.25)]
    assert child["formula"]["tree"]["label"] == "ts_mean, window 5"
    assert {one["name"] for one in child["formula"]["dialects"]} >= {"worldquant", "qlib", "alphaagent"}
    assert not child["price"]
    leak = client.get(f"/runs/r1/factors/{LEAK}.json").json()
    assert any("On selection days its RankIC was +0.2000" in sentence for sentence in leak["account"])
    assert leak["formula"]["problem"]
    assert client.get(f"/runs/r1/factors/{CASE}.json").json()["code"] == "unknown_factor"


def test_a_what_if_is_answered_from_search_days_and_leaves_no_record(
    desk: Desk, client: TestClient, bench: SearchBench
) -> None:
    def count_rows() -> list[int]:
        with desk.open() as ledger:
            parts = (ledger.attempts, ledger.evaluations, ledger.verdicts, ledger.calls, ledger.events)
            return [len(part.of("r1")) for part in parts] + [len(ledger.runs.all())]

    before, place = count_rows(), f"/runs/r1/what-if/{CHILD}"
    assert bench.scorer.panel.days == 210
    own = client.get(f"{place}.json").json()
    assert all(first == second for _, first, second in own["rows"])
    asked = client.get(f"{place}.json?costs=doubled&horizon=10&formula=-returns&neutral=yes&span=worst_month").json()
    assert len(asked["changes"]) == 5 - (not asked["has_sectors"])
    assert {row[0]: row[1:] for row in asked["rows"]}["RankIC"] != own["rows"][0][1:]
    for wrong in ("costs=none+at+all", "horizon=21", "span=x", "formula=rank("):
        assert client.get(f"{place}?{wrong}").status_code == 409, wrong
    assert count_rows() == before


def test_a_comparison_shows_what_differs_and_keeps_its_state_in_the_address(client: TestClient) -> None:
    pair = f"a=r1:{LEAK}&b=r1:{CHILD}"
    short, whole = (client.get(f"/compare.json?{pair}{more}").json() for more in ("", "&all=1"))
    rows = [row for _, rows in short["topics"] for row in rows]
    assert rows
    assert all(first != second for _, first, second in rows)
    assert sum(len(rows) for _, rows in whole["topics"]) == len(rows) + short["hidden"]
    assert client.get("/compare.json?a=r1&b=r1").json()["problem"] == "Both are the same."
    assert client.get(f"/compare?a=r1&b=r1:{CHILD}").status_code == 409
    assert client.get("/compare?a=r1&b=none").status_code == 404
