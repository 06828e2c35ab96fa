"""A book under a scenario, by the command: what it says, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphaloom.campaign import BookData, BookSettings, list_steps, open_book, step_book
from alphaloom.campaign.facts import read_facts
from alphaloom.desk.cli.main import run_command
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

from ..market.vendor import Vendor
from .conftest import Files
from .test_book import shell_out

pytestmark = pytest.mark.integration
LATER = datetime(2199, 7, 9, tzinfo=UTC)


@pytest.fixture
def place(ledger: Ledger, panel: Panel, files: Files, workspace: Path) -> list[str]:
    """Return the book's name and its data, after five steps."""
    open_book(ledger, "held", BookSettings(max_volume_share=0.0), LATER)
    since: date = panel.dates[-5].astype(object)
    step_book(ledger, "held", BookData(panel, "small", since=since), lambda: LATER)
    return ["held", "--workspace", str(workspace), "--panel", str(files.panel), "--sectors", str(files.sectors)]


def stress(capsys: pytest.CaptureFixture[str], place: list[str], scenario: str, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["book", "stress", *place, "--scenario", scenario, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_month_moves_each_name_by_its_own_return(
    place: list[str], panel: Panel, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    month = str(panel.dates[120].astype("datetime64[M]"))
    facts = stress(capsys, place, month)
    rows = np.flatnonzero(panel.dates.astype("datetime64[M]").astype(str) == month)
    close = panel.fields["close"]
    column = {name: number for number, name in enumerate(panel.symbols)}
    own = [row for row in facts["names"] if np.isfinite(close[rows[0] - 1 : rows[-1] + 1, column[row["symbol"]]]).all()]
    assert own
    for row in own:
        expected = close[rows[-1], column[row["symbol"]]] / close[rows[0] - 1, column[row["symbol"]]] - 1
        assert row["move"] == pytest.approx(expected)
    held = list_steps(ledger, "book-held")[-1]["account"]["holdings"]
    assert {row["symbol"] for row in facts["names"]} == held.keys()
    assert sum(row["loss"] for row in facts["names"]) == pytest.approx(facts["loss"])
    assert run_command(["book", "stress", *place, "--scenario", month]) == 0
    assert "90 % of the book is sold" in capsys.readouterr().out
    assert "1999-01" in stress(capsys, place, "1999-01", 2)["got"]


@pytest.mark.parametrize(("table", "window"), [("openings", "sealed"), ("trials", "selection")])
def test_a_month_of_a_window_that_nobody_paid_for_is_refused(
    place: list[str], ledger: Ledger, workspace: Path, table: str, window: str, capsys: pytest.CaptureFixture[str]
) -> None:
    day = getattr(ledger.trials.boundaries()[0], f"{window}_start")
    stress(capsys, place, day[:7])
    shell_out(workspace, f"DELETE FROM {table}")
    refused = stress(capsys, place, day[:7], 1)
    assert refused["code"] == "unpaid_days"
    assert refused["field"] == "--scenario"
    assert f"belong to a {window}" in refused["message"]


def test_the_value_traded_is_the_same_in_quoted_and_in_adjusted_volumes() -> None:
    vendor = Vendor.of(120, 20, comes=70)
    actions = vendor.actions([(118, 3, 0, 7.0)])
    quoted, adjusted = (
        read_facts(replace(vendor.sold(120, actions, kind), volumes=kind)) for kind in ("quoted", "adjusted")
    )
    for name, facts in quoted.items():
        assert adjusted[name].usual_value == pytest.approx(facts.usual_value), name


def test_a_fall_of_what_is_held_binds_the_limits_on_falls(
    place: list[str], tmp_path: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = stress(capsys, place, "crash")
    rows = [f"{one['symbol']},,{-1 if one['weight'] > 0 else 1}" for one in held["names"]]
    file = tmp_path / "moves.csv"
    file.write_text("\n".join(["symbol,sector,move", *rows]))
    facts = stress(capsys, place, str(file))
    gross = sum(abs(one["weight"]) for one in held["names"])
    assert facts["loss_share"] == pytest.approx(gross)
    binding = {row["rule"]: row["new"] for row in facts["binding"]}
    assert binding["daily_loss"]
    assert binding["trailing_drawdown"]
    assert run_command(["book", "stress", *place, "--scenario", str(file)]) == 0
    assert "daily loss" in capsys.readouterr().out
    file.write_text("symbol,move\n*,0\n")
    assert stress(capsys, place, str(file))["loss"] == 0
    file.write_text("symbol,sector,move\nA,banks,-0.1\n,,0.1\nB,,-2\nB,,0.1\nC,,0.1\nC,,0.1\n")
    found = stress(capsys, place, str(file), 2)
    assert [one["line"] for one in found["mistakes"]] == [2, 3, 4, 7]
    file.write_text("symbol,sector,move\n,Nothing,-0.1\n")
    assert "Finance" in stress(capsys, place, str(file), 2)["allowed"]


def test_what_cannot_be_put_under_a_scenario_says_so(
    place: list[str], ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "yield_10y" in stress(capsys, place, "rates +2.0", 2)["hint"]
    assert "mood" in stress(capsys, place, "mood +1", 2)["message"]
    assert "crash" in stress(capsys, place, "rates +200bp", 2)["allowed"]
    open_book(ledger, "empty", BookSettings(), LATER)
    assert stress(capsys, ["empty", *place[1:]], "crash", 1)["code"] == "empty_book"
