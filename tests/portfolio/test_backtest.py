"""The long-short by kernel against weights written out, and the book by vectorbt against plain arithmetic."""

import math
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.errors import BookUnavailable
from alphaloom.evidence.scoring.long_short import Costs, annual_sharpe, measure_long_short, sleeve_weights
from alphaloom.extras import install_hint
from alphaloom.market import Panel
from alphaloom.portfolio.backtest import run_backtest

Frame = NDArray[np.float64]
FREE = Costs(0.0, 0.0)

traded = pytest.mark.skipif(find_spec("vectorbt") is None, reason="vectorbt is not installed")


def percentiles(scores: Frame) -> Frame:
    """Return the rank of each score in its row, in (0, 1]."""
    return np.asarray((scores.argsort(axis=1).argsort(axis=1) + 1) / scores.shape[1])


def noise(days: int, names: int, seed: int = 0) -> tuple[Frame, Frame]:
    """Return ranks and returns that have nothing to do with each other, both with holes."""
    rng = np.random.default_rng(seed)
    ranks, returns = percentiles(rng.standard_normal((days, names))), rng.standard_normal((days, names)) * 0.02
    ranks[rng.random(ranks.shape) < 0.1] = np.nan
    returns[rng.random(returns.shape) < 0.05] = np.nan
    return ranks, returns


