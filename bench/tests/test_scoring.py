"""The benchmark of scoring runs without its rivals, and says that they are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.evidence.scoring import main


def test_our_own_sheet_is_timed_and_missing_rivals_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--days", "90", "--names", "40", "--repeats", "1", "--environments", str(tmp_path)]
    assert main(given) == 0
    told = capsys.readouterr()
    assert told.out.count("alphaloom ") == 2
    assert told.err.count("is not installed") == 4
