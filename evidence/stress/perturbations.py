"""Spoiled data: what a factor is told is wrong, late or missing, while the market and what it pays stay as they were."""

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
    """A panel as a bad feed would tell it.

    Attributes
    ----------
    panel
        What the factor is computed on.
    days
        Rows of the true panel that the rows of this one are, ascending.
    """

    code: str
    panel: Panel
    days: NDArray[np.intp]

    def spread(self, values: NDArray[np.float32], total: int) -> NDArray[np.float32]:
        """Return a factor's values on the rows of the true panel, NaN on days that never arrived, ``[total, N]``."""
        if len(values) == total:
            return values
        out = np.full((total, values.shape[1]), np.nan, np.float32)
        out[self.days] = values
        return out


Spoil = Callable[[Panel, np.random.Generator], Panel]


def spoil_panel(panel: Panel, seed: int) -> Iterator[SpoiledPanel]:
    """Yield the panel spoiled in every way, each drawn from its own stream.

    Parameters
    ----------
    panel
        The days that may be read, and no other; T days, N names.
    seed
        Equal seeds spoil the same cells.
    """
    for place, (code, spoil) in enumerate(PERTURBATIONS.items()):
        days = (
            np.flatnonzero(np.arange(panel.days) % MISSING_DAY_PERIOD != MISSING_DAY_OFFSET)
            if code == "missing_day"
            else None
        )
        told = spoil(panel, np.random.default_rng([seed, 100 + place]))
        yield SpoiledPanel(code, told, np.arange(panel.days) if days is None else days)


def add_tick_noise(panel: Panel, rng: np.random.Generator) -> Panel:
    """Put each open, high, low and close a tick of 0.01 up, down or nowhere; a tick is counted at the quoted price."""
    tick = TICK * _adjustment(panel)
    moved = {name: panel.fields[name] + tick * rng.integers(-1, 2, tick.shape) for name in PRICE_FIELDS}
    return replace_columns(
        panel, _order_prices({name: _keep_positive(new, panel.fields[name]) for name, new in moved.items()})
    )


def round_to_cents(panel: Panel, rng: np.random.Generator) -> Panel:
    """Round every price to 0.01 as it stands in the file, adjusted or not."""
    rounded = {name: np.round(panel.fields[name] / TICK) * TICK for name in PRICE_FIELDS}
    return replace_columns(panel, {name: _keep_positive(new, panel.fields[name]) for name, new in rounded.items()})


def add_bad_ticks(panel: Panel, rng: np.random.Generator) -> Panel:
    """Make one price in 10,000 0.1, 0.5, 2 or 10 times itself, for one day and in one column."""
    shape = panel.universe.shape
    wrong = {
        name: np.where(rng.random(shape) < BAD_TICK_SHARE, rng.choice(BAD_TICK_FACTORS, shape), 1.0)
        * panel.fields[name]
        for name in PRICE_FIELDS
    }
    return replace_columns(panel, wrong)


def drop_1_percent(panel: Panel, rng: np.random.Generator) -> Panel:
    """Lose one cell in a hundred, a name's whole day."""
    return _empty_cells(panel, rng.random(panel.universe.shape) < 0.01)


def drop_5_percent(panel: Panel, rng: np.random.Generator) -> Panel:
    """Lose five cells in a hundred."""
    return _empty_cells(panel, rng.random(panel.universe.shape) < 0.05)


def drop_days(panel: Panel, rng: np.random.Generator) -> Panel:
    """Lose one day in 50: the panel has no such row, and the next one's returns span two days."""
    kept = np.arange(panel.days) % MISSING_DAY_PERIOD != MISSING_DAY_OFFSET
    short = replace(
        panel,
        dates=panel.dates[kept],
        fields={name: values[kept] for name, values in panel.fields.items()},
        universe=panel.universe[kept],
    )
    return replace_columns(short, {})


def add_wrong_splits(panel: Panel, rng: np.random.Generator) -> Panel:
    """Split one name in ten two for one on a drawn day and adjust nothing: half the price and twice the volume from then on."""
    days, names = panel.universe.shape
    hit = rng.random(names) < SPLIT_NAME_SHARE
    after = (np.arange(days)[:, None] >= rng.integers(1, days, names)) & hit
    priced = {name: panel.fields[name] * np.where(after, 0.5, 1.0) for name in _priced_names(panel)}
    return replace_columns(panel, priced | {"volume": panel.fields["volume"] * np.where(after, 2.0, 1.0)})


def freeze_feed(panel: Panel, rng: np.random.Generator) -> Panel:
    """Repeat a name's last close, with no volume, in one cell of twenty, in spells of five days: a feed that froze."""
    shape = panel.universe.shape
    begins = rng.random(shape) < FROZEN_CELL_SHARE / FROZEN_DAYS
    stale = np.zeros(shape, np.bool_)
    for age in range(FROZEN_DAYS):
        stale[age:] |= begins[: shape[0] - age]
    stale[0] = False
    source = np.maximum.accumulate(np.where(stale, 0, np.arange(shape[0])[:, None]), axis=0)
    last = np.take_along_axis(panel.fields["close"], source, axis=0)
    here = stale & np.isfinite(panel.fields["close"]) & np.isfinite(last)
    still = {
        name: np.where(here, last, panel.fields[name]) for name in (*PRICE_FIELDS, *_present_fields(panel, "vwap"))
    }
    quiet = {name: np.where(here, 0.0, panel.fields[name]) for name in ("volume", *_present_fields(panel, "amount"))}
    held = {
        name: _repeat_values(panel.fields[name], source, here) for name in _present_fields(panel, "close_raw", "cap")
    }
    return replace_columns(panel, still | quiet | held)


PERTURBATIONS: Mapping[str, Spoil] = {
    "tick_noise": add_tick_noise, "cents": round_to_cents, "bad_ticks": add_bad_ticks, "missing_1": drop_1_percent, "missing_5": drop_5_percent,
    "missing_day": drop_days, "wrong_split": add_wrong_splits, "frozen_feed": freeze_feed,
}  # fmt: skip


def _present_fields(panel: Panel, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in panel.fields)


def _priced_names(panel: Panel) -> tuple[str, ...]:
    return (*PRICE_FIELDS, *_present_fields(panel, "vwap", "close_raw"))


def _repeat_values(values: Frame, source: NDArray[np.intp], here: Cells) -> Frame:
    return np.where(here, np.take_along_axis(values, source, axis=0), values)


def _adjustment(panel: Panel) -> Frame:
    """Return the adjusted over the quoted price; 1 where no quoted close is known."""
    quoted, close = panel.fields.get("close_raw"), panel.fields["close"]
    if quoted is None:
        return np.ones(close.shape)
    good = (quoted > 0) & (close > 0)
    return np.where(good, np.where(good, close, 1.0) / np.where(good, quoted, 1.0), 1.0)


def _keep_positive(new: Frame, old: Frame) -> Frame:
    """Return the new prices; one that would not be positive stays what it was."""
    return np.where(new > 0, new, old)


def _order_prices(prices: Mapping[str, Frame]) -> dict[str, Frame]:
    """Return prices with the high highest and the low lowest."""
    outer = [prices[name] for name in PRICE_FIELDS]
    return {**prices, "high": np.maximum.reduce(outer), "low": np.minimum.reduce(outer)}


def _empty_cells(panel: Panel, gone: Cells) -> Panel:
    """Return the panel without some cells, which leave the universe of their day."""
    empty = {name: np.where(gone, np.nan, values) for name, values in panel.fields.items()}
    return replace_columns(panel, empty, panel.universe & ~gone)
