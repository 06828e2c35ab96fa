"""Each trap is found where it was planted, and none on a market that has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from scipy.stats import poisson, rankdata

from alphaloom.market import Panel
from alphaloom.market.quality import DETECTORS, find_data_warnings
from alphaloom.market.quality.moves import LogMoves, compute_local_size, compute_medians, compute_usual_size
from alphaloom.market.quality.shifted import compute_centred_ranks, correlate_rows, correlate_with_market
from alphaloom.market.quality.survivorship import compute_poisson_cdf

from .planted import PRICES, Fields, changed, clean, found, steady

FEW = settings(max_examples=settings().max_examples // 4)
seeds = st.integers(0, 3)
places = st.integers(0, 10_000)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_suspected_on_a_clean_market(seed: int) -> None:
    assert not [str(warning) for warning in find_data_warnings(clean(seed))]


@pytest.mark.parametrize(("days", "names"), [(60, 20), (300, 100), (1500, 200), (120, 400)])
def test_nor_on_one_of_another_size(days: int, names: int) -> None:
    assert not [str(warning) for warning in find_data_warnings(clean(30, days, names))]


def test_the_clean_market_is_no_list_of_survivors() -> None:
    gone = [int((~panel.universe[-5:].any(axis=0)).sum()) for panel in map(clean, range(20))]
    assert min(gone) >= 2


@FEW
@given(seeds)
def test_a_list_of_those_who_are_still_here_is_suspected(seed: int) -> None:
    panel = clean(seed)
    here = np.flatnonzero(panel.universe[-1]).tolist()
    fields = {name: values[:, here] for name, values in panel.fields.items() if name != "returns"}
    said = found(Panel.build(panel.dates, [panel.symbols[i] for i in here], fields))
    assert list(said) == ["survivorship"]
    assert said["survivorship"].observation.startswith(f"all {len(here)} names still trade on the last day")


def test_a_small_panel_in_which_nobody_left_is_suspected_from_sixty_years_of_names_on() -> None:
    panel = clean(1, 800)
    here = np.flatnonzero(panel.universe.all(axis=0) | panel.universe[[0, -1]].all(axis=0))

    def of(names: int) -> Panel:
        kept = here[:names].tolist()
        fields = {name: values[:, kept] for name, values in panel.fields.items() if name != "returns"}
        return Panel.build(panel.dates, [panel.symbols[i] for i in kept], fields)

    assert "survivorship" in found(of(21))
    assert "survivorship" not in found(of(18))


def test_padding_the_vanished_does_not_hide_that_they_left_and_is_seen() -> None:
    panel = clean(1)

    def pad(fields: Fields) -> None:
        last = panel.days - 1 - panel.universe[::-1].argmax(axis=0)
        late = np.arange(panel.days)[:, None] > last
        for name in fields:
            filled = fields[name][last, np.arange(panel.names)]
            fields[name][:] = np.where(late, 0.0 if name == "volume" else filled, fields[name])

    fields = {name: values.copy() for name, values in panel.fields.items() if name != "returns"}
    pad(fields)
    said = found(Panel.build(panel.dates, panel.symbols, fields))
    assert list(said) == ["stale prices"]
    assert said["stale prices"].figures["to_the_end"] == (~panel.universe[-4:].any(axis=0)).sum()


@FEW
@given(seeds, places, st.sampled_from([0.4, -0.4, 1.0, -0.6]))
def test_a_spike_that_is_gone_the_next_day_is_found(seed: int, place: int, size: float) -> None:
    panel = clean(seed)
    day, name = steady(panel, place)
    around = max(compute_local_size(LogMoves(panel).own[:, name], day, day + 2), LogMoves(panel).usual[name])

    def plant(fields: Fields) -> None:
        fields["close"][day, name] *= np.exp(np.sign(size) * max(abs(size), 25 * around))
        fields["high"][day, name] = max(fields["high"][day, name], fields["close"][day, name])
        fields["low"][day, name] = min(fields["low"][day, name], fields["close"][day, name])

    said = found(changed(panel, plant))
    assert said["bad ticks"].cases == (f"{panel.symbols[name]} {panel.dates[day]}",)
    assert set(said) <= {"bad ticks", "odd bars"}


@FEW
@given(seeds, places, st.sampled_from([10.0, 100.0, 0.1, 0.01]), st.integers(1, 15))
def test_a_decimal_point_in_the_wrong_place_is_found(seed: int, place: int, factor: float, span: int) -> None:
    panel = clean(seed)
    day, name = steady(panel, place)

    def plant(fields: Fields) -> None:
        for price in PRICES:
            fields[price][day : day + span, name] *= factor

    said = found(changed(panel, plant))
    assert said["bad ticks"].cases[0].startswith(f"{panel.symbols[name]} {panel.dates[day]} (decimal point")
    assert said["bad ticks"].figures == {"strays": 1, "cells": span, "decimal_points": 1}
    assert list(said) == ["bad ticks"]


@FEW
@given(seeds, places, st.sampled_from(["zero", "negative", "crossed", "close above", "open below", "high x10"]))
def test_a_bar_that_cannot_be_is_found(seed: int, place: int, kind: str) -> None:
    panel = clean(seed)
    day, name = steady(panel, place)

    def plant(fields: Fields) -> None:
        cell = (day, name)
        if kind in ("zero", "negative"):
            fields["low"][cell] *= 0.0 if kind == "zero" else -1.0
        elif kind == "crossed":
            fields["high"][cell] = fields["low"][cell] * 0.99
        elif kind == "close above":
            fields["high"][cell] = fields["close"][cell] * 0.999
        elif kind == "open below":
            fields["low"][cell] = fields["open"][cell] * 1.001
        else:
            fields["high"][cell] *= 10.0

    said = found(changed(panel, plant))["odd bars"]
    assert (said.count, said.cases) == (1, (f"{panel.symbols[name]} {panel.dates[day]}",))


@FEW
@given(seeds, places, st.sampled_from([2.0, 3.0, 7.0, 0.1, 0.25]))
def test_a_split_that_was_not_adjusted_is_found(seed: int, place: int, shares: float) -> None:
    panel = clean(seed)
    day, name = steady(panel, place)

    def plant(fields: Fields) -> None:
        for price in (*PRICES, "close_raw"):
            fields[price][day:, name] /= shares
        fields["volume"][day:, name] *= shares
        fields["volume"][day, name] = shares * np.median(panel.fields["volume"][day - 20 : day, name])

    moves = LogMoves(panel)
    around = max(compute_local_size(moves.own[:, name], day, day + 1), moves.usual[name])
    assume(abs(np.log(shares)) > 20 * around)  # else it is like the days around
    assume(
        abs(moves.night[day, name]) < min(3 * compute_usual_size(moves.night)[name], 0.04)
    )  # else the ratio is not plain
    said = found(changed(panel, plant))
    assert said["unadjusted splits"].count == 1
    assert said["unadjusted splits"].cases[0].startswith(f"{panel.symbols[name]} {panel.dates[day]} (")
    assert list(said) == ["unadjusted splits"]


@FEW
@given(seeds, places, st.sampled_from([2.0, 3.0]))
def test_a_crash_to_half_on_heavy_trading_is_no_split(seed: int, place: int, shares: float) -> None:
    panel = clean(seed)
    day, name = steady(panel, place)

    def plant(fields: Fields) -> None:
        for price in (*PRICES, "close_raw"):
            fields[price][day:, name] /= shares
        fields["volume"][day, name] = 15.0 * np.median(fields["volume"][day - 20 : day, name])

    assert "unadjusted splits" not in found(changed(panel, plant))


@FEW
@given(seeds, places, st.integers(4, 40), st.sampled_from([0.0, np.nan]))
def test_a_price_that_stands_still_without_trading_is_found(seed: int, place: int, span: int, volume: float) -> None:
    panel = clean(seed)
    day, name = steady(panel, place)

    def plant(fields: Fields) -> None:
        rows = slice(day, day + span)
        for price in (*PRICES, "close_raw"):
            fields[price][rows, name] = fields["close"][day - 1, name]
        fields["volume"][rows, name] = volume

    said = found(changed(panel, plant))
    assert list(said) == ["stale prices"]
    first, last = panel.dates[day], panel.dates[day + span - 1]
    assert said["stale prices"].cases == (f"{panel.symbols[name]} {first} to {last}",)


def test_a_day_that_repeats_the_day_before_is_found() -> None:
    panel = clean(2)

    def plant(fields: Fields) -> None:
        for values in fields.values():
            values[200] = values[199]

    said = found(changed(panel, plant))["stale prices"]
    assert said.cases == (f"all {panel.dates[200]}",)


@FEW
@given(seeds, places, st.sampled_from([-1, 1]))
def test_a_name_that_is_a_day_off_is_found(seed: int, place: int, rows: int) -> None:
    panel = clean(seed, 900)
    follows = np.flatnonzero(
        (panel.universe.mean(axis=0) > 0.95) & (correlate_with_market(LogMoves(panel))["today"] > 0.4)
    )
    name = int(follows[place % len(follows)])

    def plant(fields: Fields) -> None:
        for values in fields.values():
            values[:, name] = np.roll(values[:, name], rows)
            values[0 if rows > 0 else -1, name] = np.nan

    said = found(changed(panel, plant))["shifted names"]
    assert said.cases == (f"{panel.symbols[name]} {'late' if rows > 0 else 'early'}",)


@pytest.mark.parametrize("column", ["high", "low", "vwap", "volume", "amount", "cap", "close_raw"])
@pytest.mark.parametrize(("rows", "word"), [(-1, "early"), (1, "late")])
def test_a_column_that_is_a_day_off_is_found(column: str, rows: int, word: str) -> None:
    panel = clean(1)

    def plant(fields: Fields) -> None:
        fields[column] = np.roll(fields[column], rows, axis=0)
        fields[column][0 if rows > 0 else -1] = np.nan

    said = found(changed(panel, plant))["shifted columns"]
    assert [case.split()[0] for case in said.cases] == [column]
    assert word in said.cases[0] or (word == "early" and "tomorrow" in said.cases[0])


@FEW
@given(seeds, st.integers(1, 5), st.sampled_from([0.0, 1.0, 2.0]))
def test_a_label_that_was_left_in_the_file_is_found(seed: int, horizon: int, noise: float) -> None:
    panel = clean(seed)
    close = panel.fields["close"]

    def plant(fields: Fields) -> None:
        label = np.full(close.shape, np.nan)
        label[:-horizon] = close[horizon:] / close[:-horizon] - 1.0
        scale = noise * np.nanstd(label)
        fields["signal"] = label + np.random.default_rng(seed).normal(0.0, scale, label.shape)

    said = found(changed(panel, plant))
    assert list(said) == ["shifted columns"]
    assert said["shifted columns"].cases[0].startswith("signal orders tomorrow's returns")


def test_ties_order_nothing() -> None:
    values = np.random.default_rng(0).integers(0, 3, (20, 30)).astype(np.float64)
    values[:, 28:] = np.nan
    np.testing.assert_array_equal(compute_centred_ranks(values)[:, :28], rankdata(values[:, :28], axis=1) - 29 / 2)
    assert np.isnan(
        correlate_rows(compute_centred_ranks(np.ones((1, 30))), compute_centred_ranks(np.ones((1, 30))))
    ).all()


def test_an_honest_column_of_the_day_and_a_faint_forecast_are_not_suspected() -> None:
    panel = clean(3)
    rng = np.random.default_rng(1)
    tomorrow = np.roll(panel.fields["returns"], -1, axis=0)

    def plant(fields: Fields) -> None:
        fields["today"] = panel.fields["returns"] * 3.0
        fields["forecast"] = 0.04 * tomorrow / np.nanstd(tomorrow) + rng.normal(0.0, 1.0, tomorrow.shape)

    assert not found(changed(panel, plant))


@FEW
@given(seeds, st.sampled_from([0.01, 0.03]))
def test_closes_that_bounce_between_bid_and_ask_are_found_with_their_spread(seed: int, spread: float) -> None:
    panel = clean(seed, 900)
    side = np.where(np.random.default_rng(seed).random(panel.universe.shape) < 0.5, -0.5, 0.5)

    def plant(fields: Fields) -> None:
        fields["close"] *= np.exp(spread * side)
        fields["high"] = np.fmax(fields["high"], fields["close"])
        fields["low"] = np.fmin(fields["low"], fields["close"])

    said = found(changed(panel, plant))["bid-ask bounce"]
    assert said.figures["t"] < -5
    assert said.figures["by_the_open"] > 0.8


def test_a_reversal_that_goes_on_after_the_open_is_not_taken_for_bounce() -> None:
    panel = clean(0, 900)
    close, opened = panel.fields["close"].copy(), panel.fields["open"].copy()
    rebuilt = close.copy()
    night = np.log(opened[1:] / close[:-1])
    day = np.log(close / opened)
    level = np.log(close[0])
    before = np.zeros(panel.names)
    for row in range(1, panel.days):
        move = night[row - 1] + day[row] - 0.2 * before
        level = np.where(np.isnan(move), np.log(close[row]), level + move)
        rebuilt[row], before = np.exp(level), np.nan_to_num(move)

    def plant(fields: Fields) -> None:
        fields["close"] = rebuilt
        fields["open"][1:] = rebuilt[:-1] * np.exp(night)
        for name in ("high", "low", "vwap", "close_raw", "cap", "amount"):
            fields[name] = fields[name] * rebuilt / close
        fields["high"] = np.fmax(fields["high"], np.fmax(fields["open"], rebuilt))
        fields["low"] = np.fmin(fields["low"], np.fmin(fields["open"], rebuilt))

    assert "bid-ask bounce" not in found(changed(panel, plant))


@FEW
@given(seeds, places, st.booleans())
def test_a_name_that_is_there_twice_is_found(seed: int, place: int, exact: bool) -> None:
    panel = clean(seed)
    _, name = steady(panel, place)
    rng = np.random.default_rng(place)
    fields = {
        key: np.column_stack([values, values[:, name]]) for key, values in panel.fields.items() if key != "returns"
    }
    if not exact:
        fields["close"][:, -1] *= np.exp(rng.normal(0.0, 0.0005, panel.days))
        fields["high"][:, -1] = np.fmax(fields["high"][:, -1], fields["close"][:, -1])
        fields["low"][:, -1] = np.fmin(fields["low"][:, -1], fields["close"][:, -1])
    said = found(Panel.build(panel.dates, [*panel.symbols, "~TWIN"], fields))
    assert said["twin names"].cases == (f"{panel.symbols[name]} = ~TWIN",)
    assert said["twin names"].figures["copies"] == int(exact)


@pytest.mark.parametrize(("copy", "of"), [("vwap", "close"), ("high", "low"), ("open", "close")])
def test_a_column_that_is_a_copy_is_found(copy: str, of: str) -> None:
    panel = clean(1)

    def plant(fields: Fields) -> None:
        fields[copy] = fields[of].copy()

    assert " = ".join(sorted((copy, of))) in found(changed(panel, plant))["twin columns"].cases


def test_copies_of_many_columns_are_counted_up_to_a_limit() -> None:
    flags = {f"flag{place}": np.zeros_like(clean(1).fields["close"]) for place in range(80)}
    warning = found(changed(clean(1), lambda fields: fields.update(flags)))["twin columns"]
    assert warning.observation == "at least 2,000 pairs of columns with the same values"


def test_opens_that_repeat_the_close_before_are_found() -> None:
    def plant(fields: Fields) -> None:
        fields["open"][1:] = fields["close"][:-1]

    assert "open = the close of the day before" in found(changed(clean(1), plant))["twin columns"].cases


@FEW
@given(seeds, st.integers(50, 400), st.integers(5, 30))
def test_a_gap_in_the_calendar_is_found(seed: int, day: int, span: int) -> None:
    panel = clean(seed)
    kept = np.delete(np.arange(panel.days), np.arange(day, day + span))
    fields = {name: values[kept] for name, values in panel.fields.items() if name != "returns"}
    said = found(Panel.build(panel.dates[kept], panel.symbols, fields, panel.universe[kept]))
    assert said["calendar gaps"].cases[0] == f"{panel.dates[day - 1]} to {panel.dates[day + span]}"


def test_a_year_that_lacks_days_here_and_there_is_found() -> None:
    panel = clean(1, 1500)
    rng = np.random.default_rng(4)
    lost = np.flatnonzero(panel.dates.astype("datetime64[Y]") == np.datetime64("2013"))
    kept = np.setdiff1d(np.arange(panel.days), rng.choice(lost, 30, replace=False))
    fields = {name: values[kept] for name, values in panel.fields.items() if name != "returns"}
    said = found(Panel.build(panel.dates[kept], panel.symbols, fields))["calendar gaps"]
    assert "30 weekdays missing in 2013" in said.cases


@pytest.mark.parametrize("days", [-1, 1])
def test_dates_that_were_moved_by_a_day_are_found(days: int) -> None:
    panel = clean(2)
    said = found(replace(panel, dates=panel.dates + np.timedelta64(days, "D")))["calendar gaps"]
    assert said.cases[0].endswith("is a Sunday" if days < 0 else "is a Saturday")


@FEW
@given(seeds, st.integers(0, 499), st.floats(0.0, 0.7))
def test_a_day_that_was_cut_is_found(seed: int, day: int, kept: float) -> None:
    panel = clean(seed)

    def plant(fields: Fields) -> None:
        for values in fields.values():
            values[day, int(kept * panel.names) :] = np.nan

    cut = changed(panel, plant)
    if cut.universe[day].sum() < 0.75 * panel.universe[day].sum():
        assert found(cut)["thin days"].cases[0].startswith(str(panel.dates[day]))


def back_adjusted(panel: Panel) -> Panel:
    """Adjust as vendors do: the last day is as quoted, and every earlier one knows the later splits."""

    def plant(fields: Fields) -> None:
        ratio = fields["close"] / fields["close_raw"]
        row = np.where(np.isnan(ratio), -1, np.arange(panel.days)[:, None]).max(axis=0)
        last = ratio[row, np.arange(panel.names)]
        for price in PRICES:
            fields[price] /= last
        fields["volume"] = np.rint(fields["volume"] * last)

    return changed(panel, plant)


def test_levels_and_volumes_that_know_later_splits_are_found() -> None:
    said = found(back_adjusted(clean(1, 1500, 200)))
    assert list(said) == ["back-adjusted levels", "adjusted volume"]
    assert abs(said["adjusted volume"].figures["slope"]) < 0.3


def test_volumes_as_quoted_are_not_taken_for_adjusted() -> None:
    panel = back_adjusted(clean(1, 1500, 200))

    def plant(fields: Fields) -> None:
        fields["volume"] = fields["volume"] * fields["close"] / fields["close_raw"]

    assert list(found(changed(panel, plant))) == ["back-adjusted levels"]


def test_cents_tell_adjusted_prices_from_quoted_ones() -> None:
    panel = clean(1)

    def quoted(fields: Fields) -> None:
        for price in PRICES:
            fields[price] = np.rint(fields[price] * 100) / 100
        del fields["close_raw"]

    def adjusted(fields: Fields) -> None:
        quoted(fields)
        for price in PRICES:
            fields[price][:300] *= np.random.default_rng(0).uniform(0.9, 0.99, panel.names)

    def unknown(fields: Fields) -> None:
        del fields["close_raw"]

    plain, known, open_ = (
        found(replace(changed(panel, plant), back_adjusted=True)) for plant in (quoted, adjusted, unknown)
    )
    assert "back-adjusted levels" not in plain
    assert "were adjusted backwards" in known["back-adjusted levels"].observation
    assert "may be adjusted backwards" in open_["back-adjusted levels"].observation


def test_an_adjustment_on_the_wrong_day_is_found_whatever_was_traded() -> None:
    panel = clean(1)
    day, name = steady(panel, 7)

    def plant(fields: Fields) -> None:
        for price in PRICES:
            fields[price][:day, name] /= 4.0
        fields["volume"][day, name] *= 50.0

    said = found(changed(panel, plant))["unadjusted splits"]
    assert said.cases == (f"{panel.symbols[name]} {panel.dates[day]} (1:4)",)


def test_every_finding_says_what_where_why_and_what_to_do() -> None:
    panel = back_adjusted(clean(1, 1500, 200))
    for warning in find_data_warnings(panel):
        assert str(warning).startswith(f"{warning.kind} suspected: {warning.observation}")
        assert warning.why in str(warning)
        assert warning.remedy in str(warning)
        assert warning.record()["message"] == str(warning)
    assert find_data_warnings(panel) == find_data_warnings(panel)


def test_every_detector_bears_a_panel_of_a_few_cells() -> None:
    panel = clean(1)
    for days in (0, 1, 2, 5, 30):
        assert not [
            detector(LogMoves(panel.rows(0, days))) for detector in DETECTORS if detector(LogMoves(panel.rows(0, days)))
        ]


def test_medians_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).normal(size=(7, 5))
    values[values > 1] = np.nan
    values[:, 4] = np.nan
    np.testing.assert_allclose(compute_medians(values)[:4], np.nanmedian(values[:, :4], axis=0))
    assert np.isnan(compute_medians(values)[4])


@given(st.integers(0, 60), st.floats(0.01, 200.0))
def test_the_poisson_chance_is_that_of_scipy(count: int, mean: float) -> None:
    assert compute_poisson_cdf(count, mean) == pytest.approx(float(poisson.cdf(count, mean)), rel=1e-9, abs=1e-300)
