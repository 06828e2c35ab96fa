"""`alphaloom record explain`: the account on the command line, escaped, and a model's words beside it or withheld."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import PersonDecision, Reviews
from alphaloom.evaluation.closing import SealDecision, SealRequests
from alphaloom.ledger import Ledger, Opening, StatusChange, WindowKey
from alphaloom.ledger.account import list_changes, list_overrides, read_overview, report_exposures
from alphaloom.risk import acknowledge_alarm, list_alarms

from ..router.served import chatting
from .books import lay_books
from .workspace import CASE, LEAK, NOON, lay, lay_seal

AUDIT = {
    "factor_id": LEAK, "number": 1, "found_before": 0, "day": "2026-05-29", "attributes": ["sector", "region"],
    "findings": {"sector": {"found": True, "p_value": 0.001, "level": 0.05, "smallest_gap": 0.4}},
}  # fmt: skip  # a table


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which people decided on a case, a leak alarm, sealed days, a book and the library."""
    workspace = tmp_path_factory.mktemp("explained")
    lay(workspace)
    lay_seal(workspace)
    lay_books(workspace)
    with Ledger.open(workspace, clock=lambda: NOON) as ledger:
        Reviews(ledger, "r1", True).decide(PersonDecision(CASE, "approve", "sound", "ann", NOON.isoformat()))
        acknowledge_alarm(ledger, list_alarms(ledger)[0], "the fields are of the close", "bob", NOON)
        requests = SealRequests(ledger, "r2")
        request = requests.request()
        assert request is not None
        requests.decide(SealDecision(True, "once", "eve\x1b[31m", NOON.isoformat(), request.digest))
        window = WindowKey("d", "2020-01-01", "2020-06-30", ("A",))
        ledger.trials.record_opening(Opening("r2", window, "the exam"))
        ledger.library.record(standings=[StatusChange(LEAK, "k", "retired", "hand", "too close", "2026-06-01")])
        ledger.events.record("r1", "exposure-audit", f"{LEAK} 000001", AUDIT)
    return workspace


@pytest.fixture
def explain(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def run(name: str, *more: str) -> dict[str, Any]:
        capsys.readouterr()
        assert run_command(["record", "explain", name, "--workspace", str(place), "--json", *more]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


def say(words: str) -> Callable[..., str]:
    return lambda _messages, _seed: json.dumps({"retold": words})


def test_people_seals_alarms_audits_and_statuses_are_told_with_names(explain: Callable[..., dict[str, Any]]) -> None:
    text = {name: " ".join(one["text"] for one in explain(name)["sentences"]) for name in (LEAK, f"{CASE}/1", "1")}
    assert "bob acknowledged the alarm on 2026-06-01" in text[LEAK]
    assert "is a proxy of sector, p-value 0.001, threshold 0.05" in text[LEAK]
    assert "could not test" in text[LEAK]
    assert "a person sets the status of fb0000000000000b2 to retired" in text[LEAK]
    assert f'ann approved factor {CASE} on 2026-06-01: "sound".' in text[f"{CASE}/1"]
    assert 'eve [31m agreed on 2026-06-01 to open them: "once".' in text["1"]
    assert explain(f"{CASE}/1")["responsible"]["approver"] == ["ann"]
    assert explain("1")["responsible"] | {"deployer": ""} == {
        "vendor": None, "provider": None, "deployer": "", "approver": ["eve\x1b[31m"],
    }  # fmt: skip  # a table


def test_each_row_of_a_decision_has_an_account_and_any_other_is_refused(
    place: Path, explain: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    def build(reader: Any) -> list[str]:
        told = {
            "review",
            "seal-request",
            "seal-decision",
            "book.mode",
            "book.step",
            "alarm-acknowledged",
            "exposure-audit",
        }
        rows = [row for row in reader.rows("events") if row.columns["kind"] in told]
        tables = ("verdicts", "library", "openings", "standings")
        return [f"{row.table}/{row.number}" for row in (*rows, *(row for name in tables for row in reader.rows(name)))]

    names = read_overview(place, build)
    assert len(names) > 12
    for name in names:
        assert explain(name)["sentences"], name
    for name in ("runs/1", "verdicts/99", "nothing", "paper/2011-03-22/NONE", "", "f"):
        assert run_command(["record", "explain", name, "--workspace", str(place)]) == 2
        assert "no" in capsys.readouterr().err


def test_the_terminal_is_not_steered_and_leaves_stand_before_each_sentence(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["record", "explain", "1", "--workspace", str(place)]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert all(line.startswith("  [") for line in said.splitlines()[1:])


def test_a_models_words_stand_beside_the_account_or_are_withheld_with_the_reason(
    place: Path, tmp_path: Path, explain: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    name = "paper/2011-03-22/H.PJF"
    kept = [one["text"] for one in explain(name)["sentences"] if '"' not in one["text"]]
    excused = [one["text"] for one in explain(name)["sentences"] if "exception" in one["text"]]
    honest = " ".join([*kept, *(text.partition(" The reason")[0] for text in excused)])
    for words, why in (
        (honest, ""),
        (honest.replace("actual 1, limit 0", "actual 1, limit 7"), "no sentence of the account"),
        (
            honest.replace("The rule borrow refused the signal for H.PJF", "The signal for H.PJF waits"),
            "words of its own",
        ),
    ):
        with chatting(say(words)) as served:
            model = {"model": "openai/small", "place": "local", "tier": "local", "api_base": served.address}
            file = tmp_path / f"{len(why)}{len(words)}.yaml"
            file.write_text(yaml.safe_dump({"models": {"small": model}, "retries": 0}))
            told = explain(name, "--rephrase", "--router", str(file))["retelling"]
        assert told["by"] == "model"
        assert (told["text"] == words, why in told["withheld"], bool(told["withheld"])) == (not why, True, bool(why))
    assert (
        run_command(["record", "explain", name, "--workspace", str(place), "--rephrase", "--router", "none.yaml"]) == 2
    )
    capsys.readouterr()


def test_what_changed_was_overridden_and_is_exposed_is_listed_with_leaves(place: Path) -> None:
    changes, overrides = read_overview(place, list_changes), read_overview(place, list_overrides)
    exposures = read_overview(place, report_exposures)
    assert {"model", "router", "status"} <= {row["kind"] for row in changes}
    assert [(row["before"], row["after"]) for row in changes if row["what"] == LEAK] == [(None, "retired")]
    found = {row["kind"]: row for row in overrides}
    assert set(found) == {"exception", "alarm", "opening", "trading", "library"}
    assert (found["exception"]["who"], found["exception"]["until"]) == (["ann"], "2200-01-01")
    assert (found["alarm"]["who"], found["opening"]["who"]) == (["bob"], ["eve\x1b[31m"])
    assert [row["finding"] is None for row in exposures["audits"]] == [False, True]
    assert {row["rule"] for row in exposures["checks"]} == {"sector", "style"}
    assert all(isinstance(row["leaf"], int) for row in (*changes, *overrides, *exposures["audits"]))
    with Ledger.open(place, clock=lambda: NOON) as ledger:
        body = {"kind": "policy", "name": "policy.yaml", "before": "", "after": "", "diff": "", "account": "desk"}
        ledger.events.record("r1", "change", "000000", body)
    versions = [row for row in read_overview(place, list_changes) if row["kind"] == "policy"]
    assert (len(versions), versions[-1]["account"]) == (2, "desk")  # the first is that of the book's step
