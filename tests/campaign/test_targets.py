"""Targets of a day are those that the campaign asked for, and what is retired, decaying or missing says so."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from alphaloom.campaign import DECAYING_SHARE, build_targets
from alphaloom.campaign.targets import find_live_books
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import CampaignResult
from alphaloom.ledger import Ledger, StatusChange
from alphaloom.market import Panel
from alphaloom.risk import POLICY_FILE, RiskError

from .conftest import Files

pytestmark = pytest.mark.integration


def retire(ledger: Ledger, name: str, status: str) -> None:
    ledger.library.record(standings=[StatusChange(name, status, status, "hand", "seen", "2026-01-01")])


def test_targets_are_what_the_campaign_asked_for_to_the_last_digit(
    finished: CampaignResult, ledger: Ledger, panel: Panel
) -> None:
    signals = finished.record["signals"]
    for run in (finished.run, ""):
        built = build_targets(ledger, panel, run=run)
        assert built.trade.decision.id == signals["id"]
        assert signals["approved"] == len(built.trade.decision.approved) > 0
    assert signals["policy_notes"] == []
    assert signals["rounding_bp"] < 2e-4


def test_an_earlier_day_reads_nothing_later(finished: CampaignResult, ledger: Ledger, panel: Panel) -> None:
    days = panel.days - 30
    past = np.arange(panel.days)[:, None] < days
    later = {name: np.where(past, values, values * 2.0).astype(values.dtype) for name, values in panel.fields.items()}
    told = [find_live_books(ledger, one).weights(days - 1) for one in (panel, replace(panel, fields=later))]
    assert told[0] == told[1] == find_live_books(ledger, panel.rows(0, days)).weights()


def test_what_is_held_counts_and_what_is_no_longer_wanted_is_closed(ledger: Ledger, panel: Panel) -> None:
    wanted = {signal.asset for signal in build_targets(ledger, panel).trade.book.signals}
    idle = next(name for name in panel.symbols if name not in wanted)
    built = build_targets(ledger, panel, held={idle: 1_000_000})
    closing = next(signal for signal in built.trade.book.signals if signal.asset == idle)
    assert (closing.target_e8, closing.reason.endswith("no longer wanted")) == (0, True)


def test_a_decaying_factor_has_half_a_retired_one_nothing(
    finished: CampaignResult, ledger: Ledger, panel: Panel
) -> None:
    whole = sum(abs(weight) for weight in build_targets(ledger, panel).trade.weights.values())
    (name, *_) = build_targets(ledger, panel).live.books[finished.run][0].evidence
    retire(ledger, name, "decaying")
    half = sum(abs(weight) for weight in build_targets(ledger, panel).trade.weights.values())
    assert half == pytest.approx(DECAYING_SHARE * whole)
    retire(ledger, name, "retired")
    with pytest.raises(RiskError, match="is retired") as refused:
        build_targets(ledger, panel, run=finished.run)
    assert refused.value.code == "no_targets"


def test_a_factor_by_hand_is_traded_by_exception_alone(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    place = ["--workspace", str(workspace)]
    assert run_command(["library", "add", "rank(-ts_std(returns, 20))", *place]) == 0
    name = next(row.factor_id for row in ledger.library.rows() if row.origin == "by_hand")
    refused = build_targets(ledger, panel)
    assert refused.live.books[name][1] == pytest.approx(0.5), "it shares equity with the run"
    assert not refused.trade.decision.approved
    rules = ", ".join(
        f"{{evidence: {name}, rule: {rule}, reason: textbook, owner: Ada, until: 2999-01-01}}"
        for rule in ("proven", "original")
    )
    (workspace / POLICY_FILE).write_text(f"exceptions: [{rules}]\n")
    assert build_targets(ledger, panel).trade.decision.approved


def test_a_panel_that_is_too_short_is_told(finished: CampaignResult, ledger: Ledger, panel: Panel) -> None:
    with pytest.raises(RiskError, match=r"needs [0-9]+ days, and the panel has 3"):
        build_targets(ledger, panel.rows(0, 3))


def test_the_command_writes_the_same_table_in_three_formats(
    finished: CampaignResult, files: Files, workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["targets", "--workspace", str(workspace), "--panel", str(files.panel), "--sectors", str(files.sectors)]
    for ending in ("csv", "json", "parquet"):
        assert run_command([*asked, "--out", str(tmp_path / f"out.{ending}")]) == 0
    printed = capsys.readouterr().out
    assert "approved" in printed
    rows = json.loads((tmp_path / "out.json").read_text())
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == rows
    with (tmp_path / "out.csv").open(newline="") as lines:
        read = list(csv.DictReader(lines))
    assert [row["symbol"] for row in read] == [row["symbol"] for row in rows]
    assert [float(row["weight"]) for row in read] == pytest.approx([row["weight"] for row in rows], abs=1e-8)
    assert run_command([*asked, "--out", str(tmp_path / "out.csv")]) == 1, "nothing is written over"
    assert run_command([*asked, "--out", str(tmp_path / "out.xls")]) == 2
    assert run_command([*asked, "--day", "2199-01-01"]) == 2
    (tmp_path / "held.csv").write_text("symbol,weight\nNOBODY,0.1\n")
    assert run_command([*asked, "--held", str(tmp_path / "held.csv")]) == 2
    assert "line 2" in capsys.readouterr().err


def test_the_policy_of_the_workspace_decides(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    (workspace / POLICY_FILE).write_text("similarity_cap_bp: 0\n")
    decision = build_targets(ledger, panel).trade.decision
    assert not decision.approved
    assert all("original" in ruling.refusals for ruling in decision.rulings)
