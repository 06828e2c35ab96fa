"""The benchmark of the index runs, and tells what it measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from alphaloom.factors import sample
from bench.evidence.__main__ import main
from bench.evidence.index import arguments, formulas, lines, measured


def test_a_small_index_is_measured_and_told(tmp_path: Path) -> None:
    options = arguments(["--queries", "5", "--variants", "50"])
    rng = np.random.default_rng(0)
    row = measured(tmp_path, 300, [sample(rng) for _ in range(105)], options)
    assert row.formulas == 300
    assert 0 < row.p50_us <= row.p99_us <= row.most_us
    report = "\n".join(lines([row], {"pair": 10.0, "parsed": 2000.0}, [500.0, 700.0], options))
    assert "extrapolated" in report
    assert "| 300 |" in report


def test_variants_are_drawn_from_the_seed_alone() -> None:
    first, again = ([known for known, _ in formulas(3, 40, 10)] for _ in range(2))
    assert first == again
    assert len({known.name for known in first}) == 40


def test_parts_are_listed() -> None:
    assert (main([]), main(["nothing"])) == (0, 2)
