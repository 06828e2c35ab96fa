"""A panel is immutable, and its digest stands for all of its content."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.market import Panel, PanelError

DAYS, NAMES = 4, 3
FIELDS = ("open", "high", "low", "close", "volume", "eps")
QUICK = settings(max_examples=30, deadline=None)


def make(prices: float = 10.0) -> Panel:
    values = prices + np.arange(DAYS * NAMES, dtype=np.float64).reshape(DAYS, NAMES)
    dates = np.arange("2015-01-05", "2015-01-09", dtype="datetime64[D]")
    return Panel.build(dates, ["A", "B", "C"], dict.fromkeys(FIELDS, values), groups={"sector": ["x", "y", ""]})


@QUICK
@given(st.sampled_from((*FIELDS, "returns")), st.integers(0, DAYS - 1), st.integers(0, NAMES - 1), st.floats())
def test_any_changed_cell_changes_the_digest(name: str, day: int, column: int, value: float) -> None:
    panel = make()
    values = panel.fields[name].copy()
    same = values[day, column].tobytes() == np.float64(value).tobytes()
    values[day, column] = value
    assert (replace(panel, fields={**panel.fields, name: values}).digest == panel.digest) is same


@QUICK
@given(st.integers(0, DAYS), st.integers(0, DAYS))
def test_rows_are_slices_of_every_array(first: int, second: int) -> None:
    panel, (start, stop) = make(), sorted((first, second))
    part = panel.rows(start, stop)
    assert part.days == stop - start
    assert (part.digest == panel.digest) is (part.days == DAYS)
    for name, values in part.fields.items():
        np.testing.assert_array_equal(values, panel.fields[name][start:stop])
        assert part.days == 0 or np.shares_memory(values, panel.fields[name])
    np.testing.assert_array_equal(part.universe, panel.universe[start:stop])


def test_dates_symbols_universe_and_groups_are_in_the_digest() -> None:
    panel = make()
    universe = panel.universe.copy()
    universe[0, 0] = False
    others = [
        replace(panel, dates=panel.dates + np.timedelta64(1, "D")),
        replace(panel, symbols=("A", "B", "D")),
        replace(panel, universe=universe),
        replace(panel, groups={"sector": np.array([0, 0, -1], np.int16)}),
        replace(panel, group_labels={"sector": ("x", "z")}),
        replace(panel, groups={}, group_labels={}),
    ]
    assert len({panel.digest, *(other.digest for other in others)}) == 1 + len(others)


def test_notes_are_not_in_the_digest() -> None:
    assert replace(make(), notes=("vwap: typical",)) == make()


def test_arrays_can_not_be_written_and_do_not_follow_the_arrays_they_came_from() -> None:
    values = np.full((2, 2), 5.0)
    panel = Panel.build(["2015-01-05", "2015-01-06"], ["A", "B"], dict.fromkeys(FIELDS, values))
    values[:] = 7.0
    assert panel.fields["close"][0, 0] == 5.0
    for array in (*panel.fields.values(), panel.universe, panel.dates):
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_returns_need_both_closes() -> None:
    close = np.array([[10.0], [11.0], [np.nan], [12.0], [9.0]])
    days = np.arange("2015-01-05", "2015-01-10", dtype="datetime64[D]")
    panel = Panel.build(days, ["A"], dict.fromkeys(FIELDS, close))
    np.testing.assert_allclose(panel.fields["returns"][:, 0], [np.nan, 0.1, np.nan, np.nan, -0.25])
    assert panel.universe[:, 0].tolist() == [True, True, False, True, True]


def test_build_sorts_the_names_and_numbers_the_groups() -> None:
    values = np.array([[1.0, 2.0, 3.0]])
    groups = {"sector": ["tech", "", "oil"]}
    panel = Panel.build(["2015-01-05"], ["C", "A", "B"], dict.fromkeys(FIELDS, values), groups=groups)
    assert panel.symbols == ("A", "B", "C")
    assert panel.fields["close"].tolist() == [[2.0, 3.0, 1.0]]
    assert panel.groups["sector"].tolist() == [-1, 0, 1]
    assert panel.group_labels["sector"] == ("oil", "tech")


def test_a_panel_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(make())) == make()


def test_what_does_not_fit_is_refused_by_name() -> None:
    panel = make()
    with pytest.raises(PanelError, match=r"high: an array does not fit the panel \(got 1, 3\); allowed: 4, 3"):
        replace(panel, fields={**panel.fields, "high": np.ones((1, 3))})
    with pytest.raises(PanelError, match="the days of a panel rise strictly"):
        replace(panel, dates=panel.dates[::-1])
    with pytest.raises(PanelError, match="the symbols of a panel are sorted and unique"):
        replace(panel, symbols=("A", "A", "B"))
    with pytest.raises(PanelError, match="the panel lacks volume"):
        Panel.build(panel.dates, panel.symbols, {name: panel.fields[name] for name in FIELDS if name != "volume"})
    with pytest.raises(PanelError, match="these rows are not in the panel"):
        panel.rows(2, 9)


def test_a_field_given_as_float32_stays_so_and_does_not_change_the_digest() -> None:
    wide: Any = {name: np.asarray(values, np.float32).astype(np.float64) for name, values in make().fields.items()}
    narrow: Any = {name: values.astype(np.float32) for name, values in wide.items()}
    one, other = replace(make(), fields=wide), replace(make(), fields=narrow)
    assert {values.dtype for values in other.fields.values()} == {np.dtype(np.float32)}
    assert one.digest == other.digest
