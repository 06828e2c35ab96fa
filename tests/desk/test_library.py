"""What a person and a program are told of the library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.factors import parse
from alphaloom.ledger import Attempt, Evaluation, Ledger, LibraryRow, Run, Sighting, StatusChange, VerdictRow, WindowKey
from alphaloom.ledger.library import Pass
from alphaloom.ledger.records import Boundaries

Capture = pytest.CaptureFixture[str]
KEPT, WATCHED, OWN = "rank(ts_mad(close / open, 23))", "rank(ts_skew(volume, 40))", "rank(ts_kurt(high / low, 31))"
SELECTION = {"rank_ic": 0.05, "window": {"first": "2019-01-02", "last": "2019-06-28"}}
CLAIM = {
    "id": "h1",
    "mechanism": "m",
    "statement": "spread tells",
    "direction": 1,
    "horizon_days": 5,
    "fields": ["close"],
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judge(ledger: Ledger, text: str, word: str, number: int) -> str:
    """Write what a run that judged a factor leaves."""
    factor = parse(text)
    sheet = {"fields": sorted(factor.fields), "rank_ic": 0.04, "icir": 0.5, "t": 5.0}
    ledger.evaluations.add(Evaluation("one", factor.id, text, f"h{number}", sheet))
    ledger.verdicts.add(VerdictRow("one", factor.id, word, [], {"trial": number, "selection": SELECTION}))
    return factor.id


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Return the ledger of a workspace whose one run accepted a factor and watches another."""
    rules = {"evidence": {"horizon_days": 5, "returns": "residual"}}
    with Ledger.open(tmp_path / ".alphaloom", clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as made:
        made.runs.start(Run("one", {"last_day": "2019-12-31", "rules": rules}, 1, "data", "2026-01-01"))
        for number, (text, word) in enumerate([(KEPT, "accepted"), (WATCHED, "watchlist")], start=1):
            name = judge(made, text, word, number)
            claim = {**CLAIM, "id": f"h{number}"}
            made.events.record("one", "claim", f"h{number}", claim)
            made.attempts.add(Attempt("one", str(number), f"h{number}", text, name, "scored", ""))
        yield made


def days_since(ledger: Ledger, text: str, mean: float, count: int = 130) -> None:
    """Let a factor be seen on some days after 2019."""
    days = [str(day) for day in np.datetime64("2020-01-01", "D") + np.arange(count)]
    noise = 0.08 * np.random.default_rng(1).standard_normal(count)
    seen = [Sighting(parse(text).id, day, float(value)) for day, value in zip(days, mean + noise, strict=True)]
    ledger.library.record(passes=[Pass(parse(text).id, WindowKey("data", days[0], days[-1], ("A",)), seen, {})])


def told(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run_command(["library", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run_command(["library", *arguments]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_without_a_workspace_nothing_is_made(capsys: Capture, tmp_path: Path) -> None:
    assert "There is no record at .alphaloom: the folder does not exist" in said(capsys, "list", code=2)
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_accepted_is_added_once_and_looks_accepted(capsys: Capture, ledger: Ledger) -> None:
    name = parse(KEPT).id
    first = told(capsys, "add", "one", name[:5])
    assert first == {"id": name, "text": KEPT, "new": True, "status": "live", "proof": "proven on selection"}
    assert told(capsys, "add", "one", name)["new"] is False


def test_nothing_that_was_not_accepted_may_look_accepted(capsys: Capture, ledger: Ledger) -> None:
    refused = told(capsys, "add", "one", parse(WATCHED).id, code=1)
    assert (refused["code"], refused["got"], refused["allowed"]) == ("library_refused", "watchlist", "accepted")
    assert told(capsys, "add", "one", "zzz", code=2)["code"] == "unknown_factor"
    assert told(capsys, "add", WATCHED, code=1)["code"] == "library_refused"
    assert ledger.library.rows() == []


def test_what_is_added_by_hand_says_so_everywhere(capsys: Capture, ledger: Ledger) -> None:
    assert "live; by hand, unproven" in said(capsys, "add", f"-{OWN}")
    rows = {row["text"]: row for row in told(capsys, "list")["factors"]}
    mine = rows[f"-{OWN}"]
    assert (mine["status"], mine["origin"], mine["trial"], mine["run"]) == ("live", "by_hand", None, None)
    assert "by hand, unproven" in said(capsys, "list")
    shown = said(capsys, "show", mine["id"][:6])
    assert "not watched" in shown
    assert "nobody judged it" in shown


def test_the_list_tells_what_selection_and_the_days_since_showed(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    days_since(ledger, KEPT, 0.03)
    days_since(ledger, WATCHED, 0.06)
    ledger.library.record(standings=[place()])
    kept, watched = told(capsys, "list")["factors"]
    assert (kept["selection_rank_ic"], kept["days"], kept["last_day"]) == (0.05, 130, "2020-05-09")
    assert kept["rank_ic_since"] == pytest.approx(0.03, abs=0.02)
    assert set(kept["decay"]) == {"day", "rank_ic", "t", "p_value", "bar", "e_value"}
    assert (kept["decay"]["bar"], kept["judged_to"], kept["trial"]) == (0.025, "2019-12-31", 1)
    assert (watched["status"], watched["decay"], watched["proves_at"]) == ("watchlist", None, 40.0)
    assert watched["e_value"] > 1
    table = said(capsys, "list")
    assert "1 factor in the library: 1 live; 1 entry on the watchlist" in table
    assert "proven at 40" in table


def open_sealed(ledger: Ledger, file: str, number: int = 1) -> None:
    """Write a run's result on its sealed days, which examined what it accepted."""
    figures = {"sign": 1, "days": 120, "rank_ic": -0.01, "t": -0.8, "net_sharpe": -0.3, "p_value": 0.79}
    exam = {"opened": True, "number": number, "factors": {parse(KEPT).id: figures}}
    body = exam if file == "sealed.json" else {"sealed": exam}
    ledger.artefacts.record("one", file, ledger.objects.put(json.dumps(body, indent=1).encode()))


def test_sealed_days_that_were_never_opened_are_named_as_such(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    assert [row["sealed"] for row in told(capsys, "list")["factors"]] == [None, None]
    lines = said(capsys, "list").splitlines()
    assert lines[1].startswith("sealed: not opened. Search and selection days helped to choose these factors")
    assert any(parse(KEPT).id[:9] in line and "sealed: not opened" in line for line in lines)
    assert "sealed: not opened" in said(capsys, "show", parse(KEPT).id)


@pytest.mark.parametrize("file", ["results.json", "sealed.json"])
def test_the_sealed_result_leads(capsys: Capture, ledger: Ledger, file: str) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    open_sealed(ledger, file)
    kept, watched = told(capsys, "list")["factors"]
    assert list(kept)[3:6] == ["sealed", "search_rank_ic", "selection_rank_ic"]
    assert (kept["sealed"]["rank_ic"], kept["sealed"]["holds"]) == (-0.01, False)
    assert (kept["search_rank_ic"], kept["selection_rank_ic"]) == (0.04, 0.05)
    assert (watched["sealed"]["rank_ic"], watched["sealed"]["holds"]) == (None, None)
    text = said(capsys, "list")
    assert "0 of 1 hold (p at most 0.05, one test each)." in text
    assert "there \N{MINUS SIGN}0.0100, against +0.0400 on search and +0.0500 on selection" in text
    assert "does not hold" in text
    assert "not examined" in text
    assert "opened before" not in text


def test_a_repeated_opening_is_no_exam_and_what_is_closed_is_counted(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    told(capsys, "add", OWN)
    open_sealed(ledger, "sealed.json", number=3)
    text = said(capsys, "list")
    assert "2 rows of days that had been opened before" in text
    assert "1 row with sealed days not opened." in text
    assert "opening 3" in text


def test_a_factor_that_is_held_reversed_is_turned_on_sealed_days_too(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    figures = {"sign": -1, "days": 120, "rank_ic": -0.02, "t": -3.0, "net_sharpe": 0.7, "p_value": 0.001}
    exam = {"opened": True, "number": 1, "factors": {parse(KEPT).id: figures}}
    ledger.artefacts.record("one", "sealed.json", ledger.objects.put(json.dumps(exam).encode()))
    sealed = told(capsys, "list")["factors"][0]["sealed"]
    assert (sealed["rank_ic"], sealed["t"], sealed["net_sharpe"], sealed["holds"]) == (0.02, 3.0, 0.7, True)


def place() -> StatusChange:
    return StatusChange(parse(WATCHED).id, "watched", "watchlist", "rule", "place 1", "2019-12-31", {"place": 1})


def test_a_factor_is_shown_with_its_quarters_and_its_history(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    days_since(ledger, KEPT, 0.03)
    said(capsys, "retire", KEPT, "--reason", "capacity is used up")
    full = told(capsys, "show", KEPT)
    assert [quarter["day"] for quarter in full["quarters"]] == ["2020-03-03", "2020-05-05"]
    assert [(change["status"], change["by"], change["reason"]) for change in full["history"]] == [
        ("retired", "hand", "capacity is used up")
    ]
    assert (len(full["daily"]), full["hypothesis"]) == (130, "spread tells")
    shown = said(capsys, "show", KEPT)
    assert "█" in shown
    assert "capacity is used up" in shown


def test_a_retirement_needs_a_factor_and_a_reason_and_happens_once(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    assert told(capsys, "retire", "zzz", "--reason", "x", code=2)["code"] == "unknown_factor"
    assert "--reason" in told(capsys, "retire", parse(KEPT).id, "--reason", " ", code=2)["message"]
    assert told(capsys, "retire", parse(WATCHED).id, "--reason", "x", code=1)["code"] == "library_refused"
    assert told(capsys, "retire", parse(KEPT).id, "--reason", "x")["status"] == "retired"
    assert "was retired on" in told(capsys, "retire", parse(KEPT).id, "--reason", "y", code=1)["message"]
    assert "add: " not in said(capsys, "add", "one", parse(KEPT).id)
    assert told(capsys, "list")["factors"][-1]["status"] == "retired"


def test_a_retired_factor_comes_back_and_its_retirement_stays_on_record(capsys: Capture, ledger: Ledger) -> None:
    name = parse(KEPT).id
    told(capsys, "add", "one", name)
    assert told(capsys, "restore", name, "--reason", "x", code=1)["got"] == "live"
    ledger.library.record(standings=[StatusChange(name, "2020-03 decaying", "decaying", "rule", "faint", "2020-03-31")])
    told(capsys, "retire", name, "--reason", "crowded")
    assert "--reason" in told(capsys, "restore", name, "--reason", "", code=2)["message"]
    assert told(capsys, "restore", name, "--reason", "crowd left")["status"] == "decaying"
    told(capsys, "retire", name, "--reason", "again")
    assert "decaying again: once more" in said(capsys, "restore", name, "--reason", " once more ")
    history = [(change["status"], change["reason"]) for change in told(capsys, "show", name)["history"]]
    assert history == [
        ("decaying", "faint"),
        ("retired", "crowded"),
        ("decaying", "crowd left"),
        ("retired", "again"),
        ("decaying", "once more"),
    ]
    assert told(capsys, "restore", parse(WATCHED).id, "--reason", "x", code=1)["got"] == "watchlist"


def test_the_start_of_several_ids_is_answered_with_all_of_them(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    for words in (["show", "f"], ["add", "one", "f"], ["retire", "f", "--reason", "x"]):
        hint = told(capsys, *words, code=2)["hint"]
        assert all(parse(text).id in hint for text in (KEPT, WATCHED)), words
    assert KEPT in told(capsys, "show", "f", code=2)["hint"]


def test_the_list_says_that_low_values_are_bought(capsys: Capture, ledger: Ledger) -> None:
    factor = parse(OWN)
    sheet = {"fields": sorted(factor.fields), "rank_ic": -0.04, "icir": -0.5, "t": -5.0}
    ledger.evaluations.add(Evaluation("one", factor.id, OWN, "h1", sheet))
    ledger.verdicts.add(VerdictRow("one", factor.id, "accepted", [], {"trial": 3, "selection": SELECTION}))
    ledger.attempts.add(Attempt("one", "3", "h1", OWN, factor.id, "scored", ""))
    told(capsys, "add", "one", factor.id)
    assert said(capsys, "list").count("held the other way round") == 1
    assert {row["sign"] for row in told(capsys, "list")["factors"]} == {-1, 1}


def test_a_factor_of_another_market_is_no_evidence_here(capsys: Capture, ledger: Ledger) -> None:
    judged = {
        "horizon_days": 5,
        "returns": "raw",
        "sign": 1,
        "judged_to": "2019-12-31",
        "rank_ic": 0.05,
        "deviation": 0.08,
        "names": ["A", "B", "C"],
    }
    factor = parse(OWN)
    row = LibraryRow(
        factor.id, OWN, factor.canonical_text, "", "", {"fields": ["high", "low"]}, "imported", {"judged": judged}
    )
    ledger.library.record(
        rows=[row], standings=[StatusChange(factor.id, "imported", "live", "hand", "from x", "2026-01-01")]
    )

    def elsewhere() -> bool:
        return bool(next(one for one in told(capsys, "list")["factors"] if one["id"] == factor.id)["elsewhere"])

    assert not elsewhere()  # no data set is known yet
    ledger.trials.fix_boundaries(Boundaries("theirs", ("A", "X", "Y"), *["2020-01-01"] * 6))
    assert elsewhere()
    assert "1 live, 1 of them judged on another market" in said(capsys, "list")
    assert "known to the gate, but no evidence" in " ".join(said(capsys, "show", factor.id).split())
    ledger.trials.fix_boundaries(Boundaries("ours", ("A", "B", "Z"), *["2020-01-01"] * 6))
    assert not elsewhere()
    assert "another market" not in said(capsys, "list")


def test_a_library_goes_over_by_file_and_no_file_is_written_over(
    capsys: Capture, ledger: Ledger, tmp_path: Path
) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    assert told(capsys, "export", "library.json")["factors"] == 1
    assert told(capsys, "export", "library.json", code=1)["code"] == "file_exists"
    assert told(capsys, "import", "library.json", "--workspace", "other")["added"] == 1
    (row,) = told(capsys, "list", "--workspace", "other")["factors"]
    assert (row["proof"], row["run"]) == ("judged elsewhere, not proven here", None)
    (tmp_path / "bad.json").write_text("{}")
    assert told(capsys, "import", "bad.json", "--workspace", "third", code=2)["code"] == "library_file"
    assert not (tmp_path / "third").exists()


def test_a_watched_factor_stays_on_the_watchlist_when_a_file_brings_it(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", WATCHED, "--workspace", "other")
    told(capsys, "export", "library.json", "--workspace", "other")
    answer = told(capsys, "import", "library.json")
    assert (answer["added"], answer["on_watchlist"]) == (0, [parse(WATCHED).id])
    assert ledger.library.rows() == []


def test_watching_needs_a_panel(capsys: Capture, ledger: Ledger) -> None:
    assert "name the file with the new days" in said(capsys, "watch", code=2)


def test_a_panel_of_other_names_is_told_and_leaves_nothing(capsys: Capture, ledger: Ledger) -> None:
    told(capsys, "add", "one", parse(KEPT).id)
    Path("file.yaml").write_text("market:\n  synthetic: {days: 300, names: 40}\n  plants: {count: 0}\n")
    answer = told(capsys, "watch", "--campaign", "file.yaml")
    assert answer["new_days"] == 0
    assert all("no complete new day" in row["lacking"] for row in answer["factors"])
    assert "not scored: no complete new day yet; days after 2019-12-31 count" in said(
        capsys, "watch", "--campaign", "file.yaml"
    )
    assert ledger.library.sightings(parse(KEPT).id) == []


@pytest.mark.parametrize("place", [".", "nowhere/library.json"])
def test_what_is_no_place_for_a_file_is_named_as_it_was_given(capsys: Capture, ledger: Ledger, place: str) -> None:
    refused = said(capsys, "export", place, "--force", code=2)
    assert "a folder that is there" in " ".join(refused.split())
    assert ".draft" not in refused
