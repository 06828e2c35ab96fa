"""Spoiled data: the factor reads wrong, stale or missing values, while the market and its returns stay as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...market import PRICE_FIELDS, Panel
from .moves import replace_columns

Frame = NDArray[np.float64]
Cells = NDArray[np.bool_]
TICK: Final = 0.01
BAD_TICK_SHARE: Final = 1e-4
BAD_TICK_FACTORS: Final = np.array([0.1, 0.5, 2.0, 10.0])
SPLIT_NAME_SHARE: Final = 0.1
FROZEN_CELL_SHARE, FROZEN_DAYS = 0.05, 5
MISSING_DAY_PERIOD: Final = 50
MISSING_DAY_OFFSET: Final = 25


@dataclass(frozen=True, eq=False)
class SpoiledPanel:
    """A panel as a bad feed would deliver it.

    Attributes
    ----------
    panel
        The spoiled data, on which the factor is computed.
    days
        The row of the true panel of each row, ascending.
    """

    code: str
    panel: Panel
    days: NDArray[np.intp]

    def spread(self, values: NDArray[np.float32], total: int) -> NDArray[np.float32]:
        """Return a factor's values on the rows of the true panel, ``[total, N]``; NaN on days that are missing."""
        if len(values) == total:
            return values
        out = np.full((total, values.shape[1]), np.nan, np.float32)
        out[self.days] = values
        return out


Spoil = Callable[[Panel, np.random.Generator], Panel]


def spoil_panel(panel: Panel, seed: int) -> Iterator[SpoiledPanel]:
    """Yield the panel with each perturbation, each drawn from its own random stream.

    Parameters
    ----------
    panel
        The days that may be read; T days, N names.
    seed
        Equal seeds spoil the same cells.
    """
    for place, (code, spoil) in enumerate(PERTURBATIONS.items()):
        days = (
            np.flatnonzero(np.arange(panel.days) % MISSING_DAY_PERIOD != MISSING_DAY_OFFSET)
            if code == "missing_day"
            else None
        )
        spoiled = spoil(panel, np.random.default_rng([seed, 100 + place]))
        yield SpoiledPanel(code, spoiled, np.arange(panel.days) if days is None else days)


def add_tick_noise(panel: Panel, rng: np.random.Generator) -> Panel:
    """Move each open, high, low and close by a tick of 0.01 of the quoted price, up, down or not at all."""
    tick = TICK * _compute_adjustment(panel)
    prices = {name: panel.fields[name] + tick * rng.integers(-1, 2, tick.shape) for name in PRICE_FIELDS}
    return replace_columns(
        panel, _order_prices({name: _keep_positive(new, panel.fields[name]) for name, new in prices.items()})
    )


def round_to_cents(panel: Panel, rng: np.random.Generator) -> Panel:
    """Round every price to 0.01 as the file has it, adjusted or not."""
    rounded = {name: np.round(panel.fields[name] / TICK) * TICK for name in PRICE_FIELDS}
    return replace_columns(panel, {name: _keep_positive(new, panel.fields[name]) for name, new in rounded.items()})


def add_bad_ticks(panel: Panel, rng: np.random.Generator) -> Panel:
    """Multiply one price in 10,000 by 0.1, 0.5, 2 or 10, for one day and in one column."""
    shape = panel.universe.shape
    prices = {
        name: np.where(rng.random(shape) < BAD_TICK_SHARE, rng.choice(BAD_TICK_FACTORS, shape), 1.0)
        * panel.fields[name]
        for name in PRICE_FIELDS
    }
    return replace_columns(panel, prices)


def drop_1_percent(panel: Panel, rng: np.random.Generator) -> Panel:
    """Remove one cell in a hundred, all columns of a name's day."""
    return _empty_cells(panel, rng.random(panel.universe.shape) < 0.01)


def drop_5_percent(panel: Panel, rng: np.random.Generator) -> Panel:
    """Remove five cells in a hundred."""
    return _empty_cells(panel, rng.random(panel.universe.shape) < 0.05)


