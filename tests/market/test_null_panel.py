"""A panel made null keeps its days, names and gaps, and nothing that is known can foretell it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.market import Nulling, Panel, SyntheticConfig, make_null_panel, simulate
from alphaloom.market.synthetic.null_panel import centre_moves, permute_rows

QUICK = settings(max_examples=15, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


@cache
def gappy(seed: int = 0) -> Panel:
    """Return a market whose names list late, vanish and halt."""
    return simulate(SyntheticConfig(seed=seed, days=150, names=30, halts=0.02)).panel


@cache
def full() -> Panel:
    """Return a market in which every name trades every day."""
    return simulate(SyntheticConfig(seed=1, days=150, names=30, late_listings=0, delistings=0, halts=0)).panel


def steps(panel: Panel) -> np.ndarray:
    """Return the log returns of days after the first."""
    return np.diff(np.log(panel.fields["close"]), axis=0)


def test_moves_are_centred_by_name_and_without_the_market() -> None:
    panel = full()
    moves = centre_moves(panel)
    own = steps(panel)
    middle = own - np.median(own, axis=0)
    np.testing.assert_allclose(moves.whole[1:], middle - middle.mean(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(moves.whole[1:].mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.median((moves.whole + moves.market[:, None])[1:], axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanmean(moves.night[1:], axis=1), 0.0, atol=1e-12)


@QUICK
@given(SEEDS, st.integers(1, 60), st.integers(1, 30))
def test_each_day_is_a_day_of_the_panel_up_to_its_sign(seed: int, block: int, sign: int) -> None:
    made = steps(make_null_panel(full(), seed, Nulling(block_days=block, sign_days=sign)))
    own = centre_moves(full()).whole[1:]
    likeness = made @ own.T / np.sqrt((made**2).sum(axis=1)[:, None] * (own**2).sum(axis=1)[None, :])
    source, coin = np.abs(likeness).argmax(axis=1), np.sign(likeness[range(len(made)), np.abs(likeness).argmax(axis=1)])
    assert sorted(source) == list(range(len(own)))
    np.testing.assert_allclose(made, coin[:, None] * own[source], atol=1e-9)
    together = np.diff(source) == 1
    assert together.sum() >= len(own) - 1 - -(-len(own) // block)


@QUICK
@given(SEEDS)
def test_cells_that_were_missing_are_missing_and_no_other(seed: int) -> None:
    panel = gappy()
    made = make_null_panel(panel, seed)
    assert (made.dates == panel.dates).all()
    assert made.symbols == panel.symbols
    assert (made.universe == panel.universe).all()
    for name, values in panel.fields.items():
        np.testing.assert_array_equal(np.isnan(made.fields[name]), np.isnan(values), err_msg=name)


@QUICK
@given(SEEDS)
def test_prices_hang_together(seed: int) -> None:
    made = make_null_panel(gappy(), seed).fields
    there = ~np.isnan(made["close"])
    opened, high, low, close = (made[name][there] for name in ("open", "high", "low", "close"))
    assert (low > 0).all()
    assert (high >= np.maximum(opened, close) * (1 - 1e-12)).all()
    assert (low <= np.minimum(opened, close) * (1 + 1e-12)).all()
    np.testing.assert_allclose(made["amount"][there], close * made["volume"][there], rtol=1e-12)


def test_volume_gaps_and_ranges_are_those_of_the_days_drawn() -> None:
    own, made = full().fields, make_null_panel(full(), 3)
    np.testing.assert_array_equal(
        np.sort(made.fields["volume"][1:], axis=0)[3:-3], np.sort(own["volume"][1:], axis=0)[3:-3]
    )
    before, after = centre_moves(full()), centre_moves(made)
    nights = np.sort(np.abs(before.night[1:]), axis=0), np.sort(np.abs(after.night[1:]), axis=0)
    np.testing.assert_allclose(nights[0], nights[1], atol=1e-9)
    reach = np.sort((before.up + before.down)[1:], axis=0), np.sort((after.up + after.down)[1:], axis=0)
    np.testing.assert_allclose(reach[0], reach[1], atol=1e-9)


def test_equal_seeds_give_equal_bytes_and_others_do_not() -> None:
    assert make_null_panel(gappy(), 5).digest == make_null_panel(gappy(), 5).digest
    assert len({make_null_panel(gappy(), seed).digest for seed in range(4)} | {gappy().digest}) == 5


@QUICK
@given(SEEDS, st.integers(2, 400), st.integers(1, 500))
def test_a_permutation_draws_each_row_once_and_leaves_the_first(seed: int, days: int, block: int) -> None:
    rows = permute_rows(np.random.default_rng(seed), days, block)
    assert rows[0] == 0
    assert sorted(rows) == list(range(days))


def reversing() -> Panel:
    """Return a market in which every name gives back half of yesterday's move."""
    rng = np.random.default_rng(0)
    shocks = rng.normal(0, 0.02, (600, 40))
    moves = shocks - 0.5 * np.vstack([np.zeros((1, 40)), shocks[:-1]])
    close = 50 * np.exp(np.cumsum(moves, axis=0))
    fields = {"open": close * 0.999, "high": close * 1.01, "low": close * 0.99, "close": close}
    dates = np.arange("2010-01-01", "2011-08-24", dtype="datetime64[D]")[:600]
    return Panel.build(dates, [f"N{i:02d}" for i in range(40)], {**fields, "volume": np.full_like(close, 1e6)})


