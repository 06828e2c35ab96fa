"""The benchmark of search on a real panel: intervals, size, and openings that are counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alphaloom.factors import rank_rows, row_rank_correlation
from alphaloom.market import Panel, SyntheticConfig, simulate
from bench.search import real
from bench.search.promises import kept
from bench.search.real import BLOCK, difference, interval, neutral_rank_ic
from bench.search.world import labelled


@pytest.fixture(scope="module")
def panel() -> Panel:
    return simulate(SyntheticConfig(seed=5, days=600, names=50)).panel


def test_the_interval_is_that_of_resampled_blocks() -> None:
    rng = np.random.default_rng(3)
    daily = np.repeat(rng.normal(0.01, 0.05, 40), 10)
    means = []
    for _ in range(2000):
        days: list[int] = []
        while len(days) < len(daily):
            start = int(rng.integers(0, len(daily)))
            days += [(start + step) % len(daily) for step in range(BLOCK)]
        means.append(np.mean(daily[days[: len(daily)]]))
    assert interval(daily) == pytest.approx(np.quantile(means, (0.025, 0.975)), abs=0.0015)
    assert interval(daily) == interval(daily)
    assert np.isnan(interval(daily[: BLOCK + 1])).all()


def test_a_difference_is_taken_on_days_that_both_have() -> None:
    one, other = np.array([0.1, np.nan, 0.3]), np.array([0.2, 0.1, 0.1])
    assert difference(one, other) == pytest.approx([-0.1, 0.2])


def test_a_score_that_is_size_says_nothing_once_size_is_out(panel: Panel) -> None:
    world = labelled("", panel)
    size = world.size.astype(np.float32)
    assert np.isnan(neutral_rank_ic(size, world)).all()
    noise = np.random.default_rng(0).standard_normal(size.shape).astype(np.float32)
    mixed = (rank_rows(noise) + 3 * rank_rows(size)).astype(np.float32)
    days = world.windows.sealed
    plain = row_rank_correlation(np.ascontiguousarray(days.cut(noise)), np.ascontiguousarray(days.cut(world.label)))
    found = neutral_rank_ic(mixed, world)
    there = ~np.isnan(found)
    assert np.corrcoef(found[there], plain[there])[0, 1] > 0.85


def test_openings_are_numbered_once(panel: Panel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, names = np.nonzero(panel.universe)
    table = {name: panel.fields[name][rows, names] for name in ("open", "high", "low", "close", "volume")}
    table |= {"date": panel.dates[rows].astype("datetime64[s]"), "symbol": np.array(panel.symbols)[names]}
    pd.DataFrame(table).to_parquet(tmp_path / "prices.parquet", index=False)
    asked = [
        "--panel",
        str(tmp_path / "prices.parquet"),
        "--evaluations",
        "20",
        "--seeds",
        "2",
        "--folder",
        str(tmp_path),
        "--seal",
        str(tmp_path / "seal"),
    ]
    asked += ["--method", "textbook", "--method", "random", "--json", str(tmp_path / "told.json")]
    assert real.main(asked) == 0
    first = capsys.readouterr()
    lines = first.out.splitlines()
    assert lines[-4].startswith("ten textbook formulas")
    assert lines[-4].endswith("  1")
    assert lines[-3].endswith("  2, 3")
    assert ": 3; the more" in lines[-1]
    assert real.main(asked) == 0
    assert capsys.readouterr().out == first.out
    asked[3] = "25"  # what was allowed more is another search, and looks anew
    assert real.main(asked) == 0
    assert ": 6; the more" in capsys.readouterr().out
    assert set(json.loads((tmp_path / "told.json").read_text())) == {
        "ten textbook formulas",
        "random, the plants' grammar",
    }


def test_promises_are_held_against_the_best_rival() -> None:
    def row(recall: float, correlation: float, **more: int) -> dict[str, object]:
        return {"recall": recall, "correlation": correlation, "cpu_s": 1.0, **more}

    rows = {
        "oracle": [row(1.0, 0.9)] * 3,
        "Alphaloom, offline": [
            row(0.8, 0.78, accepted=10, false=1),
            row(0.6, 0.9, accepted=10, false=0),
            row(1.0, 0.7),
        ],
        "Alphaloom, offline, without memory": [row(1.0, 1.0)] * 3,
        "random": [row(0.5, 0.68)] * 3,
        "boosted": [row(0.8, 0.5)] * 3,
    }
    assert [holds for holds, _ in kept(rows)] == [True, False, True, True, True]
    assert "0.80, boosted" in kept(rows)[1][1]
    assert kept({"random": [row(0.5, 0.5)]}) == []
