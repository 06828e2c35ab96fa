"""Other plausible futures of a panel after a day, on which code that looks ahead gives other values.

Each symbol continues from its last close with its own moves, drawn in blocks of days from its whole history, the same
days for all symbols: volatility clusters, symbols move together, and open, high, low, close and volume of a cell come
from one real day and agree. Dates, symbols and missing cells stay. Only some of the days are drawn, so that sums,
means, extremes and the last price of the whole sample change too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from ..jail.frames import Frames

Frame = NDArray[np.float64]
Rows = NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)
SEED_STREAM = 0xF07E
"""Keeps these draws apart from others with the same seed."""
PRICES_BESIDE_CLOSE = ("open", "high", "low", "vwap")
"""Prices of the day that keep their ratio to its close."""
LEVEL_FIELDS = ("adj_close", "adj_factor", "cap", "close_raw", "market_cap", "shares")
"""Levels that continue from their last value by their own moves, as the close does."""
RETURN_TOLERANCE = 1e-6
"""Largest difference from the closes' simple return with which the column `returns` is recomputed from them."""


@dataclass(frozen=True, eq=False)
class Futures:
    """The futures that a panel could have had.

    Attributes
    ----------
    frames : Frames
        The panel, `[T, N]` a field.
    seed : int
        Seed of the draws; equal seeds give equal bytes. Not negative.
    block_days : int
        Days that stay together; fewer where little is left of the panel.
    """

    frames: Frames
    seed: int = 0
    block_days: int = 15

    def draw_after(self, day: int) -> Frames:
        """Return the panel with every row after `day` replaced by another future.

        Parameters
        ----------
        day
            Row of the last day that stays, from 0 to T - 2.

        Returns
        -------
        Frames
            The same days, symbols, fields and missing cells. Rows up to `day` are equal to the bit. `returns` is
            recomputed where it was the closes' simple return, `amount` keeps its ratio to close times volume, and an
            unknown column is permuted within each symbol. A symbol without one complete day keeps its values.

        Raises
        ------
        BadInput
            A day that is not in the panel, or has none behind it.
        """
        days, _ = self.frames.shape
        if not 0 <= day < days - 1:
            raise BadInput("this day has no later one", field="day", got=day, allowed=f"0 to {days - 2}")
        rng = np.random.default_rng([SEED_STREAM, self.seed, day])
        source = _draw_donors(rng, self._draw_rows(rng, day), self._usable)
        new = self._draw_prices(source, day) if "close" in self.frames.fields else {}
        for name in self.frames.names:
            if name not in new:
                new[name] = self._draw_values(rng, name, source)
        return self._join_rows(new, day)

    def _draw_rows(self, rng: np.random.Generator, day: int) -> Rows:
        """Return the source row of each later row, `[T - 1 - day]`: blocks of the whole panel in random order."""
        days, _ = self.frames.shape
        length = max(1, min(self.block_days, (days - 1) // 8))
        cuts = np.arange(1 + int(rng.integers(length)), days - 1, length)
        blocks = [block for block in np.split(np.arange(1, days), cuts) if block.size]
        order = [blocks[place] for place in rng.permutation(len(blocks))]
        if order[0][0] == day + 1:  # with the true next day first it would be the true future
            order = [*order[1:], order[0]]
        return np.concatenate(order)[: days - 1 - day]

    @cached_property
    def _usable(self) -> NDArray[np.bool_]:
        """Return the cells with complete values and an earlier close, `[T, N]`."""
        fields = self.frames.fields
        usable = np.ones(self.frames.shape, dtype=np.bool_)
        for name in ("open", "high", "low", "volume"):
            if name in fields:
                usable &= np.isfinite(fields[name])
        if "close" in fields:
            usable &= np.isfinite(self._compute_moves("close"))
        return usable

    def _mask_known(self, name: str) -> NDArray[np.bool_]:
        return ~np.isnan(self.frames.fields[name])

    def _compute_moves(self, name: str) -> Frame:
        """Return each value over the symbol's last known one, `[T, N]`; NaN where either is missing or not positive."""
        values = self.frames.fields[name]
        good = np.where(values > 0.0, values, np.nan)
        move: Frame = np.full(values.shape, np.nan)
        np.divide(good[1:], _fill_forward(good)[:-1], out=move[1:])
        return move

    def _draw_prices(self, source: Rows, day: int) -> dict[str, Frame]:
        """Return prices, volume and the fields that follow from them on the later days."""
        fields = self.frames.fields
        path = self._chain_moves("close", source, day)
        new = {"close": path[1:]}
        with np.errstate(invalid="ignore", divide="ignore"):
            for name in PRICES_BESIDE_CLOSE:
                if name in fields:
                    new[name] = path[1:] * _take_rows(fields[name] / fields["close"], source)
            if "volume" in fields:
                new["volume"] = _take_rows(fields["volume"], source)
            if "amount" in fields and "volume" in fields:
                paid = _take_rows(fields["amount"] / (fields["close"] * fields["volume"]), source)
                new["amount"] = np.where(np.isfinite(paid), path[1:] * new["volume"] * paid, 0.0)
            for name in LEVEL_FIELDS:
                if name in fields:
                    new[name] = self._chain_moves(name, source, day)[1:]
            if "returns" in fields and self._returns_are_simple:
                new["returns"] = path[1:] / path[:-1] - 1.0
        return new

    def _chain_moves(self, name: str, source: Rows, day: int) -> Frame:
        """Return the last value of each symbol and the path of its drawn moves from there, `[T - day, N]`."""
        values = self.frames.fields[name]
        move = _take_rows(self._compute_moves(name), source)
        there = np.isfinite(values[day + 1 :]) & np.isfinite(move)
        last, first = _fill_forward(values)[day], _find_first_known(values)
        start = np.where(np.isfinite(last), last, first)
        steps = np.concatenate([start[None, :], np.where(there, move, 1.0)])
        path: Frame = np.cumprod(steps, axis=0)
        return path

    @cached_property
    def _returns_are_simple(self) -> bool:
        """Return whether `returns` follows from the closes."""
        close, returns = self.frames.fields["close"], self.frames.fields["returns"][1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.abs(close[1:] / close[:-1] - 1.0 - returns)
        known = np.isfinite(off)
        return bool(known.any() and np.mean(off[known] < RETURN_TOLERANCE) > 0.99)

    def _draw_values(self, rng: np.random.Generator, name: str, source: Rows) -> Frame:
        """Return the values of the drawn days; where the column lacks one, another day of the same symbol."""
        values = self.frames.fields[name]
        known = np.isfinite(values)
        source, lacking = source.copy(), ~_take_rows(known, source)
        for column in np.flatnonzero(lacking.any(axis=0) & known.any(axis=0)):
            rows = lacking[:, column]
            source[rows, column] = rng.choice(np.flatnonzero(known[:, column]), int(rows.sum()))
        return _take_rows(values, source)

    def _join_rows(self, new: dict[str, Frame], day: int) -> Frames:
        """Return the panel of the old rows and the new ones, with the missing cells of the old."""
        fields, unchanged = {}, ~self._usable.any(axis=0)
        for name, old in self.frames.fields.items():
            fields[name] = old.copy()
            replaced = self._mask_known(name)[day + 1 :] & np.isfinite(new[name]) & ~unchanged
            np.copyto(fields[name][day + 1 :], new[name], where=replaced)
            fields[name].setflags(write=False)
        return Frames(fields, self.frames.dates, self.frames.symbols)


def _draw_donors(rng: np.random.Generator, rows: Rows, usable: NDArray[np.bool_]) -> Rows:
    """Return the source row of each later cell, `[T - 1 - day, N]`: the day's, else a random one of the symbol."""
    source = np.repeat(rows[:, None], usable.shape[1], axis=1)
    for name in np.flatnonzero(~usable[rows].all(axis=0)):
        pool = np.flatnonzero(usable[:, name])
        lacking = ~usable[rows, name]
        if pool.size:
            source[lacking, name] = rng.choice(pool, int(lacking.sum()))
    return source


def _take_rows(values: NDArray[Kind], source: Rows) -> NDArray[Kind]:
    return np.take_along_axis(values, source, axis=0)


def _fill_forward(values: Frame) -> Frame:
    """Return the last known value of each symbol up to each day, `[T, N]`, NaN where there is none."""
    rows = np.where(np.isfinite(values), np.arange(len(values))[:, None], -1)
    last = np.maximum.accumulate(rows, axis=0)
    return np.where(last >= 0, np.take_along_axis(values, np.maximum(last, 0), axis=0), np.nan)


def _find_first_known(values: Frame) -> Frame:
    """Return the first known value of each symbol, `[N]`, 1 where there is none."""
    known = np.isfinite(values)
    first = np.take_along_axis(values, known.argmax(axis=0)[None, :], axis=0)[0]
    return np.where(known.any(axis=0), first, 1.0)
