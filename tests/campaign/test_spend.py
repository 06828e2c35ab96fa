"""What `alphaloom models spend` says of a campaign that has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from alphaloom.desk.cli.main import run_command

pytestmark = pytest.mark.integration

if TYPE_CHECKING:
    from alphaloom.evaluation import CampaignResult

Capture = pytest.CaptureFixture[str]


def told(capsys: Capture, finished: CampaignResult, *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert (
        run_command(["models", "spend", *arguments, "--workspace", str(finished.folder.parent.parent), "--json"]) == 0
    )
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def test_a_finished_campaign_is_billed_as_its_results_say(finished: CampaignResult, capsys: Capture) -> None:
    said, spend = told(capsys, finished, "latest"), finished.record["spend"]
    assert said["run"] == finished.run
    assert {name: said[name] for name in ("calls", "tokens_in", "tokens_out", "usd")} == {
        name: spend[name] for name in ("calls", "tokens_in", "tokens_out", "usd")
    }
    assert said["by_role"] == spend["by_role"]
    assert said["by_model"] == spend["by_model"]
    assert sum(bill["calls"] for bill in said["by_intent"].values()) == spend["calls"] == said["by_tenant"][""]["calls"]
    assert said["accepted"] == len(finished.record["accepted"]) > 0
    assert said["per_accepted"]["calls"] == spend["calls"] / said["accepted"]
    assert said["escalations"]["unknown"] == said["reused"] == 0
    assert said["always"]["local"] == {"usd": 0.0, "why": "", "estimate": True}
    assert said["always"]["frontier"]["why"] == f"run {finished.run} names no frontier model"
    assert said["held"] == {"calls": 0, "usd": 0.0}


def test_the_day_and_nobody_in_particular_have_the_same_calls(finished: CampaignResult, capsys: Capture) -> None:
    whole = told(capsys, finished, finished.run)
    for scope in (["--day", "2199-07-09"], ["--tenant", ""], ["latest", "--day", "2199-07-09", "--tenant", ""]):
        said = told(capsys, finished, *scope)
        assert {name: said[name] for name in ("calls", "by_role", "accepted")} == {
            name: whole[name] for name in ("calls", "by_role", "accepted")
        }
    for scope in (["--day", "2199-07-10"], ["--tenant", "desk"]):
        assert told(capsys, finished, *scope)["calls"] == 0


def test_a_person_is_told_in_lines(finished: CampaignResult, capsys: Capture) -> None:
    workspace = str(finished.folder.parent.parent)
    assert run_command(["models", "spend", "latest", "--workspace", workspace]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for said in (finished.run, "for each accepted", "always local $0.00 (an estimate: the same tokens)", "role factor"):
        assert said in text
    assert run_command(["models", "spend", "--workspace", workspace]) == 2
    assert "give a run, --day or --tenant" in capsys.readouterr().err
