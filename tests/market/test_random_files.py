"""Files made at random each load to the panel of the tidy table, or are refused on one screen that names a setting."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from alphaloom.market import PanelError, PanelSource, panel_from, read_panel

from .random_files import RandomFile, settle, write_random_file

SCREEN = (40, 100)
"""Lines and characters."""


def check_file(file: RandomFile) -> str:
    """Return how a file came out: read, or read once the settings that the message names were given, or refused."""
    truth = panel_from(file.truth)
    try:
        read = read_panel(PanelSource(file.path))
    except PanelError as problem:
        message = check_screen(problem, file.story)
        assert file.damaged or [name for name in file.settings if f"{name}: " in message], f"{file.story}\n{message}"
    else:
        assert not file.damaged, file.story
        assert read == truth, file.story
        return "read"
    try:
        read = read_panel(PanelSource(file.path, reading=settle(file)))
    except PanelError as problem:
        if not file.damaged:
            pytest.fail(f"{file.story}\n{problem}")
        check_screen(problem, file.story)
        return "refused"
    assert not file.damaged, file.story
    assert read == truth, file.story
    return "asked"


def check_screen(problem: PanelError, story: str) -> str:
    """Return the message of an error, which fits on a screen and advises nobody to drop rows."""
    message = str(problem)
    lines = [part for line in message.splitlines() for part in textwrap.wrap(line, SCREEN[1])]
    assert len(lines) <= SCREEN[0], f"{story}\n{message}"
    assert "drop" not in message.replace("drop_equal", ""), f"{story}\n{message}"
    return message


@pytest.mark.parametrize("block", range(4))
def test_a_random_file_is_read_or_asks_for_a_setting(tmp_path: Path, block: int) -> None:
    outcomes = []
    for seed in range(15 * block, 15 * block + 15):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcomes.append(check_file(write_random_file(folder, seed)))
    assert {"read", "asked"} <= set(outcomes)


@pytest.mark.slow
def test_five_hundred_random_files_are_read_or_ask_for_a_setting(tmp_path: Path) -> None:
    outcomes = {"read": 0, "asked": 0, "refused": 0}
    for seed in range(1000, 1500):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcomes[check_file(write_random_file(folder, seed))] += 1
    print(outcomes)
    assert sum(outcomes.values()) == 500
    assert outcomes["read"] > 200
    assert outcomes["refused"] < 100