def market(days: int, names: int, edge: float = 0.003, seed: int = 0) -> tuple[Panel, Frame]:
    """Return a panel with missing days, a late listing and a delisting, and scores that know the next open-to-open."""
    rng = np.random.default_rng(seed)
    scores, moves = rng.standard_normal((days, names)), rng.standard_normal((days, names)) * 0.02
    moves[2:] += edge * scores[:-2]
    opened = 100 * np.exp(np.cumsum(moves, axis=0))
    closed = opened * np.exp(rng.standard_normal((days, names)) * 0.005)
    opened[rng.random(opened.shape) < 0.02] = np.nan
    for prices in (opened, closed):
        prices[: days // 3, 1] = np.nan
        prices[days // 2 :, 2] = np.nan
    scores[np.isnan(closed)] = np.nan
    return panel_of(opened, closed), scores


def panel_of(opened: Frame, closed: Frame) -> Panel:
    """Return a panel of these prices from 2020 on."""
    dates = np.datetime64("2020-01-01") + np.arange(len(opened))
    fields = {"open": opened, "high": closed, "low": closed, "close": closed, "volume": np.full(closed.shape, 1e6)}
    return Panel.build(dates, [f"S{i:03d}" for i in range(opened.shape[1])], fields)


@settings(max_examples=20)
@given(st.integers(0, 999), st.integers(1, 7), st.integers(8, 40))
def test_the_kernel_agrees_with_weights_written_out(seed: int, horizon: int, names: int) -> None:
    ranks, returns = noise(30, names, seed)
    costs = Costs(10, 50)
    long_short = measure_long_short(ranks, returns, costs, horizon)
    weights = sleeve_weights(ranks, horizon)
    traded = np.abs(np.diff(weights, axis=0, prepend=0)).sum(axis=1)
    gross = (weights * np.nan_to_num(returns)).sum(axis=1)
    net = gross - traded * 0.001 - np.maximum(-weights, 0).sum(axis=1) * 0.005 / 252
    known = ~np.isnan(long_short.gross)
    assert long_short.gross[known] == pytest.approx(gross[known], abs=1e-12)
    assert long_short.net[known] == pytest.approx(net[known], abs=1e-12)
    assert not np.abs(gross[~known]).any()
    assert math.isnan(long_short.sharpe_net) or long_short.sharpe_net == pytest.approx(
        annual_sharpe(net[known]), rel=1e-9
    )


def test_both_sides_hold_one_unit() -> None:
    weights = sleeve_weights(percentiles(np.tile(np.arange(50.0), (12, 1))), 5)
    assert np.maximum(weights, 0).sum(axis=1)[4:] == pytest.approx(1.0)
    assert np.minimum(weights, 0).sum(axis=1)[4:] == pytest.approx(-1.0)
    assert np.maximum(weights, 0).sum(axis=1)[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])


def test_turnover_is_one_when_everything_is_replaced_and_zero_when_nothing_is() -> None:
    rising = np.tile(np.arange(50.0), (40, 1))
    returns = np.zeros(rising.shape)
    flipping = rising * np.where(np.arange(40) % 2, 1, -1)[:, None]
    assert measure_long_short(percentiles(rising), returns, FREE, 5).turnover == pytest.approx(0, abs=1e-12)
    assert measure_long_short(percentiles(flipping), returns, FREE, 1).turnover == pytest.approx(1)


def test_costs_and_borrow_are_what_they_say() -> None:
    ranks = percentiles(np.tile(np.arange(50.0), (30, 1)))
    long_short = measure_long_short(ranks, np.zeros(ranks.shape), Costs(10, 50), 1)
    assert long_short.net[0] == pytest.approx(-2 * 0.001 - 0.005 / 252)
    assert long_short.net[1:] == pytest.approx(-0.005 / 252)
    assert long_short.gross == pytest.approx(0)


def test_the_return_of_a_day_is_earned_by_the_rank_of_that_row() -> None:
    ranks = percentiles(np.tile(np.arange(50.0), (5, 1)))
    returns = np.zeros(ranks.shape)
    returns[3, -1], returns[3, 0] = 0.5, -0.5
    assert measure_long_short(ranks, returns, FREE, 1).gross == pytest.approx([0, 0, 0, 0.1, 0])


def test_days_before_the_first_sleeve_and_without_returns_are_missing() -> None:
    ranks, returns = noise(40, 60)
    ranks[:10], returns[-2:] = np.nan, np.nan
    long_short = measure_long_short(ranks, returns, Costs(), 5)
    assert np.isnan(long_short.net[:10]).all()
    assert np.isnan(long_short.net[-2:]).all()
    assert not np.isnan(long_short.net[10:-2]).any()


def test_too_few_names_make_no_book() -> None:
    ranks, returns = noise(30, 9)
    long_short = measure_long_short(ranks, returns, Costs(), 5)
    assert np.isnan(long_short.net).all()
    assert math.isnan(long_short.turnover)
    assert math.isnan(long_short.sharpe_gross)


def test_every_factor_can_afford_it() -> None:
    """Days and names are walked by compiled code: many more of them make no further call in Python."""

    def calls(days: int, names: int) -> int:
        ranks, returns = noise(days, names)
        measure_long_short(ranks, returns, Costs(), 5)
        made: list[str] = []
        sys.setprofile(lambda _frame, event, _of: made.append(event))
        try:
            measure_long_short(ranks, returns, Costs(), 5)
        finally:
            sys.setprofile(None)
        return sum(event in ("call", "c_call") for event in made)

    assert 0 < calls(1500, 400) <= calls(100, 40)


def test_a_missing_vectorbt_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vectorbt", None)
    panel, scores = market(10, 20)
    with pytest.raises(BookUnavailable, match="vectorbt") as caught:
        run_backtest(scores, panel, costs=Costs(), horizon=1, span=slice(None))
    assert caught.value.exit_code == 3
    assert caught.value.hint == install_hint("vectorbt")


@pytest.mark.parametrize("span", [slice(0, 2), slice(0, 10, 2), slice(9, 3)])
def test_a_span_is_three_rows_in_a_row(span: slice) -> None:
    panel, scores = market(10, 20)
    with pytest.raises(ValueError, match="span"):
        run_backtest(scores, panel, costs=Costs(), horizon=1, span=span)


@pytest.mark.parametrize("horizon", [1, 5])
@pytest.mark.parametrize("edge", [0.003, 0.0, -0.003])
@traded
def test_it_agrees_with_plain_arithmetic(horizon: int, edge: float) -> None:
    panel, scores = market(80, 40, edge)
    book = run_backtest(scores, panel, costs=Costs(20, 100), horizon=horizon, span=slice(5, 75))
    assert book.plain_max_difference < 1e-12
    assert book.sharpe == pytest.approx(book.plain_sharpe, rel=1e-9)
    assert book.annual_return == pytest.approx(book.plain_annual_return, rel=1e-9)
    assert book.days == 69
    assert str(book.dates[0]) == "2020-01-07"


@traded
def test_it_is_close_to_what_scoring_says() -> None:
    panel, scores = market(250, 60)
    opened = panel.fields["open"]
    earned = np.full(opened.shape, np.nan)
    earned[:-2] = opened[2:] / opened[1:-1] - 1
    scored = measure_long_short(percentiles(np.nan_to_num(scores)), earned, Costs(), 5)
    book = run_backtest(scores, panel, costs=Costs(), horizon=5, span=slice(None))
    assert book.sharpe == pytest.approx(scored.sharpe_net, rel=0.15)
    assert book.turnover_per_day == pytest.approx(scored.turnover, rel=0.15)


@traded
def test_a_foreknown_return_is_earned_at_the_open_after_it_is_known() -> None:
    panel, scores = market(60, 40, edge=0.01)
    known = run_backtest(scores, panel, costs=FREE, horizon=1, span=slice(None))
    late = run_backtest(np.roll(scores, 1, axis=0), panel, costs=FREE, horizon=1, span=slice(None))
    assert known.sharpe > 20
    assert abs(late.sharpe) < 8


@traded
def test_a_name_that_goes_is_sold_at_its_last_close() -> None:
    opened, closed = np.full((8, 20), 100.0), np.full((8, 20), 100.0)
    closed[3, 19] = 150.0  # the best name's last day; it is held long with a quarter of the side
    opened[4:, 19] = closed[4:, 19] = np.nan
    scores = np.tile(np.arange(20.0), (8, 1))
    book = run_backtest(scores, panel_of(opened, closed), costs=FREE, horizon=1, span=slice(None))
    assert book.daily_returns == pytest.approx([0, 0, 0, 0.125, 0, 0, 0])


@traded
def test_a_name_that_pauses_is_kept() -> None:
    opened = np.full((8, 20), 100.0)
    closed = opened.copy()
    opened[4, 19] = closed[4, 19] = np.nan
    opened[5:, 19] = closed[5:, 19] = 120.0
    scores = np.tile(np.arange(20.0), (8, 1))
    scores[3:, 19] = np.nan  # to be sold at the open of row 4, which does not come; row 5 is
    book = run_backtest(scores, panel_of(opened, closed), costs=FREE, horizon=1, span=slice(None))
    assert book.daily_returns == pytest.approx([0, 0, 0, 0, 0.05, 0, 0])


@traded
def test_a_book_without_scores_stays_at_one() -> None:
    panel, scores = market(30, 20)
    book = run_backtest(np.full(scores.shape, np.nan), panel, costs=Costs(), horizon=5, span=slice(None))
    assert book.equity == pytest.approx(1.0)
    assert math.isnan(book.sharpe)
    assert (book.max_drawdown, book.turnover_per_day, book.costs_paid) == (0, 0, 0)
    assert not book.drawdown.any()


@traded
def test_rows_outside_the_span_are_never_read() -> None:
    panel, scores = market(60, 40)
    opened, closed = panel.fields["open"].copy(), panel.fields["close"].copy()
    opened[40:] *= 3
    closed[40:] *= 2
    scores_after = scores.copy()
    scores_after[40:] *= -1
    first = run_backtest(scores, panel, costs=Costs(), horizon=5, span=slice(0, 40))
    second = run_backtest(scores_after, panel_of(opened, closed), costs=Costs(), horizon=5, span=slice(0, 40))
    assert np.array_equal(first.equity, second.equity)
