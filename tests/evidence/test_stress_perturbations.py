"""Each kind of spoiled data spoils what its docstring says, and nothing else."""

from __future__ import annotations

from functools import cache

import numpy as np

from alphaloom.evidence.stress.perturbations import PERTURBATIONS, SpoiledPanel, spoil_panel
from alphaloom.market import Panel
from alphaloom.market.panel import PRICE_FIELDS, compute_simple_returns

from .lab import market


def panel() -> Panel:
    return market(5, days=420, names=80)


@cache
def told() -> dict[str, SpoiledPanel]:
    return {spoiled.code: spoiled for spoiled in spoil_panel(panel(), 1)}


def test_every_kind_is_drawn_from_its_own_stream() -> None:
    assert list(told()) == list(PERTURBATIONS)
    again = {spoiled.code: spoiled.panel.digest for spoiled in spoil_panel(panel(), 1)}
    assert again == {code: each.panel.digest for code, each in told().items()}


def test_returns_follow_from_the_closes_that_are_told() -> None:
    for each in told().values():
        np.testing.assert_array_equal(each.panel.fields["returns"], compute_simple_returns(each.panel.fields["close"]))


def test_a_tick_is_a_cent_of_the_quoted_price() -> None:
    clean, noisy = panel().fields, told()["tick_noise"].panel.fields
    quoted = clean["close_raw"] / clean["close"]
    for name in ("open", "close"):
        moved = ((noisy[name] - clean[name]) * quoted)[panel().universe]
        assert set(np.round(moved, 6)) == {-0.01, 0.0, 0.01}
    assert (noisy["high"] >= noisy["close"])[panel().universe].all()


def test_prices_are_whole_cents() -> None:
    for name in PRICE_FIELDS:
        cents = told()["cents"].panel.fields[name][panel().universe] * 100
        np.testing.assert_allclose(cents, np.round(cents), atol=1e-6)


def test_bad_ticks_are_rare_and_large() -> None:
    factors = np.concatenate(
        [(told()["bad_ticks"].panel.fields[n] / panel().fields[n])[panel().universe] for n in PRICE_FIELDS]
    )
    bad = factors[np.abs(factors - 1) > 1e-9]
    assert 2 <= bad.size <= 40  # 13 are expected
    assert set(np.round(bad, 6)) <= {0.1, 0.5, 2.0, 10.0}


def test_missing_cells_leave_the_universe() -> None:
    for code, share in (("missing_1", 0.01), ("missing_5", 0.05)):
        spoilt = told()[code].panel
        gone = panel().universe & ~spoilt.universe
        assert abs(gone.sum() / panel().universe.sum() - share) < 0.003
        assert np.isnan(spoilt.fields["close"][gone]).all()
        kept = spoilt.universe
        np.testing.assert_array_equal(spoilt.fields["close"][kept], panel().fields["close"][kept])


def test_a_missing_day_has_no_row_and_its_values_are_missing() -> None:
    spoilt = told()["missing_day"]
    assert spoilt.panel.days == panel().days - 8
    assert str(panel().dates[25]) not in set(spoilt.panel.dates.astype(str))
    values = np.arange(spoilt.panel.days * 80, dtype=np.float32).reshape(-1, 80)
    spread = spoilt.spread(values, panel().days)
    assert np.isnan(spread[25::50]).all()
    np.testing.assert_array_equal(np.delete(spread, np.arange(25, 420, 50), axis=0), values)


def test_a_missed_split_halves_prices_and_doubles_volume_from_one_day_on() -> None:
    spoilt = told()["wrong_split"].panel
    ratio = spoilt.fields["close"] / panel().fields["close"]
    hit = [name for name in range(80) if (np.nan_to_num(ratio[:, name], nan=1.0) < 0.75).any()]
    assert 2 <= len(hit) <= 18
    for name in hit:
        seen = ratio[~np.isnan(ratio[:, name]), name]
        assert (np.diff(seen) <= 1e-12).all()
        assert seen[-1] == 0.5
    volume = (spoilt.fields["volume"] / panel().fields["volume"])[panel().universe]
    np.testing.assert_allclose(volume, 1 / ratio[panel().universe])


def test_a_frozen_cell_repeats_the_last_close_in_every_price() -> None:
    spoilt = told()["frozen_feed"].panel
    frozen = (spoilt.fields["volume"] == 0) & panel().universe
    assert 0.03 < frozen.sum() / panel().universe.sum() < 0.06
    for name in PRICE_FIELDS:
        np.testing.assert_array_equal(spoilt.fields[name][frozen], spoilt.fields["close"][frozen])
    day, column = (int(index[0]) for index in np.nonzero(frozen))
    assert spoilt.fields["close"][day, column] == panel().fields["close"][day - 1, column]
    np.testing.assert_array_equal(spoilt.fields["close"][~frozen], panel().fields["close"][~frozen])
