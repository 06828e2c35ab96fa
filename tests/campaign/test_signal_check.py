"""Signals of a file are asked of the gate as a book asks them, and each refusal says what it needs."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.campaign import BookData, BookSettings, list_steps, open_book, step_book
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import CampaignResult
from alphaloom.ledger import Ledger
from alphaloom.market import Panel
from alphaloom.risk import ALL_RULES, POLICY_FILE, RULES, UNITS_PER_EQUITY

from .conftest import Files

pytestmark = pytest.mark.integration
LATER = datetime(2199, 7, 9, tzinfo=UTC)
COLUMNS = ("symbol", "weight", "low", "high", "evidence", "valid_until")
Rows = list[dict[str, Any]]


def write(file: Path, rows: Rows) -> Path:
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return file


@pytest.fixture
def place(files: Files, workspace: Path) -> list[str]:
    return ["--workspace", str(workspace), "--panel", str(files.panel), "--sectors", str(files.sectors)]


@pytest.fixture
def table(finished: CampaignResult, place: list[str], tmp_path: Path) -> Path:
    assert run_command(["targets", *place, "--out", str(tmp_path / "targets.csv")]) == 0
    return tmp_path / "targets.csv"


def read(file: Path) -> Rows:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def ask(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["risk", "check", *arguments, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_targets_of_a_day_get_the_decision_that_they_had(
    table: Path, place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {row["symbol"] for row in read(table) if row["decision"] == "refused"}
    facts = ask(capsys, [str(table), *place], 1 if refused else 0)
    assert {row["symbol"] for row in facts["refusals"]} == refused
    assert [row["rule"] for row in facts["rules"]] == list(RULES)
    assert run_command(["risk", "check", str(table), *place]) == (1 if refused else 0)
    assert "approved" in capsys.readouterr().out


def test_what_passes_in_part_passes_in_that_part(
    table: Path, place: list[str], tmp_path: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read(table)
    cap = max(abs(float(row["high"])) for row in rows) * 1e4 / 2
    file = tmp_path / "tight.yaml"
    file.write_text(f"single_name_cap_bp: {int(cap)}\n")
    facts = ask(capsys, [str(table), *place, "--policy", str(file)], 1)
    worst = next(row for row in facts["rules"] if row["rule"] == "single_name")
    assert worst["actual"] > worst["limit"] == int(cap)
    assert worst["refused"] > 0
    one = next(row for row in facts["refusals"] if [rule["rule"] for rule in row["rules"]] == ["single_name"])
    assert 0 < one["passing_share"] < 1
    for row in rows:
        if row["symbol"] == one["symbol"]:
            part = one["passing_share"]
            row |= {name: f"{float(row[name]) * part:.8f}" for name in ("weight", "low", "high")}
    again = ask(capsys, [str(write(tmp_path / "part.csv", rows)), *place, "--policy", str(file)], 1)
    assert one["symbol"] not in {row["symbol"] for row in again["refusals"]}


def test_evidence_that_the_record_does_not_hold_says_what_it_needs(
    table: Path, place: list[str], tmp_path: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read(table)[:2]
    rows[0]["evidence"] = "f00000000"
    facts = ask(capsys, [str(write(tmp_path / "lost.csv", rows)), *place], 1)
    (lost,) = facts["refusals"]
    assert all("not in the ledger" in rule["needs"] for rule in lost["rules"])
    (workspace / POLICY_FILE).write_text("similarity_cap_bp: 0\n")
    facts = ask(capsys, [str(write(tmp_path / "like.csv", rows[1:])), *place], 1)
    (rule,) = facts["refusals"][0]["rules"]
    assert rule["rule"] == "original"
    shown = [{**row, "evidence": row["evidence"][:9]} for row in rows[1:]]
    assert ask(capsys, [str(write(tmp_path / "short.csv", shown)), *place], 1)["refusals"] == facts["refusals"]
    assert "exception in policy.yaml: {evidence: f" in rule["needs"]


def test_an_audited_attribute_binds_after_an_audit_or_an_exception(
    table: Path, place: list[str], workspace: Path, panel: Panel, capsys: pytest.CaptureFixture[str]
) -> None:
    """The close of a campaign and the step of a book audit by themselves; what only asks says what to do."""
    capsys.readouterr()
    assert run_command(["risk", "audit", *place]) == 2
    assert "audited: [sector]" in capsys.readouterr().err
    (workspace / POLICY_FILE).write_text("audited: [sector]\n")
    facts = ask(capsys, [str(table), *place], 1)
    assert [row["rule"] for row in facts["rules"]] == list(ALL_RULES)
    (rule,) = (rule for rule in facts["refusals"][0]["rules"] if rule["rule"] == "unexposed")
    assert (rule["actual"] > rule["limit"] == 0, "alphaloom risk audit" in rule["needs"]) == (True, True)
    with Ledger.open(workspace, clock=lambda: LATER) as ledger:
        step_book(ledger, open_book(ledger, "desk", BookSettings(), LATER), BookData(panel, ""), lambda: LATER)
        (step,) = list_steps(ledger, "book-desk")
    assert run_command(["book", "replay", "desk", "--workspace", str(workspace)]) == 0
    assert step["decision"]["rules"][-1] == "unexposed"
    (audited,) = (one for one in step["decision"]["standings"].values() if "exposures" in one)
    assert audited["exposures"][0]["smallest_gap_e4"] > 0
    capsys.readouterr()
    code = run_command(["risk", "audit", *place, "--json"])
    found = json.loads(capsys.readouterr().out)
    (row,) = found["audits"]
    assert (found["new"], row["audit"], row["finding"]["found"]) == (0, 1, bool(code))
    assert run_command(["risk", "audit", row["factor"][:9], "--attribute", "size", *place]) in (0, 1)
    assert "Would see" in capsys.readouterr().out
    exception = f"{{evidence: {row['factor']}, rule: unexposed, reason: a bet, owner: Ada, until: 2199-12-31}}"
    (workspace / POLICY_FILE).write_text(f"audited: [sector]\nexceptions: [{exception}]\n")
    facts = ask(capsys, [str(table), *place], 1 if any(row["decision"] == "refused" for row in read(table)) else 0)
    assert all(row["refused"] == 0 for row in facts["rules"] if row["rule"] == "unexposed")


def test_every_mistake_of_a_file_has_its_line(
    table: Path, place: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read(table)[:5]
    rows[0] |= {"weight": "much"}
    rows[1] |= {"symbol": "", "valid_until": "soon"}
    rows[2] |= {"weight": "0.01", "low": "0.02", "high": "0.03"}
    rows[3] |= {"weight": "nan"}
    found = ask(capsys, [str(write(tmp_path / "bad.csv", rows)), *place], 2)
    assert [(one["line"], one["field"]) for one in found["mistakes"]] == [
        (2, "weight"), (3, "symbol"), (3, "valid_until"), (4, "weight"), (5, "weight"),
    ]  # fmt: skip  # a table
    (tmp_path / "short.csv").write_text("symbol,weight\nA,0.1\n")
    assert "valid_until" in ask(capsys, [str(tmp_path / "short.csv"), *place], 2)["allowed"]
    assert run_command(["risk", "check", str(tmp_path / "none.csv"), *place]) == 2


def test_bounds_are_the_weight_where_the_file_has_none_and_two_rows_refuse_a_symbol(
    table: Path, place: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "low": "", "high": ""} for row in read(table)[:3]]
    facts = ask(capsys, [str(write(tmp_path / "twice.csv", [*rows, rows[0]])), *place], 1)
    assert [(row["symbol"], row["rules"][0]["rule"]) for row in facts["refusals"]] == [
        (rows[0]["symbol"], "duplicate")
    ] * 2
    widths = next(row for row in facts["rules"] if row["rule"] == "interval_width")
    assert widths["actual"] == 0


def test_beside_a_book_it_is_the_decision_of_its_step(
    ledger: Ledger, panel: Panel, place: list[str], tmp_path: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / POLICY_FILE).write_text("turnover_cap_bp: 900\ngross_cap_bp: 6000\n")
    open_book(ledger, "held", BookSettings(max_volume_share=0.0), LATER)
    step_book(ledger, "held", BookData(panel, "small", since=panel.dates[-6].astype(object)), lambda: LATER)
    last = list_steps(ledger, "book-held")[-1]
    rulings = last["decision"]["rulings"]
    rows = [
        {
            "symbol": one["asset"],
            "evidence": one["signal"]["evidence"],
            "valid_until": one["signal"]["until"],
            **{
                name: f"{one['signal'][key] / UNITS_PER_EQUITY:.8f}"
                for name, key in (("weight", "target_e8"), ("low", "lo_e8"), ("high", "hi_e8"))
            },
        }
        for one in rulings
    ]
    refused = {one["asset"] for one in rulings if not one["approved"]}
    assert refused
    file = str(write(tmp_path / "asked.csv", rows))
    facts = ask(capsys, [file, "--book", "held", *place], 1)
    assert {row["symbol"] for row in facts["refusals"]} == refused
    assert run_command(["book", "halt", "held", "--reason", "test", "--by", "Ada", "--workspace", str(workspace)]) == 0
    facts = ask(capsys, [file, "--book", "held", *place], 1)
    assert facts["approved"] == 0, "an order that no step has taken in counts"
    earlier = str(panel.dates[-2])
    assert run_command(["risk", "check", file, "--book", "held", *place, "--day", earlier]) == 2
    assert last["day"] in capsys.readouterr().err