@pytest.mark.parametrize(("sign_days", "left"), [(1, False), (20, True)])
def test_a_coin_for_each_day_takes_reversal_out_and_one_for_a_block_leaves_it(sign_days: int, left: bool) -> None:
    moves = steps(make_null_panel(reversing(), 0, Nulling(sign_days=sign_days)))
    products = (moves[1:] * moves[:-1]).mean(axis=1) / moves.var()
    error = products.std() / np.sqrt(len(products))
    assert bool(abs(products.mean()) > 5 * error) is left


def skewed() -> Panel:
    """Return a market of long upper tails, some longer, in which every name gives back half of yesterday's move."""
    rng = np.random.default_rng(3)
    shocks = 0.02 * (rng.gamma(np.linspace(0.5, 4.0, 40), size=(1200, 40)) - np.linspace(0.5, 4.0, 40))
    moves = shocks - 0.5 * np.vstack([np.zeros((1, 40)), shocks[:-1]])
    close = 50 * np.exp(np.cumsum(moves, axis=0))
    fields = {"open": close * 0.999, "high": close * 1.01, "low": close * 0.99, "close": close}
    dates = np.datetime64("2010-01-01") + np.arange(len(close))
    return Panel.build(dates, [f"N{i:02d}" for i in range(40)], {**fields, "volume": np.full_like(close, 1e6)})


def skew(values: np.ndarray) -> np.ndarray:
    """Return the skewness of each column."""
    apart = values - values.mean(axis=0)
    return np.asarray((apart**3).mean(axis=0) / values.std(axis=0) ** 3)


DRAWN = Nulling(kind="drawn")


def test_moves_drawn_anew_keep_each_names_skew_and_coins_do_not() -> None:
    own = skew(centre_moves(skewed()).whole[1:])
    drawn, mirrored = skew(steps(make_null_panel(skewed(), 2, DRAWN))), skew(steps(make_null_panel(skewed(), 2)))
    assert np.corrcoef(own, drawn)[0, 1] > 0.8
    assert abs(drawn.mean() / own.mean() - 1) < 0.25
    assert np.abs(mirrored).max() < 0.6 * own.mean()


def test_moves_drawn_anew_earn_nothing_and_remember_nothing() -> None:
    panel = skewed()
    made = np.concatenate([steps(make_null_panel(panel, seed, DRAWN)) for seed in range(4)])
    t = made.mean(axis=0) / (made.std(axis=0) / np.sqrt(len(made)))
    assert np.abs(t).max() < 4.5
    products = (made[1:] * made[:-1]).mean(axis=1) / made.var()
    assert abs(products.mean()) < 4 * products.std() / np.sqrt(len(products))
    assert np.abs(made[:1199].sum(axis=0)).max() > 0.1  # permuted moves would sum to zero: a gain would be given back


@QUICK
@given(SEEDS)
def test_prices_of_moves_drawn_anew_hang_together_and_keep_the_gaps(seed: int) -> None:
    panel = gappy()
    made = make_null_panel(panel, seed, DRAWN).fields
    for name, values in panel.fields.items():
        np.testing.assert_array_equal(np.isnan(made[name]), np.isnan(values), err_msg=name)
    there = ~np.isnan(made["close"])
    opened, high, low, close = (made[name][there] for name in ("open", "high", "low", "close"))
    assert (low > 0).all()
    assert (high >= np.maximum(opened, close) * (1 - 1e-12)).all()
    assert (low <= np.minimum(opened, close) * (1 + 1e-12)).all()


def test_wild_days_stay_together_when_moves_are_drawn_anew() -> None:
    rng = np.random.default_rng(5)
    wild = np.where(np.arange(600) // 60 % 2 == 1, 0.04, 0.01)[:, None]
    close = 50 * np.exp(np.cumsum(wild * rng.normal(size=(600, 40)), axis=0))
    fields = {"open": close, "high": close * 1.01, "low": close * 0.99, "close": close}
    dates = np.datetime64("2010-01-01") + np.arange(600)
    panel = Panel.build(dates, [f"N{i:02d}" for i in range(40)], {**fields, "volume": np.full_like(close, 1e6)})
    size = np.abs(steps(make_null_panel(panel, 1, DRAWN))).mean(axis=1)
    assert np.corrcoef(size[1:], size[:-1])[0, 1] > 0.7


def test_what_a_panel_tells_of_itself_stays_true() -> None:
    made = make_null_panel(gappy(), 9)
    assert made.notes[-1] == "made null with seed 9: nothing is in it"
    assert made.groups == gappy().groups
    np.testing.assert_array_equal(made.fields["cap"], gappy().fields["cap"])