def drop_days(panel: Panel, rng: np.random.Generator) -> Panel:
    """Remove one row in 50, so that the returns of the next one span two days."""
    rows = np.arange(panel.days) % MISSING_DAY_PERIOD != MISSING_DAY_OFFSET
    short = replace(
        panel,
        dates=panel.dates[rows],
        fields={name: values[rows] for name, values in panel.fields.items()},
        universe=panel.universe[rows],
    )
    return replace_columns(short, {})


def add_wrong_splits(panel: Panel, rng: np.random.Generator) -> Panel:
    """Halve prices and double volumes of one name in ten from a random day on: a two-for-one split, not adjusted."""
    days, names = panel.universe.shape
    is_split = rng.random(names) < SPLIT_NAME_SHARE
    after = (np.arange(days)[:, None] >= rng.integers(1, days, names)) & is_split
    prices = {name: panel.fields[name] * np.where(after, 0.5, 1.0) for name in _list_price_fields(panel)}
    return replace_columns(panel, prices | {"volume": panel.fields["volume"] * np.where(after, 2.0, 1.0)})


def freeze_feed(panel: Panel, rng: np.random.Generator) -> Panel:
    """Repeat a name's last close, without volume, for spells of five days, in about one cell of twenty."""
    shape = panel.universe.shape
    starts = rng.random(shape) < FROZEN_CELL_SHARE / FROZEN_DAYS
    stale = np.zeros(shape, np.bool_)
    for age in range(FROZEN_DAYS):
        stale[age:] |= starts[: shape[0] - age]
    stale[0] = False
    source = np.maximum.accumulate(np.where(stale, 0, np.arange(shape[0])[:, None]), axis=0)
    last = np.take_along_axis(panel.fields["close"], source, axis=0)
    is_frozen = stale & np.isfinite(panel.fields["close"]) & np.isfinite(last)
    prices = {
        name: np.where(is_frozen, last, panel.fields[name]) for name in (*PRICE_FIELDS, *_list_present(panel, "vwap"))
    }
    volumes = {
        name: np.where(is_frozen, 0.0, panel.fields[name]) for name in ("volume", *_list_present(panel, "amount"))
    }
    levels = {
        name: _repeat_values(panel.fields[name], source, is_frozen) for name in _list_present(panel, "close_raw", "cap")
    }
    return replace_columns(panel, prices | volumes | levels)


PERTURBATIONS: Mapping[str, Spoil] = {
    "tick_noise": add_tick_noise,
    "cents": round_to_cents,
    "bad_ticks": add_bad_ticks,
    "missing_1": drop_1_percent,
    "missing_5": drop_5_percent,
    "missing_day": drop_days,
    "wrong_split": add_wrong_splits,
    "frozen_feed": freeze_feed,
}


def _list_present(panel: Panel, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in panel.fields)


def _list_price_fields(panel: Panel) -> tuple[str, ...]:
    return (*PRICE_FIELDS, *_list_present(panel, "vwap", "close_raw"))


def _repeat_values(values: Frame, source: NDArray[np.intp], cells: Cells) -> Frame:
    return np.where(cells, np.take_along_axis(values, source, axis=0), values)


def _compute_adjustment(panel: Panel) -> Frame:
    """Return the adjusted over the quoted price; 1 without a quoted close."""
    quoted, close = panel.fields.get("close_raw"), panel.fields["close"]
    if quoted is None:
        return np.ones(close.shape)
    is_quoted = (quoted > 0) & (close > 0)
    return np.where(is_quoted, np.where(is_quoted, close, 1.0) / np.where(is_quoted, quoted, 1.0), 1.0)


def _keep_positive(new: Frame, old: Frame) -> Frame:
    """Return the new prices; one that is not positive is replaced by the old one."""
    return np.where(new > 0, new, old)


def _order_prices(prices: Mapping[str, Frame]) -> dict[str, Frame]:
    """Return prices with the high highest and the low lowest."""
    outer = [prices[name] for name in PRICE_FIELDS]
    return {**prices, "high": np.maximum.reduce(outer), "low": np.minimum.reduce(outer)}


def _empty_cells(panel: Panel, cells: Cells) -> Panel:
    """Return the panel with cells emptied and removed from the universe."""
    empty = {name: np.where(cells, np.nan, values) for name, values in panel.fields.items()}
    return replace_columns(panel, empty, panel.universe & ~cells)
