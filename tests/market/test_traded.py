"""Money traded per day: a split changes none of it, whatever the columns are adjusted for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.campaign.facts import read_facts, read_prices
from alphaloom.evidence.scoring import measure_exposures
from alphaloom.evidence.scoring.capacity import measure_capacity
from alphaloom.evidence.windows import Window
from alphaloom.market import (
    Panel,
    SyntheticConfig,
    adjust_forwards,
    measure_traded_money,
    simulate,
    summarise_panel,
    take_panel_as_of,
)
from alphaloom.market.actions import Actions
from alphaloom.market.derive import derive_fields
from alphaloom.market.point_in_time import apply_actions

from .vendor import SPLITS, Vendor

FIELDS = ("open", "high", "low", "close", "volume")


def keep_whole(panel: Panel) -> Panel:
    """Return the symbols that have a price on every day, in shares of the last day."""
    whole = np.flatnonzero(np.isfinite(panel.fields["close"]).all(axis=0))
    fields = {name: panel.fields[name][:, whole] for name in FIELDS}
    return Panel.build(panel.dates, [panel.symbols[place] for place in whole], fields)


VENDOR = Vendor(keep_whole(simulate(SyntheticConfig(seed=4, days=130, names=20)).panel), 0)
RAW = VENDOR.raw
DAYS, NAMES = RAW.days, RAW.names
MONEY = RAW.fields["close"] * RAW.fields["volume"]
"""What was traded: the closes and volumes of a market without a split."""
AMOUNT = {"amount": "close*volume"}
DRAWS = st.lists(
    st.tuples(st.integers(1, DAYS - 1), st.integers(0, NAMES - 1), st.sampled_from(SPLITS)),
    max_size=6,
    unique_by=lambda draw: draw[:2],
)
"""Splits, at most one a day of a symbol, since a file of actions has one row for it."""


def record(draws: list[tuple[int, int, float]]) -> Actions:
    return VENDOR.actions([(row, name, 0.0, split) for row, name, split in draws])


def write(actions: Actions, volumes: str, closes: str, *, quotes: bool, recorded: bool) -> Panel:
    """Return a file's panel: RAW is what it would be in shares of its last day."""
    _, later = actions.compute_factors(RAW.dates, RAW.symbols, RAW.fields["close"])
    prices = {name: RAW.fields[name] * (later if closes == "quoted" else 1.0) for name in FIELDS[:4]}
    fields = prices | {"volume": RAW.fields["volume"] / (later if volumes == "quoted" else 1.0)}
    fields |= {"close_raw": RAW.fields["close"] * later} if quotes else {}
    fields, notes = derive_fields(fields, AMOUNT, volumes)
    panel = Panel.build(RAW.dates, RAW.symbols, fields, notes=notes)
    panel = replace(panel, volumes=volumes, back_adjusted=closes == "adjusted")
    return apply_actions(panel, actions) if recorded else panel


MIXES = [
    ("quoted", "quoted", True, True),
    ("quoted", "adjusted", True, True),
    ("quoted", "adjusted", True, False),
    ("quoted", "adjusted", False, True),
    ("adjusted", "quoted", True, True),
    ("adjusted", "adjusted", True, True),
    ("adjusted", "adjusted", True, False),
    ("adjusted", "adjusted", False, True),
    ("adjusted", "adjusted", False, False),
]
"""The kind of the volumes and of the closes, whether there are quoted closes, and whether the splits are recorded."""


@given(DRAWS, st.sampled_from(MIXES), st.integers(2, DAYS))
def test_a_split_changes_no_money_traded_on_any_day(
    draws: list[tuple[int, int, float]], mix: tuple[str, str, bool, bool], stop: int
) -> None:
    volumes, closes, quotes, recorded = mix
    actions = record(draws)
    panel = write(actions, volumes, closes, quotes=quotes, recorded=recorded)
    np.testing.assert_allclose(measure_traded_money(panel), MONEY, rtol=1e-9)
    np.testing.assert_allclose(panel.fields["amount"], MONEY, rtol=1e-9)
    np.testing.assert_allclose(measure_traded_money(panel.rows(0, stop)), MONEY[:stop], rtol=1e-9)
    if quotes and recorded:  # at another level of closes too, and as it was known on a day
        np.testing.assert_allclose(measure_traded_money(adjust_forwards(panel)), MONEY, rtol=1e-9)
        known = take_panel_as_of(panel, RAW.dates[stop - 1].astype(object), actions, volumes)
        np.testing.assert_allclose(measure_traded_money(known), MONEY[:stop], rtol=1e-9)
        np.testing.assert_allclose(known.fields["amount"], MONEY[:stop], rtol=1e-9)


@pytest.mark.parametrize("mix", MIXES)
def test_all_that_reads_the_money_traded_is_the_same_in_every_mix(mix: tuple[str, str, bool, bool]) -> None:
    volumes, closes, quotes, recorded = mix
    plain = write(record([]), "adjusted", "adjusted", quotes=False, recorded=False)
    panel = write(record([(100, 2, 7.0), (125, 3, 0.5)]), volumes, closes, quotes=quotes, recorded=recorded)
    for one, other in zip(*map(read_all, (plain, panel)), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9)


def read_all(panel: Panel) -> list[Any]:
    """Return all that is computed from the money traded."""
    sides = (np.tile(np.arange(NAMES) < 3, (DAYS, 1)), np.tile(np.arange(NAMES) > 4, (DAYS, 1)))
    capacity = measure_capacity(panel, Window("search", 0, DAYS, "", ""), sides, 5, np.full(DAYS, 1e-4))
    prices = read_prices(panel, 90, RAW.symbols, {}, {})
    return [
        measure_exposures(panel).size,
        [capacity.at_participation, capacity.break_even],
        [np.nan if value is None else value for value in summarise_panel(panel).series["traded"]],
        [facts.usual_value for facts in read_facts(panel).values()],
        [prices["volumes"][name] * prices["closes"][name] for name in RAW.symbols],
    ]


def test_a_price_or_a_volume_that_is_missing_leaves_no_money() -> None:
    fields = {name: RAW.fields[name].copy() for name in FIELDS}
    fields["close"][3, 1] = np.nan
    fields["volume"][4, 2], fields["volume"][5, 2] = np.nan, 0.0
    money = measure_traded_money(Panel.build(RAW.dates, RAW.symbols, fields))
    assert np.isnan(money[3, 1])
    assert np.isnan(money[4, 2])
    assert money[5, 2] == 0.0
    assert np.isfinite(money).sum() == money.size - 2
