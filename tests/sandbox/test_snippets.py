"""Factors as people write them, and looks ahead as people hide them, through the jail and the proof.

`make causality` sweeps every one of them over all days.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from alphaloom.sandbox import CausalProof, Job, NotCausal, Sandbox, SandboxUnavailable, prove
from alphaloom.sandbox.causality.comparison import TOLERANCE, find_first_change, round_values

from .panels import code, frames, snippets

pytestmark = pytest.mark.integration

PANEL = frames()
LEGITIMATE, CHEATS = snippets("legitimate"), snippets("cheats")
SWEPT = "# Found by the sweep."


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        with Sandbox() as jail:
            yield jail
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field} is missing on this machine")


def name(path: Path) -> str:
    return path.stem


def needs_sweep(path: Path) -> bool:
    return SWEPT in path.read_text(encoding="utf-8")


def is_refused(sandbox: Sandbox, path: Path, *, sweep: bool) -> None:
    """Check that the snippet is refused, and that the cell that is named does look ahead."""
    text = code(path, PANEL)
    with pytest.raises(NotCausal) as caught:
        prove(sandbox, text, PANEL, sweep, seed=0, cuts=4)
    error = caught.value
    assert error.read is not None
    assert error.day < error.read
    assert str(error.day) in error.message
    assert error.symbol in error.message
    row = int(np.flatnonzero(PANEL.dates == np.datetime64(error.day))[0])
    later = int(np.flatnonzero(PANEL.dates == np.datetime64(error.read))[0])
    if "cut off" in error.message:
        whole, with_it, without = (
            outcome.unwrap()
            for outcome in sandbox.run_each(Job(text, PANEL, rows) for rows in (None, later + 1, later))
        )
        day, cell = np.s_[row : row + 1], (row, PANEL.symbols.index(error.symbol))
        assert abs(whole[cell] - with_it[cell]) <= TOLERANCE * (1 + abs(whole[cell])) or np.isnan(whole[cell])
        assert find_first_change(whole[day], without[day]) is not None
        assert whole[cell] != without[cell]


def test_there_are_enough_of_them() -> None:
    assert len(LEGITIMATE) >= 40
    assert len(CHEATS) >= 40
    for path in CHEATS:
        assert path.read_text(encoding="utf-8").startswith("# Looks at ")


def hands_on_its_values(sandbox: Sandbox, text: str, proof: CausalProof) -> bool:
    expected = sandbox.run(text, PANEL)
    expected[: proof.start_up] = np.nan
    return np.array_equal(proof.values, round_values(expected), equal_nan=True)


@pytest.mark.parametrize("path", LEGITIMATE, ids=name)
def test_a_legitimate_factor_passes(sandbox: Sandbox, path: Path) -> None:
    text = code(path, PANEL)
    assert hands_on_its_values(sandbox, text, prove(sandbox, text, PANEL, seed=0, cuts=2))


@pytest.mark.parametrize("path", [path for path in CHEATS if not needs_sweep(path)], ids=name)
def test_a_look_ahead_is_found_at_a_few_cuts(sandbox: Sandbox, path: Path) -> None:
    is_refused(sandbox, path, sweep=False)


@pytest.mark.parametrize("path", [path for path in CHEATS if needs_sweep(path)], ids=name)
def test_a_rare_look_ahead_is_found_by_the_sweep(sandbox: Sandbox, path: Path) -> None:
    is_refused(sandbox, path, sweep=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", LEGITIMATE, ids=name)
def test_a_legitimate_factor_passes_the_sweep(sandbox: Sandbox, path: Path) -> None:
    text = code(path, PANEL)
    proof = sandbox.prove(text, PANEL, sweep=True)
    assert proof.point_in_time
    assert hands_on_its_values(sandbox, text, proof)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("path", CHEATS, ids=name)
def test_a_look_ahead_is_found_whatever_the_seed(sandbox: Sandbox, path: Path, seed: int) -> None:
    with pytest.raises(NotCausal):
        sandbox.prove(code(path, PANEL), PANEL, sweep=needs_sweep(path), seed=seed)
