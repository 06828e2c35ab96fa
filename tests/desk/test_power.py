"""The power command: a sentence and a table, one object, and no trial spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from alphaloom.desk.cli.evidence.power import TABLE_TRIALS
from alphaloom.desk.cli.main import run_command

pytestmark = pytest.mark.integration

Capture = pytest.CaptureFixture[str]
FILE = "market: {synthetic: {days: 500, names: 40}}\nevidence: {level: 0.1}\n"


def test_power_is_told_before_a_trial(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text(FILE)
    ask = ["evidence", "power", "--campaign", str(file), "--workspace", str(tmp_path / "w"), "--trials", "7"]
    assert run_command([*ask, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["trials"] for row in told["table"]] == sorted({*TABLE_TRIALS, 7})
    assert (told["trials"], told["level"], told["trials_spent_here"]) == (7, 0.1, 0)
    assert told["sentence"].startswith("After 7 trials, ")
    assert run_command([*ask, "--days", "1000"]) == 0
    output = capsys.readouterr().out
    assert "994 selection days" in output
    assert "Of 1,000 days 994 are tested: what is bought on the last 6 is sold after the window's end." in output
    assert "no trials were spent" in output


def test_days_that_cannot_be_are_refused(capsys: Capture) -> None:
    assert run_command(["evidence", "power", "--days", "3", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "usage"
