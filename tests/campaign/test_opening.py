"""The sealed window opened by hand: once for a run, written down before the look, numbered over all runs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from alphaloom.desk.cli.campaign.reported import Campaign
from alphaloom.desk.cli.main import run_command
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.ledger import Ledger

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

if TYPE_CHECKING:
    from alphaloom.evaluation import CampaignResult

Capture = pytest.CaptureFixture[str]
SHUT = [*markets.CLOSING, "evidence.open_sealed=false"]


class Killed(BaseException):
    """A process that is killed."""


def opened(capsys: Capture, run: CampaignResult, reason: str = "a person wants to know") -> tuple[int, Any]:
    """Open a run's seal from the command line."""
    code = run_command(["evidence", "open", str(run.folder), "--reason", reason, "--json"])
    return code, json.loads(capsys.readouterr().out)


def ran(files: Files, workspace: Path, minute: int) -> CampaignResult:
    """Run a campaign that leaves its seal shut."""
    ready = Campaign.from_yaml(files.campaign, workspace=workspace, overrides=SHUT)
    return replace(ready, clock=lambda: datetime(2199, 7, 9, 11, minute, tzinfo=UTC)).run()


def openings(run: CampaignResult) -> list[Any]:
    """Return what the ledger has written of openings."""
    with Ledger.open(run.folder.parent.parent, clock=lambda: datetime.now(UTC)) as ledger:
        return ledger._database.rows("SELECT number, reason FROM openings")


@pytest.fixture(scope="module")
def shut(files: Files, tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    return ran(files, tmp_path_factory.mktemp("shut"), 1)


def test_another_panel_is_refused_before_anything_is_written(
    files: Files, shut: CampaignResult, capsys: Capture
) -> None:
    before = files.panel.read_bytes()
    frame = pd.read_parquet(files.panel)
    frame.loc[frame.index[-1], "volume"] += 1
    markets.write(frame, files.panel)
    try:
        code, told = opened(capsys, shut)
    finally:
        files.panel.write_bytes(before)
    assert (code, told["field"]) == (2, "panel")
    assert openings(shut) == []


def test_a_seal_is_opened_once_and_a_crash_is_told(
    files: Files, shut: CampaignResult, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shut.record["accepted"]
    assert "This run did not open the sealed window." in (shut.folder / "report.html").read_text()
    results = (shut.folder / "results.json").read_bytes()
    look = Scorer.score

    def dying(self: Scorer, values: Any, window: Any, sign: int | None = None) -> Any:
        if window.name == "sealed":
            raise Killed
        return look(self, values, window, sign)

    monkeypatch.setattr(Scorer, "score", dying)
    with pytest.raises(Killed):
        run_command(["evidence", "open", str(shut.folder), "--reason", "the first reason"])
    monkeypatch.setattr(Scorer, "score", look)
    assert openings(shut) == [(1, "the first reason")]
    assert not (shut.folder / "sealed.json").exists()

    code, told = opened(capsys, shut, "another reason")
    assert (code, told["number"], told["reason"]) == (0, 1, "the first reason")
    assert "cut short" in told["note"]
    assert set(told["factors"]) >= {entry["id"] for entry in shut.record["accepted"]}
    assert told["window"]["name"] == "sealed"
    report = (shut.folder / "report.html").read_text()
    assert "at their first opening" in report
    assert "the first reason" in report
    assert (shut.folder / "results.json").read_bytes() == results
    kept = (shut.folder / "sealed.json").read_bytes()

    code, told = opened(capsys, shut)
    assert (code, told["number"], "nothing is counted" in told["note"]) == (0, 1, True)
    assert (shut.folder / "sealed.json").read_bytes() == kept

    later = ran(files, shut.folder.parent.parent, 2)
    assert [opening["number"] for opening in later.record["windows"]["openings"]] == [1]
    assert "the first reason" in (later.folder / "report.html").read_text()


def test_no_reason_no_opening(shut: CampaignResult, capsys: Capture) -> None:
    assert run_command(["evidence", "open", str(shut.folder)]) == 2
    code, told = opened(capsys, shut, "  ")
    assert (code, told["code"]) == (2, "usage")


def test_a_run_that_opened_at_its_close_is_shown_again(finished: CampaignResult, capsys: Capture) -> None:
    code, told = opened(capsys, finished)
    assert (code, told["number"]) == (0, finished.record["sealed"]["number"])
    assert "opened before" in told["note"]
    assert not (finished.folder / "sealed.json").exists()
