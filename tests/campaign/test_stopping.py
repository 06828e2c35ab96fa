"""A run that another process stops: it ends the step under way, and ends the same when it is gone on with."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.campaign import Progress
from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import CampaignResult
from alphaloom.evidence.errors import RunHalted
from alphaloom.ledger import Ledger
from alphaloom.ledger.runs import ask_to_stop

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def asker(workspace: Path, when: Callable[[Progress], bool]) -> Callable[[Progress], None]:
    """Return what asks a run to stop, once, from a ledger of its own, when its progress is so far."""
    asked: list[bool] = []

    def show(progress: Progress) -> None:
        if not asked and when(progress):
            asked.append(True)
            with Ledger.open(workspace, clock=lambda: markets.NOON) as ledger:
                ask_to_stop(ledger.events, ledger.runs.find("latest").id, "somebody")

    return show


def scored(number: int) -> Callable[[Progress], bool]:
    return lambda progress: progress.counts.scored >= number


def test_stopped_twice_it_ends_the_same(files: Files, finished: CampaignResult, tmp_path: Path) -> None:
    ready = Campaign.from_yaml(files.campaign, workspace=tmp_path, overrides=markets.CLOSING)
    with pytest.raises(RunHalted, check=lambda error: error.code == "stopped", match="nothing is lost"):
        ready.run(asker(tmp_path, scored(1)))
    with pytest.raises(RunHalted, check=lambda error: error.code == "stopped"):
        Campaign.resume("latest", workspace=tmp_path, progress=asker(tmp_path, scored(20)))
    result = Campaign.resume("latest", workspace=tmp_path)
    assert (result.folder / "results.json").read_bytes() == (finished.folder / "results.json").read_bytes()
    with Ledger.open(tmp_path, clock=lambda: markets.NOON) as ledger:
        words = [status for _, status in ledger.runs.statuses(result.run)]
    assert words == ["running", "stopped", "running", "stopped", "running", "done"]


def test_a_search_that_a_person_ends_closes_with_a_report(files: Files, tmp_path: Path, capsys: Capture) -> None:
    ready = Campaign.from_yaml(files.campaign, workspace=tmp_path, overrides=markets.CLOSING)
    with pytest.raises(RunHalted, check=lambda error: error.code == "stopped"):
        ready.run(asker(tmp_path, lambda progress: progress.counts.scored >= 16))
    assert run_command(["stop", "latest", "--close", "--by", "ann", "--workspace", str(tmp_path)]) == 0
    assert "it closes when it is resumed" in capsys.readouterr().out
    assert run_command(["resume", "latest", "--workspace", str(tmp_path), "--json"]) == 0
    results = said(capsys)
    assert results["ended"].startswith("a person ended the search")
    assert results["trials"] > 0
    assert Path(results["report"]).exists()
    assert run_command(["status", "--workspace", str(tmp_path), "--json"]) == 0
    told = said(capsys)
    assert (told["state"], told["ended"]) == ("done", results["ended"])


def test_with_nothing_running_stop_says_so(finished: CampaignResult, capsys: Capture) -> None:
    workspace = str(finished.folder.parent.parent)
    assert run_command(["stop", "latest", "--workspace", workspace]) == 0
    assert "there is nothing to stop. It is done; next: alphaloom report" in capsys.readouterr().out


def test_status_tells_of_a_finished_run(finished: CampaignResult, capsys: Capture) -> None:
    assert run_command(["status", str(finished.folder), "--json"]) == 0
    told = said(capsys)
    record = finished.record
    assert (told["state"], told["process"], told["waiting"]) == ("done", None, [])
    assert told["counts"]["proposed"] == record["attempts"]["total"]
    assert told["counts"]["scored"] == record["evaluations"]
    assert told["counts"]["accepted"] == len(record["accepted"])
    assert told["trials"] == record["trials"]
    assert told["spent"]["calls"] == record["spend"]["calls"]
    assert told["per_accepted"]["calls"] == record["spend"]["calls"] / len(record["accepted"])
    assert abs(told["best"]["t"]) == max(
        abs(entry["metrics"]["search"]["t"] or 0.0)
        for word in ("accepted", "proven", "watchlist", "rejected", "members", "untested")
        for entry in record[word]
        if not entry["members"]
    )


def test_the_clock_ends_a_campaign_with_a_report(files: Files, tmp_path: Path) -> None:
    overrides = [*markets.BRIEF, "budget.wall_s=0.000001"]
    result = Campaign.from_yaml(files.campaign, workspace=tmp_path, overrides=overrides).run()
    assert result.record["ended"].startswith("budget.wall_s: 1e-06 s of work are used up")
    assert "not repeated to the byte" in result.record["ended"]
    assert result.record["settings"]["budget"]["wall_s"] == 1e-06


def test_the_budget_of_hypotheses_ends_a_campaign_with_its_word(files: Files, tmp_path: Path, capsys: Capture) -> None:
    settings = [part for option in [*markets.BRIEF, "budget.hypotheses=4"] for part in ("--set", option)]
    assert run_command(["run", str(files.campaign), "--workspace", str(tmp_path), "--json", *settings]) == 4
    results = said(capsys)
    assert results["ended"].startswith("budget.hypotheses: all 4 hypotheses were proposed in 1 of 3 rounds")
    assert results["hypotheses"] == 4
    assert results["trials"] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals and locks are another matter there")
def test_a_process_that_runs_is_seen_and_stopped_from_another(files: Files, tmp_path: Path, capsys: Capture) -> None:
    long = [*markets.BRIEF, "agents.rounds=500", "budget.evaluations=9000"]
    settings = [part for option in long for part in ("--set", option)]
    line = [sys.executable, "-m", "alphaloom", "run", str(files.campaign), "--workspace", str(tmp_path), *settings]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(1_200):
            if list(tmp_path.glob("runs/*/now.json")) or process.poll() is not None:
                break
            time.sleep(0.05)
        assert run_command(["status", "--workspace", str(tmp_path), "--json"]) == 0
        told = said(capsys)
        assert (told["state"], told["process"]) == ("running", str(process.pid))
        assert run_command(["stop", "latest", "--wait", "300", "--workspace", str(tmp_path), "--json"]) == 0
        assert said(capsys) | {"next": ""} == {"run": told["run"], "was_running": True, "state": "stopped", "next": ""}
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"resume with: alphaloom resume {told['run']} --workspace {tmp_path}" in errors
    assert "Traceback" not in errors


def test_an_interrupted_run_is_told_from_a_stopped_one(files: Files, tmp_path: Path, capsys: Capture) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.counts.scored:
            raise KeyboardInterrupt

    ready = replace(Campaign.from_yaml(files.campaign, workspace=tmp_path, overrides=markets.BRIEF))
    with pytest.raises(KeyboardInterrupt):
        ready.run(interrupt)
    assert run_command(["status", "--workspace", str(tmp_path)]) == 0
    assert ": interrupted" in capsys.readouterr().out
