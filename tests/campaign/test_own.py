"""What a person brings along, on the real path: files beside the campaign file, and what results say of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.campaign import Progress, Show
from alphaloom.evidence.originality.published import read_published
from alphaloom.ledger import AlphaloomError, Ledger, SettingsError

from ..evidence.lab import clock
from .conftest import Files
from .test_steering import BRIEF

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
CALM = """hypotheses:
- mechanism: calm_owner
  statement: Calm names are held by those who never sell.
  who_is_on_the_other_side: gamblers
  why_it_persists: habit
  direction: -1
  horizon_days: 5
  fields: [returns]
  regime: any
  refuted_by: a t below 3
"""
SEEDS = "- ts_mean(mood, 7) - mood\n- text: ts_kurt(returns, 33) * volume\n  direction: -1\n- ts_mean(rubbish, 3)\n"


def run(files: Files, folder: Path, *more: str, progress: Show | None = None) -> dict[str, Any]:
    """Run the campaign file as it lies in a folder with the person's files."""
    path = Path(shutil.copy(files.campaign, folder / "campaign.yaml"))
    path.write_text(
        path.read_text()
        .replace("prices", str(files.panel.with_suffix("")))
        .replace(": sectors", f": {files.sectors.parent}/sectors")
    )
    return dict(Campaign.from_yaml(path, workspace=folder / "w", overrides=[*BRIEF, *more]).run(progress).record)


def test_files_of_ones_own_are_used_and_named(files: Files, tmp_path: Path) -> None:
    (tmp_path / "seeds.yaml").write_text(SEEDS)
    (tmp_path / "ideas.yaml").write_text(CALM)
    (tmp_path / "pages").mkdir()
    page = (ROOT / "agents" / "prompts" / "factor.md").read_text().replace("version: ", "version: mine ")
    (tmp_path / "pages" / "factor.md").write_text(page)
    shutil.copy(ROOT / "examples" / "own_agent.py", tmp_path / "mine.py")
    record = run(
        files, tmp_path, "steer.seed_library=seeds.yaml", "steer.hypotheses=ideas.yaml", "steer.prompts=pages",
        "steer.agent=mine.py:seasons", "steer.agent_hypotheses=1", "agents.hypotheses=3", "budget.evaluations=12",
    )  # fmt: skip  # a table
    sources = {entry["hypothesis"].get("source") for entry in (*record["rejected"], *record["untested"])}
    assert sources == {"seed library", "own hypotheses", "own agent", None}
    own = record["own"]
    assert (own["seed_library"]["factors"], own["hypotheses"], own["agent"]) == (3, 1, "mine.py:seasons")
    assert own["prompts"]["factor"]["version"].startswith("mine")
    assert {name: page["whose"] for name, page in own["prompts"].items()} == {
        "eval": "shipped",
        "factor": "own",
        "idea": "shipped",
    }
    with Ledger.open(tmp_path / "w", clock=clock) as ledger:
        attempts = {row.text: row.stage for row in ledger.attempts.of(ledger.runs.all()[-1].id)}
    assert attempts["ts_mean(rubbish, 3)"] == "parse"


def test_a_known_formula_may_be_a_seed_and_is_never_sent(files: Files, tmp_path: Path) -> None:
    known = "-ts_corr(open, volume, 10)"
    assert read_published(), "this is WorldQuant's alpha 6"
    (tmp_path / "seeds.txt").write_text(f"{known}\n")
    record = run(files, tmp_path, "evidence.published=true", "steer.seed_library=seeds.txt", "budget.trials=5")
    entry = next(
        each
        for word in ("accepted", "proven", "watchlist", "rejected", "members", "untested")
        for each in record[word]
        if each["hypothesis"].get("source")
    )
    assert entry["trial"] is None
    assert entry["reasons"][-1]["step"] == "search"


def test_every_mistake_in_a_file_of_hypotheses_is_told(files: Files, tmp_path: Path) -> None:
    broken = CALM.replace("direction: -1", "direction: up").replace("horizon_days: 5", "horizon_days: 900")
    (tmp_path / "ideas.yaml").write_text(broken + "  belief: strong\n")
    with pytest.raises(SettingsError, match="3 mistakes") as caught:
        run(files, tmp_path, "steer.hypotheses=ideas.yaml")
    for name in ("hypotheses[0].direction", "hypotheses[0].horizon_days", "hypotheses[0].belief"):
        assert name in caught.value.message


@pytest.mark.parametrize("setting", ["seed_library=no.txt", "hypotheses=no.yaml", "prompts=no", "agent=no.py:f"])
def test_a_part_that_is_not_there_is_told_before_anything_is_done(files: Files, tmp_path: Path, setting: str) -> None:
    with pytest.raises(AlphaloomError):
        run(files, tmp_path, f"steer.{setting}")
    assert not (tmp_path / "w").exists()


def test_what_was_given_is_kept_with_the_run(files: Files, tmp_path: Path) -> None:
    (tmp_path / "ideas.yaml").write_text(CALM)
    run(files, tmp_path, "steer.hypotheses=ideas.yaml", "agents.hypotheses=1", "budget.evaluations=2")
    with Ledger.open(tmp_path / "w", clock=clock) as ledger:
        kept = ledger.runs.all()[-1].config["own"]
    assert json.loads(json.dumps(kept))["hypotheses"][0]["mechanism"] == "calm_owner"


def test_what_went_wrong_with_ones_own_parts_is_told(files: Files, tmp_path: Path) -> None:
    (tmp_path / "ideas.yaml").write_text(CALM)
    (tmp_path / "mine.py").write_text("async def propose(view):\n    raise RuntimeError('no luck')\n")
    record = run(
        files,
        tmp_path,
        "steer.hypotheses=ideas.yaml",
        "steer.avoid=[calm owner]",
        "steer.agent=mine.py:propose",
        "agents.hypotheses=3",
        "budget.evaluations=4",
    )
    said = [warning["message"] for warning in record["warnings"] if warning["code"] == "own_part"]
    assert said == [
        "own hypotheses: 'calm_owner' got no branch: it is about 'calm owner', which this campaign avoids",
        "own agent, r01: RuntimeError: no luck",
    ]


def test_a_resumed_run_has_the_parts_that_it_began_with(files: Files, tmp_path: Path) -> None:
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "seeds.yaml").write_text(SEEDS)
        (tmp_path / name / "ideas.yaml").write_text(CALM)
    settings = ("steer.seed_library=seeds.yaml", "steer.hypotheses=ideas.yaml", "agents.hypotheses=2")
    whole = run(files, tmp_path / "whole", *settings)

    class Stopped(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.message == "scored":
            raise Stopped

    with pytest.raises(Stopped):
        run(files, tmp_path / "cut", *settings, progress=stop)
    for name in ("seeds.yaml", "ideas.yaml"):
        (tmp_path / "cut" / name).unlink()
    resumed = Campaign.resume("latest", workspace=tmp_path / "cut" / "w")
    assert resumed.record == whole
    assert resumed.record["own"]["seed_library"]["factors"] == 3
