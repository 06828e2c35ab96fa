"""A policy is read with every mistake at once, and two are compared."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.desk.cli.risk import policy

MINE = """single_name_cap_bp: 150
gross_cap_bp: 26000
sector_cap_bp: 500
exceptions:
  - {evidence: f81d0c0de, rule: proven, reason: textbook, owner: Ada, until: 2027-06-30}
  - {evidence: f81d0c0de, rule: original, reason: textbook, owner: Ada, until: 2025-06-30}
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(policy, "read_today", lambda: date(2027, 6, 1))
    (tmp_path / "mine.yaml").write_text(MINE)
    return tmp_path / "mine.yaml"


def test_a_policy_is_shown_beside_the_shipped_one(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["risk", "policy", "check", str(mine), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    changes = {row["limit"]: row["change"] for row in facts["limits"] if row["change"]}
    assert changes == {"single_name_cap_bp": "tighter", "gross_cap_bp": "looser", "sector_cap_bp": "added"}
    assert [(one["rule"], one["days_left"], one["expired"]) for one in facts["exceptions"]] == [
        ("original", 0, True),
        ("proven", 29, False),
    ]
    assert run_command(["risk", "policy", "check", str(mine)]) == 0
    printed = capsys.readouterr().out
    assert "500 (tighter)" in printed
    assert "EXPIRED" in printed
    assert "29 days left" in printed


def test_the_policy_of_the_workspace_or_the_shipped_one(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--workspace", str(tmp_path)]
    assert run_command(["risk", "policy", "check", *place]) == 0
    assert "the shipped policy" in capsys.readouterr().out
    mine.rename(tmp_path / "policy.yaml")
    assert run_command(["risk", "policy", "check", *place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(tmp_path / "policy.yaml")


def test_every_mistake_at_once(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text("gross_cap_bp: -1\nnets: 3\nrestricted: ABC\n")
    assert run_command(["risk", "policy", "check", str(mine), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["mistakes"]
    assert [one["field"] for one in found] == ["gross_cap_bp", "nets", "restricted"]
    assert run_command(["risk", "policy", "check", str(mine.with_name("none.yaml"))]) == 2
    assert "no policy file" in capsys.readouterr().err


def test_two_policies_differ_or_not(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["risk", "policy", "diff", str(mine), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert [row["change"] for row in facts["changes"]] == ["tighter", "looser", "added", "added", "added"]
    assert run_command(["risk", "policy", "diff", str(mine)]) == 1
    assert "until 2027-06-30" in capsys.readouterr().out
    assert run_command(["risk", "policy", "diff", str(mine), str(mine)]) == 0
    assert "the same limits" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["signed"], ["sign", "--by", "ada", "--until", "2199-12-31"]])
def test_limits_of_a_folder_that_does_not_exist_are_not_signed(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALPHALOOM_KEYS", str(tmp_path / "keys"))
    assert run_command(["risk", "policy", *words, "--workspace", str(tmp_path / "nowhere"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["field"] == "--workspace"
    assert list(tmp_path.iterdir()) == []
