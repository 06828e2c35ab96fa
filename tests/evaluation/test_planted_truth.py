"""The truth of a synthetic market, told after the last test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alphaloom.evaluation.closing import find_planted_truth
from alphaloom.factors import MarketSettings
from alphaloom.market import Plant, SyntheticConfig, simulate

from ..evidence.lab import KNOWN, Lab, known_values

Make = Callable[..., Lab]
NOISE = "ts_kurt(high / low, 25)"


def test_a_factor_is_compared_with_the_true_expected_return_and_the_plants(lab: Make) -> None:
    plants = [Plant(KNOWN, known_values, 0.08), Plant(NOISE, known_values, 0.02, end=0.2)]
    market = simulate(SyntheticConfig(seed=1, days=420, names=60), plants)
    run = lab(panel=market.panel, max_similarity=1.0, max_redundancy=1.0)
    names = [run.scored(text) for text in (KNOWN, f"-({KNOWN})", NOISE)]
    strong, turned, noise = find_planted_truth(run.evaluator, market, names, open_sealed=True)
    (closed,) = find_planted_truth(run.evaluator, market, names[:1], open_sealed=False)
    assert (closed.true_on_selection, closed.true_on_sealed) == (strong.true_on_selection, None)
    assert [strong.id, turned.id, noise.id] == names
    assert strong.true_on_selection == turned.true_on_selection  # both are held in the direction of search
    assert (strong.true_on_selection or 0.0) > 0.9
    assert (strong.nearest, strong.nearest_correlation) == (KNOWN, 1.0)
    assert abs(noise.true_on_selection or 0.0) < 0.3
    assert noise.nearest == KNOWN  # the other plant had died before the selection days


def test_prices_of_a_file_and_empty_markets_have_no_truth(tmp_path: Path) -> None:
    assert MarketSettings(panel=tmp_path / "prices.parquet").reveal(7) is None
    assert MarketSettings(synthetic=SyntheticConfig(nothing=True)).reveal(7) is None
