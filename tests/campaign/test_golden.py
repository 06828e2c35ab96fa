"""Campaigns give the results that were frozen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.evaluation import CampaignResult

from ..golden.frozen import agrees, facts_of_results, words_of

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_a_small_campaign(finished: CampaignResult) -> None:
    agrees("facts", "small campaign", facts_of_results(finished.record))
    agrees("words", "small campaign", words_of(finished.record))


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    assert run_command(["run", "--workspace", str(tmp_path)]) == 0
    (file,) = tmp_path.glob("runs/*/results.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    agrees("facts", "demo", facts_of_results(results))
    agrees("words", "demo", words_of(results))
