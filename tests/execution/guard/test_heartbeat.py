"""The guard's signs of life: one a second while it goes on, none once it ended, the last one where it failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphaloom.execution.guard import GuardBeat, read_beat

SECOND = 1_000_000
AT_US = 1_767_000_000 * SECOND


def test_signs_of_life(tmp_path: Path) -> None:
    now = [AT_US]
    assert read_beat(tmp_path) is None
    with GuardBeat(tmp_path, lambda: now[0]) as heart:
        assert read_beat(tmp_path) == AT_US
        for later, seen in ((SECOND - 1, 0), (SECOND, SECOND), (-SECOND, -SECOND)):  # a clock may be set back
            now[0] = AT_US + later
            heart.beat()
            assert read_beat(tmp_path) == AT_US + seen
    assert read_beat(tmp_path) is None
    with pytest.raises(ConnectionError), GuardBeat(tmp_path, lambda: AT_US):
        raise ConnectionError
    assert read_beat(tmp_path) == AT_US


def test_a_disk_that_fails_does_not_stop_the_guard(tmp_path: Path) -> None:
    with GuardBeat(tmp_path / "gone", lambda: AT_US) as heart:
        heart.beat()
    assert read_beat(tmp_path / "gone") is None
