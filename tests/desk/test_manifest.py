"""The manifest: who wrote what, which days they can have read, and nothing of the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom import __version__
from alphaloom.desk import write_report
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.report.sections.known_days import describe_window
from alphaloom.desk.report.sections.marks import BY_BOTH, BY_MODEL, BY_RULES, ReportMarks
from alphaloom.desk.report.sections.run_notes import RunNotes, read_run_notes
from alphaloom.evaluation.closing import Results
from alphaloom.evaluation.manifest import RunExposure, build_manifest, read_exposure, software
from alphaloom.ledger import Evaluation, Ledger, ModelCall, Pass, Run, Sighting, WindowKey, write_json
from alphaloom.portfolio import COMBINATION_KEY, SEALED_SERIES_EVENT

from . import example

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FIRST, SECOND, SET, WATCHED = "f0123456789abcdef", "fa81c0de44556677", "s99887766554433", "fbead00001111222"
WRITER, CODER = "2022-12-30", "2024-01-31"
"""Cut-offs within the selection and within the sealed window."""
HOSTILE = "openai/</script><img src=x>"
MODELS: dict[str, dict[str, Any]] = {
    "writer": {"model": HOSTILE, "place": "local", "cutoff": WRITER, "api_base": "http://127.0.0.1:8/v1"},
    "coder": {"model": "anthropic/coder", "place": "remote", "cutoff": CODER, "api_key_env": "CODER_SECRET"},
    "mute": {"model": "hosted_vllm/mute", "place": "remote", "api_base": "https://models.example/v1"},
    "rules": {"model": "offline/researcher", "place": "local"},
}
SERIES = {"dates": example.SEALED, "rank_ic": [0.04 if day <= CODER else None for day in example.SEALED[:-1]] + [0.01]}
Lay = Callable[..., tuple[Ledger, Run]]


@pytest.fixture
def lay(tmp_path: Path) -> Any:
    ledgers = []

    def make(
        models: dict[str, dict[str, Any]] = MODELS, results: dict[str, Any] | None = None, **market: Any
    ) -> tuple[Ledger, Run]:
        ledger = Ledger.open(tmp_path / "w", clock=lambda: NOON)
        ledgers.append(ledger)
        settings = {"name": "calm", "market": {"panel": "/home/ann/prices.parquet", **market}}
        settings |= {"models": {"models": models}, "evidence": {"horizon_days": 5}}
        days = ledger.objects.put(json.dumps(example.DAYS).encode())
        row = Run("r1", {"settings": settings, "panel": "p" * 64, "days": days}, 7, "prices", NOON.isoformat())
        ledger.runs.start(row)
        for name, body in (("results.json", results or example.results()), ("curves.json", example.curves())):
            stored = write_json(ledger.runs.folder("r1") / name, body)
            ledger.artefacts.record("r1", name, ledger.objects.put(stored))
        ledger.events.record("r1", SEALED_SERIES_EVENT, COMBINATION_KEY, SERIES)
        return ledger, row

    yield make
    for ledger in ledgers:
        ledger.close()


def say(ledger: Ledger, model: str, role: str, *texts: str) -> None:
    """Record a call whose reply has the texts, among words."""
    reply = json.dumps({"text": f"Here: {json.dumps({'items': texts})}", "served": f"{model}-v1"}).encode()
    key = f"{model}/{role}/{len(ledger.calls.of('r1'))}"
    digest = ledger.objects.put(reply)
    ledger.calls.add(ModelCall(key, "r1", role, "x", "local", model, "prompt", "q", digest, 10, 5, 0.25))


def write_factor(ledger: Ledger, factor: str, branch: str, text: str, step: int = 0, parent: str = "") -> None:
    """Record how a factor came about: its hypothesis, its formula, and what it was changed from."""
    key = f"{branch}/s{step}/c0/a0"
    hypothesis = {"statement": f"the idea of {branch}", "mechanism": "m"}
    ledger.events.record("r1", "agents.hypothesis", branch, hypothesis)
    ledger.events.record("r1", "agents.mark", factor, {"key": key})
    ledger.events.record("r1", "agents.score", key, {"branch": branch, "text": text, "parent": parent})
    ledger.evaluations.add(Evaluation("r1", factor, text, branch, {}))


def write_all(ledger: Ledger) -> None:
    """Let the writer make the first factor, writer and coder the second, and a model without a cut-off the third."""
    write_factor(ledger, FIRST, "r01/h00", "rank(close)")
    write_factor(ledger, SECOND, "r01/h01", "rank(\n volume)", step=1, parent=FIRST)
    write_factor(ledger, WATCHED, "r01/h02", "rank(cap)")
    say(ledger, "writer", "idea", "the idea of r01/h00", "the idea of r01/h01")
    say(ledger, "writer", "factor", "rank(close)")
    say(ledger, "coder", "factor", "rank( volume)")
    say(ledger, "mute", "idea", "the idea of r01/h02")
    say(ledger, "rules", "factor", "rank(cap)")


def read(laid: tuple[Ledger, Run]) -> RunExposure:
    found = read_exposure(*laid)
    assert found is not None
    return found


def test_days_are_exposed_up_to_the_cut_off_of_whoever_wrote_a_factor(lay: Lay) -> None:
    laid = lay()
    write_all(laid[0])
    exposure = read(laid)
    first, second = exposure.factors[FIRST], exposure.factors[SECOND]
    assert (first.authors.models, second.authors.models) == (("writer",), ("coder", "writer"))
    before = sum(day <= WRITER for day in example.SELECTION)
    selection = first.windows["selection"]
    assert (selection.exposed, selection.clean, selection.unknown) == (before, 294 - before, 0)
    curve = example.curves()[FIRST]["selection"]["rank_ic"]
    for kind, values in (("exposed", curve[:before]), ("clean", curve[before:])):
        known = [value for value in values if value is not None]
        assert selection.rank_ic[kind].rank_ic == pytest.approx(np.mean(known))
        assert selection.rank_ic[kind].days == len(known)
    assert (first.windows["sealed"].exposed, first.windows["search"].clean) == (0, 0)
    assert second.windows["selection"].clean == 0


def test_the_hold_out_has_the_figures_of_both_kinds_of_days_beside_each_other(lay: Lay) -> None:
    laid = lay()
    write_all(laid[0])
    combination = read(laid).combination
    assert combination is not None
    sealed = combination.windows["sealed"]
    assert (sealed.rank_ic["exposed"].rank_ic, sealed.rank_ic["clean"].rank_ic) == (0.04, 0.01)
    said = describe_window(sealed, combination.cutoff.why)
    assert f"claimed training cut-off of coder (anthropic/coder): {CODER}" in said
    assert "RankIC: +0.0400 (t —) on exposed days, +0.0100 (t —) on clean days." in said
    page = write_report(laid[0].runs.folder("r1"), read_run_notes(*laid_names(laid))).read_text()
    assert "RankIC: +0.0400" in page.partition('id="hold-out"')[2].partition("</section>")[0]
    assert len(re.findall("<script", page)) == 1
    assert "<img" not in page


def laid_names(laid: tuple[Ledger, Run]) -> tuple[Ledger, str]:
    return laid[0], laid[1].id


def test_without_a_cut_off_and_with_a_person_s_part_days_are_unknown(lay: Lay) -> None:
    laid = lay()
    write_all(laid[0])
    exposure = read(laid)
    for split in (exposure.factors[WATCHED], exposure.run):
        assert [(one.unknown, one.exposed) for one in split.windows.values()] == [(900, 0), (294, 0), (294, 0)]
        assert "models.models.mute.cutoff" in split.cutoff.why
    assert "unknown" in describe_window(exposure.run.windows["sealed"], exposure.run.cutoff.why)
    laid[0].events.record("r1", "agents.hypothesis", "r00/h00", {"statement": "x", "source": "seed library"})
    assert read(laid).run.authors.people == ("seed library",)


def test_a_text_in_no_reply_counts_every_model(lay: Lay) -> None:
    laid = lay()
    write_all(laid[0])
    write_factor(laid[0], "f7777000077770000", "r01/h03", "rank(open)")
    authors = read(laid).factors["f7777000077770000"].authors
    assert (authors.models, authors.certain) == (("coder", "mute", "rules", "writer"), False)


def test_rules_and_simulated_days_are_clean_and_say_why(lay: Lay) -> None:
    ledger, run = lay({"rules": MODELS["rules"]})
    write_factor(ledger, FIRST, "r01/h00", "rank(close)")
    say(ledger, "rules", "idea", "the idea of r01/h00")
    exposure = read((ledger, run))
    assert {(one.exposed, one.unknown) for one in exposure.factors[FIRST].windows.values()} == {(0, 0)}
    assert "no language model" in exposure.run.cutoff.why
    marks = ReportMarks.read(exposure, Results.read(example.results()))
    assert marks.describe(None).startswith("No language model wrote any part of this report.")
    assert BY_MODEL not in marks.write("t", [FIRST], ["hold-out"], None)
    simulated = Run("r1", {"settings": {"market": {}, "models": {"models": MODELS}}}, 7, "s", NOON.isoformat())
    assert read((ledger, simulated)).run.cutoff.why == "these days were simulated"


def test_a_selection_series_that_nobody_was_charged_for_is_not_read(lay: Lay) -> None:
    results = example.results()
    results["accepted"][0]["trial"] = None
    laid = lay(results=results)
    write_all(laid[0])
    windows = read(laid).factors[FIRST].windows
    assert (windows["selection"].rank_ic, bool(windows["search"].rank_ic)) == ({}, True)
    assert windows["sealed"].rank_ic == {}  # the record has no series of this one


def test_days_of_the_watch_are_counted_too(lay: Lay) -> None:
    laid = lay()
    write_all(laid[0])
    new = [Sighting(FIRST, "2024-10-02", 0.02), Sighting(FIRST, "2024-10-03", None)]
    window = WindowKey("prices", "2024-10-02", "2024-10-03", ("A", "B"))
    laid[0].library.record(passes=[Pass(FIRST, window, new, {})])
    forward = read(laid).factors[FIRST].windows["forward"]
    assert (forward.first, forward.clean, forward.rank_ic["clean"].days) == ("2024-10-02", 2, 1)


def test_marks_say_what_each_part_is(lay: Lay) -> None:
    laid = lay()
    write_all(laid[0])
    marks = ReportMarks.read(read(laid), Results.read(example.results()))
    parts = json.loads(marks.write("t", [FIRST, SECOND, WATCHED], ["hold-out", "accepted"], None))
    sources = {part["@id"]: part["digitalSourceType"][-1].rpartition("/")[2] for part in parts["hasPart"]}
    assert sources[f"#{FIRST}-hypothesis"] == BY_MODEL
    assert sources[f"#{WATCHED}-formula"] == BY_BOTH  # rules wrote the formula
    assert sources["#hold-out"] == BY_RULES
    assert "#accepted" not in sources
    assert [maker["name"] for maker in parts["hasPart"][0]["creator"]] == [f"writer ({HOSTILE})"]
    bare = ReportMarks.read(RunNotes().exposure, Results.read({**example.results(), "researcher": "openai/x"}))
    assert bare.describe(None).startswith("A language model wrote hypotheses")


def test_the_command_writes_the_same_bytes_and_nothing_of_the_machine(
    lay: Lay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, run = lay(licence="Acme, internal")
    write_all(ledger)
    first = build_manifest(ledger, run)
    assert first["models"][0]["vendor"] is None  # no call says it, and neither does the file
    assert [model["endpoint"] for model in first["models"]] == [
        "the provider's own address", "a named host", "this process", "this machine",
    ]  # fmt: skip  # a table
    files = tmp_path / "a.json", tmp_path / "b.json"
    for file in files:
        assert run_command(["manifest", "r1", "--workspace", str(tmp_path / "w"), "--out", str(file)]) == 0
    shown, text = capsys.readouterr().out, files[0].read_text()
    assert text == files[1].read_text()
    for secret in (str(tmp_path), "/home/ann", "127.0.0.1", "models.example", "CODER_SECRET"):
        assert secret not in text
    assert json.loads(text)["data"]["licence"] == "Acme, internal"
    assert "served as coder-v1" in shown
    assert len(shown.splitlines()) < 100
    assert run_command(["manifest", "r1", "--workspace", str(tmp_path / "w"), "--out", str(files[0])]) == 1


def test_the_commit_is_that_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "PACKAGE_FOLDER", tmp_path)
    assert software.find_software() == {"version": __version__, "commit": ""}
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "packed-refs").write_text(
        f"# pack-refs\n{'b' * 40} refs/heads/other\n{'a' * 40} refs/heads/main\n"
    )
    assert software.find_software()["commit"] == "a" * 40
    (tmp_path / ".git" / "HEAD").write_text("c" * 40)
    assert software.find_software()["commit"] == "c" * 40
