"""A campaign's local model remarks on its results, which hold nothing of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from alphaloom import Campaign
from alphaloom.agents.offline import answer_offline
from alphaloom.desk.remarks import ACCOUNT_PAGE

from ..router.served import chatting
from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

MARKER = "zebrafish"


def say(messages: Sequence[Mapping[str, Any]], seed: int) -> str:
    """Answer agents as the offline researcher does, and the desk in words of its own."""
    if messages[0]["content"] == ACCOUNT_PAGE:
        return json.dumps({"account": f"The desk looked for {MARKER} factors and tells plainly what it found."})
    return answer_offline(messages, seed)


def test_a_remark_is_in_the_report_alone_and_no_model_elsewhere_is_asked_for_it(files: Files, tmp_path: Path) -> None:
    with chatting(say) as near, chatting(say) as cloud:
        models = {
            "near": {"model": "hosted_vllm/near", "place": "local", "api_base": near.address},
            "cloud": {
                "model": "hosted_vllm/big", "tier": "frontier", "api_base": cloud.address,
                "input_cost_per_mtok": 0, "output_cost_per_mtok": 0,
            },
        }  # fmt: skip  # a table
        brief = ["agents.rounds=1", "agents.hypotheses=2", "budget.evaluations=8", "budget.trials=2"]
        overrides = [*markets.BRIEF, *brief, f"models.models={json.dumps(models)}"]
        result = Campaign.from_yaml(files.campaign, workspace=tmp_path, overrides=overrides).run()
    assert result.report is not None
    assert MARKER in result.report.read_text()
    assert json.loads((result.folder / "remark.json").read_text())["model"] == "hosted_vllm/near"
    holding = sorted(
        path.name for path in result.folder.iterdir() if path.is_file() and MARKER.encode() in path.read_bytes()
    )
    assert holding == ["remark.json", "report.html"]
    assert (MARKER in str(result.record), any(ACCOUNT_PAGE[:60] in body for body in cloud.bodies)) == (False, False)
