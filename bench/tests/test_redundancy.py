"""The benchmark of redundancy runs, and tells what it measured."""

from __future__ import annotations

from bench.evidence.redundancy import arguments, lines, measured


def test_a_small_library_is_measured_and_told() -> None:
    given = "--library 12 --candidates 4 --days 300 --names 40 --sketches 50"
    options = arguments(given.split())
    row = measured(options)
    assert (row.library, row.candidates, row.sketches) == (12, 4, 50)
    assert row.agree == row.above <= 4
    assert "extrapolated to 50" in "\n".join(lines(row, options))
