"""Several campaigns at once in one workspace, on one data set: each ends, and every look is counted once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.ledger import Ledger

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2] / ".root"
CODE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from alphaloom import Campaign
Campaign.from_yaml(sys.argv[2], workspace=Path(sys.argv[3]), overrides=sys.argv[4:]).run()
"""
SMALL = [*markets.BRIEF, "agents.rounds=2", "budget.evaluations=30"]
SEEDS = (5, 5, 6)
"""Two of them ask the same of the same days, at the same time."""


@pytest.fixture(scope="module")
def workspace(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace in which three campaigns ran at once."""
    place = tmp_path_factory.mktemp("together")
    command = [sys.executable, "-c", CODE, str(ROOT), str(files.campaign), str(place), *SMALL]
    started = [subprocess.Popen([*command, f"seed={seed}"], stderr=subprocess.PIPE) for seed in SEEDS]
    for process in started:
        _, said = process.communicate(timeout=600)
        assert process.returncode == 0, said.decode()[-2000:]
        assert b"locked" not in said
        assert b"holds" not in said
    return place


def opened(workspace: Path) -> Ledger:
    return Ledger.open(workspace, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def records(workspace: Path) -> dict[str, dict[str, Any]]:
    return {path.parent.name: json.loads(path.read_text()) for path in workspace.glob("runs/*/results.json")}


def test_each_ends_with_its_whole_budget(workspace: Path) -> None:
    with opened(workspace) as ledger:
        assert [run.status for run in ledger.runs.all()] == ["done"] * len(SEEDS)
    found = records(workspace)
    assert sorted(record["seed"] for record in found.values()) == sorted(SEEDS)
    assert all(26 < record["evaluations"] <= 30 and record["ended"] is None for record in found.values())


def test_looks_are_numbered_once_and_each_is_judged_at_a_level_of_its_own(workspace: Path) -> None:
    with opened(workspace) as ledger:
        trials = ledger.trials.all()
    assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))
    assert len({trial.run for trial in trials}) > 1
    for trial in trials:
        assert trial.outcome is not None
        found = trial.outcome["discoveries_before"]
        assert trial.outcome["level"] == pytest.approx(lond_level(trial.number, found, 0.05), rel=1e-5)
        earlier = sum((other.outcome or {})["passed"] for other in trials if other.number < trial.number)
        assert found <= earlier  # a look that was still open elsewhere counts as nothing found, which is the safe side


def test_what_the_campaigns_spent_is_what_the_workspace_counts(workspace: Path) -> None:
    found = records(workspace)
    with opened(workspace) as ledger:
        trials, paid = ledger.trials.all(), [ledger.events.of(run, "paid") for run in found]
    assert paid == [[]] * len(found)
    assert sum(record["trials"] for record in found.values()) == len(trials)
    assert Counter(trial.run for trial in trials) == Counter(
        {run: r["trials"] for run, r in found.items() if r["trials"]}
    )
    last = max(record["prior_trials"] + record["trials"] for record in found.values())
    assert last == len(trials)


def test_one_that_asks_what_another_asked_hears_the_same_and_spends_nothing(workspace: Path) -> None:
    twins = [record for record in records(workspace).values() if record["seed"] == SEEDS[0]]
    looks = [{e["id"]: e["trial"] for e in every(record) if e["trial"] is not None} for record in twins]
    shared = looks[0].keys() & looks[1].keys()
    assert shared
    assert all(looks[0][name] == looks[1][name] for name in shared)
    assert sum(record["looks_reused"] for record in twins) >= len(shared)


def every(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [*record["accepted"], *record["watchlist"], *record["rejected"], *record["untested"]]


def test_the_library_and_the_verdicts_say_the_same(workspace: Path) -> None:
    found = records(workspace)
    with opened(workspace) as ledger:
        library = {row.factor_id: row.run for row in ledger.library.rows()}
        seeds = [ledger.events.of(run, "screening") for run in found]
    kept = {run: [*record["accepted"], *record["members"]] for run, record in found.items()}
    accepted = {entry["id"]: run for run, entries in kept.items() for entry in entries}
    assert library.keys() == accepted.keys()
    assert all(library[name] in found for name in library)
    assert all(len(seed) == 1 for seed in seeds)


def test_every_verdict_can_be_run_again(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in records(workspace):
        assert run_command(["evidence", "verify", run, "--workspace", str(workspace), "--ledger-only"]) == 0
        capsys.readouterr()
