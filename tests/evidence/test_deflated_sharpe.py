"""Deflated Sharpe and PBO against published values."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from skfolio.measures import deflated_sharpe_ratio, expected_max_sharpe_ratio, probabilistic_sharpe_ratio

from alphaloom.evidence.gate.trial_evidence import TrialEvidence, deflated_sharpe_ratios
from alphaloom.evidence.multiple_testing.cross_validation import estimate_pbo
from alphaloom.evidence.multiple_testing.deflated_sharpe import (
    ReturnMoments,
    deflated_sharpe,
    expected_maximum,
    measure_return_moments,
    probabilistic_sharpe,
)

from .lab import Lab

DAYS = 1250
PAPER = ReturnMoments(2.5 / math.sqrt(250), -3.0, 10.0, DAYS)
VARIANCE = 0.5 / 250


@pytest.mark.parametrize(
    ("skewness", "kurtosis", "benchmark", "expected"),
    [(0, 3, 0.0, 0.982), (-2.448, 10.164, 0.0, 0.913), (0, 3, 0.1, 0.949), (-2.448, 10.164, 0.1, 0.856)],
)
def test_probabilistic_sharpe_matches_the_paper(
    skewness: float, kurtosis: float, benchmark: float, expected: float
) -> None:
    found = probabilistic_sharpe(ReturnMoments(0.458, skewness, kurtosis, 24), benchmark)
    assert found == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(("trials", "expected"), [(1, 0.0), (10, 1.5746), (100, 2.5306), (1000, 3.2551)])
def test_expected_maximum_matches_the_reference(trials: int, expected: float) -> None:
    assert expected_maximum(trials) == pytest.approx(expected, abs=5e-5)


def test_deflated_sharpe_matches_the_paper() -> None:
    assert math.sqrt(VARIANCE) * expected_maximum(100) == pytest.approx(0.1132, abs=5e-5)
    assert deflated_sharpe(PAPER, 100, VARIANCE) == pytest.approx(0.9004, abs=5e-5)
    assert deflated_sharpe(PAPER, 46, VARIANCE) == pytest.approx(0.9505, abs=5e-5)
    assert deflated_sharpe(ReturnMoments(PAPER.sharpe, 0.0, 3.0, DAYS), 88, VARIANCE) == pytest.approx(0.9505, abs=5e-5)


def test_a_series_is_measured_before_it_is_deflated() -> None:
    returns = np.random.default_rng(2).standard_normal(300) + 0.1
    assert deflated_sharpe(returns, 20, 0.001) == deflated_sharpe(measure_return_moments(returns), 20, 0.001)
    assert math.isnan(deflated_sharpe(returns, 20, math.nan))


def test_one_trial_is_not_deflated() -> None:
    assert deflated_sharpe(PAPER, 1, VARIANCE) == probabilistic_sharpe(PAPER)


def test_moments_of_a_short_series() -> None:
    moments = measure_return_moments([1.0, 2.0, math.nan, 6.0])
    assert moments.days == 3
    assert moments.sharpe == pytest.approx(3 / math.sqrt(7))
    assert moments.skewness == pytest.approx(6 / (14 / 3) ** 1.5)
    assert moments.kurtosis == pytest.approx(1.5)


@pytest.mark.parametrize("series", [[], [1.0, 2.0], [0.1] * 20, [0.0] * 20])
def test_no_variation_no_sharpe(series: list[float]) -> None:
    assert math.isnan(measure_return_moments(series).sharpe)
    assert math.isnan(deflated_sharpe(measure_return_moments(series), 10, 0.1))


def test_noise_is_overfitted_about_half_the_time() -> None:
    found = [estimate_pbo(np.random.default_rng(seed).standard_normal((1000, 50))).probability for seed in range(20)]
    assert np.mean(found) == pytest.approx(0.475, abs=5e-4)


def test_one_real_series_among_noise_is_not() -> None:
    returns = np.random.default_rng(0).standard_normal((1000, 50))
    returns[:, 7] += 0.2
    pbo = estimate_pbo(returns)
    assert pbo.probability < 0.05
    assert pbo.logits.shape == (252,)


def test_a_candidate_that_never_trades_is_no_winner() -> None:
    returns = np.full((100, 3), math.nan)
    returns[:, 1] = np.random.default_rng(0).standard_normal(100) + 1
    assert estimate_pbo(returns).probability == 0.0


@pytest.mark.parametrize(("days", "candidates", "blocks"), [(100, 1, 10), (100, 5, 9), (15, 5, 10), (100, 5, 0)])
def test_too_little_to_split_is_refused(days: int, candidates: int, blocks: int) -> None:
    with pytest.raises(ValueError, match="blocks"):
        estimate_pbo(np.ones((days, candidates)), blocks)


def test_trials_must_be_counted() -> None:
    with pytest.raises(ValueError, match="trials"):
        expected_maximum(0)


def test_the_best_of_ten_worthless_series_is_no_better_than_even(lab: Callable[..., Lab]) -> None:
    """Ratios folded to be positive, or taken for those of a window as short as selection, once made it 0.8."""
    windows, rng, count = lab().evaluator.windows, np.random.default_rng(4), 10
    search, selection = windows.search.days, windows.selection.days
    assert search > 1.4 * selection
    found = []
    for _ in range(150):
        tried = rng.standard_normal((count, search))
        net = rng.standard_normal((count, selection))
        best = net[(net.mean(axis=1) / net.std(axis=1)).argmax()]
        ratios = tuple(map(float, tried.mean(axis=1) / tried.std(axis=1, ddof=1)))
        seen = TrialEvidence({}, 10, np.empty(0), best, ratios, search, selection, {})
        found.append(deflated_sharpe_ratios(seen, count)["by_trials"])
    assert np.mean(np.array(found, dtype=float)) == pytest.approx(0.5, abs=0.08)


def test_ratios_are_handed_over_as_the_factors_are_written(lab: Callable[..., Lab]) -> None:
    run = lab()
    text = "rank(ts_skew(volume, 30)) * rank(open)"
    texts = (text, f"-({text})")
    written = {run.scored(text): text for text in texts}
    scorer, window = run.evaluator.scorer, run.evaluator.windows.search
    expected = [
        scorer.score(run.evaluator.values(run.evaluator.read(written[name])), window, 1).gross_sharpe / math.sqrt(252)
        for name in sorted(written)
    ]
    surroundings = run.evaluator.submissions._collect_surroundings([])
    assert surroundings.sharpes == pytest.approx(expected, abs=0.01)  # odd counts of names mirror nearly
    assert min(expected) < 0 < max(expected)


def test_skfolio_says_the_same_of_real_looking_returns() -> None:
    rng = np.random.default_rng(8)
    returns = rng.standard_t(4, 400) * 0.01 + 0.0008 - 0.02 * (rng.random(400) < 0.01)
    sharpes = rng.standard_normal(40) * 0.05
    mine = measure_return_moments(returns)
    assert probabilistic_sharpe(mine, 0.02) == pytest.approx(probabilistic_sharpe_ratio(returns, 0.02), rel=1e-9)
    spread = float(np.var(sharpes, ddof=1))
    assert deflated_sharpe(returns, 40, spread) == pytest.approx(deflated_sharpe_ratio(returns, sharpes), rel=1e-9)
    assert math.sqrt(spread) * expected_maximum(40) == pytest.approx(
        expected_max_sharpe_ratio(40, math.sqrt(spread)), rel=1e-9
    )
