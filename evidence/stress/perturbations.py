"""Spoiled data: what a factor is told is wrong, late or missing, while the market and what it pays stay as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...market import Panel
from ...market.panel import PRICE_FIELDS
from .overlay import altered

__all__ = ["PERTURBATIONS", "Spoiled", "spoiled"]

Frame = NDArray[np.float64]
Cells = NDArray[np.bool_]
TICK: Final = 0.01
BAD: Final = 1e-4
BAD_FACTORS: Final = np.array([0.1, 0.5, 2.0, 10.0])
SPLIT_NAMES: Final = 0.1
FROZEN, FROZEN_DAYS = 0.05, 5
DAY_OF: Final = 50
FRACTION_OF_A_DAY: Final = 25


@dataclass(frozen=True, eq=False)
class Spoiled:
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


def spoiled(panel: Panel, seed: int) -> Iterator[Spoiled]:
    """Yield the panel spoiled in every way, each drawn from its own stream.

    Parameters
    ----------
    panel
        The days that may be read, and no other; T days, N names.
    seed
        Equal seeds spoil the same cells.
    """
    for place, (code, spoil) in enumerate(PERTURBATIONS.items()):
        days = np.flatnonzero(np.arange(panel.days) % DAY_OF != FRACTION_OF_A_DAY) if code == "missing_day" else None
        told = spoil(panel, np.random.default_rng([seed, 100 + place]))
        yield Spoiled(code, told, np.arange(panel.days) if days is None else days)


def tick_noise(panel: Panel, rng: np.random.Generator) -> Panel:
    """Put each open, high, low and close a tick of 0.01 up, down or nowhere; a tick is counted at the quoted price."""
    tick = TICK * _adjustment(panel)
    moved = {name: panel.fields[name] + tick * rng.integers(-1, 2, tick.shape) for name in PRICE_FIELDS}
    return altered(panel, _ordered({name: _priced(new, panel.fields[name]) for name, new in moved.items()}))


def cents(panel: Panel, rng: np.random.Generator) -> Panel:
    """Round every price to 0.01 as it stands in the file, adjusted or not."""
    rounded = {name: np.round(panel.fields[name] / TICK) * TICK for name in PRICE_FIELDS}
    return altered(panel, {name: _priced(new, panel.fields[name]) for name, new in rounded.items()})


def bad_ticks(panel: Panel, rng: np.random.Generator) -> Panel:
    """Make one price in 10,000 0.1, 0.5, 2 or 10 times itself, for one day and in one column."""
    shape = panel.universe.shape
    wrong = {
        name: np.where(rng.random(shape) < BAD, rng.choice(BAD_FACTORS, shape), 1.0) * panel.fields[name]
        for name in PRICE_FIELDS
    }
    return altered(panel, wrong)


def missing_1(panel: Panel, rng: np.random.Generator) -> Panel:
    """Lose one cell in a hundred, a name's whole day."""
    return _emptied(panel, rng.random(panel.universe.shape) < 0.01)


def missing_5(panel: Panel, rng: np.random.Generator) -> Panel:
    """Lose five cells in a hundred."""
    return _emptied(panel, rng.random(panel.universe.shape) < 0.05)


def missing_day(panel: Panel, rng: np.random.Generator) -> Panel:
    """Lose one day in 50: the panel has no such row, and the next one's returns span two days."""
    kept = np.arange(panel.days) % DAY_OF != FRACTION_OF_A_DAY
    short = replace(
        panel,
        dates=panel.dates[kept],
        fields={name: values[kept] for name, values in panel.fields.items()},
        universe=panel.universe[kept],
    )
    return altered(short, {})


def wrong_split(panel: Panel, rng: np.random.Generator) -> Panel:
    """Split one name in ten two for one on a drawn day and adjust nothing: half the price and twice the volume from then on."""
    days, names = panel.universe.shape
    hit = rng.random(names) < SPLIT_NAMES
    after = (np.arange(days)[:, None] >= rng.integers(1, days, names)) & hit
    priced = {name: panel.fields[name] * np.where(after, 0.5, 1.0) for name in _priced_names(panel)}
    return altered(panel, priced | {"volume": panel.fields["volume"] * np.where(after, 2.0, 1.0)})


def frozen_feed(panel: Panel, rng: np.random.Generator) -> Panel:
    """Repeat a name's last close, with no volume, in one cell of twenty, in spells of five days: a feed that froze."""
    shape = panel.universe.shape
    begins = rng.random(shape) < FROZEN / FROZEN_DAYS
    stale = np.zeros(shape, np.bool_)
    for age in range(FROZEN_DAYS):
        stale[age:] |= begins[: shape[0] - age]
    stale[0] = False
    source = np.maximum.accumulate(np.where(stale, 0, np.arange(shape[0])[:, None]), axis=0)
    last = np.take_along_axis(panel.fields["close"], source, axis=0)
    here = stale & np.isfinite(panel.fields["close"]) & np.isfinite(last)
    still = {name: np.where(here, last, panel.fields[name]) for name in (*PRICE_FIELDS, *_also(panel, "vwap"))}
    quiet = {name: np.where(here, 0.0, panel.fields[name]) for name in ("volume", *_also(panel, "amount"))}
    held = {name: _held(panel.fields[name], source, here) for name in _also(panel, "close_raw", "cap")}
    return altered(panel, still | quiet | held)


PERTURBATIONS: Mapping[str, Spoil] = {
    "tick_noise": tick_noise, "cents": cents, "bad_ticks": bad_ticks, "missing_1": missing_1, "missing_5": missing_5,
    "missing_day": missing_day, "wrong_split": wrong_split, "frozen_feed": frozen_feed,
}  # fmt: skip


def _also(panel: Panel, *names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in panel.fields)


def _priced_names(panel: Panel) -> tuple[str, ...]:
    return (*PRICE_FIELDS, *_also(panel, "vwap", "close_raw"))


def _held(values: Frame, source: NDArray[np.intp], here: Cells) -> Frame:
    return np.where(here, np.take_along_axis(values, source, axis=0), values)


def _adjustment(panel: Panel) -> Frame:
    """Return the adjusted over the quoted price; 1 where no quoted close is known."""
    quoted, close = panel.fields.get("close_raw"), panel.fields["close"]
    if quoted is None:
        return np.ones(close.shape)
    good = (quoted > 0) & (close > 0)
    return np.where(good, np.where(good, close, 1.0) / np.where(good, quoted, 1.0), 1.0)


def _priced(new: Frame, old: Frame) -> Frame:
    """Return the new prices; one that would not be positive stays what it was."""
    return np.where(new > 0, new, old)


def _ordered(prices: Mapping[str, Frame]) -> dict[str, Frame]:
    """Return prices with the high highest and the low lowest."""
    outer = [prices[name] for name in PRICE_FIELDS]
    return {**prices, "high": np.maximum.reduce(outer), "low": np.minimum.reduce(outer)}


def _emptied(panel: Panel, gone: Cells) -> Panel:
    """Return the panel without some cells, which leave the universe of their day."""
    empty = {name: np.where(gone, np.nan, values) for name, values in panel.fields.items()}
    return altered(panel, empty, panel.universe & ~gone)
