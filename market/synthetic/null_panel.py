"""Null panels: the days and symbols of a real panel, and returns whose signs are fair coins.

Each symbol's log returns are centred at its median and each day's market return is taken out. The days are permuted in
blocks, so that volatility and volume cluster as they did, and each day's moves are multiplied by a fair coin of its
own. Prices are rebuilt from the moves. Given everything up to a close, the sign of each later day is still a fair coin,
so nothing known by then orders the ranks of later returns, over any horizon: every factor accepted here is a false
discovery.

One coin for a whole block (`sign_days` as long as `block_days`) leaves the reversal from day to day inside each block,
because the product of two moves keeps its sign: such a panel has no effect that lasts longer than a block, but is not
null.

A coin makes every distribution symmetric. `kind="drawn"` keeps the skew instead: each symbol's moves, in units of the
day's spread and with mean zero, are drawn with replacement from its own days, and the spreads of the days are permuted
in blocks. No symbol has an expected return on any day, so no strategy has an expected profit. Permuting the moves would
not do: they would still sum to zero, so a symbol would lose its gains before the end. A RankIC need not be zero here:
of symbols with mean zero the one with the longer upper tail is more often below the others, so volatility, for one,
has a RankIC. A factor accepted here is accepted for that, or by chance. Symbols move independently of each other, and
volume has no trend.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ..panel import PRICE_FIELDS, Panel, compute_simple_returns

Frame = NDArray[np.float64]
Rows = NDArray[np.int64]
NULL_STREAM = 0x4E11
"""Keeps these draws apart from others with the same seed."""


class Nulling(BaseModel):
    """How a panel is made null."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["signs", "drawn"] = Field(
        default="signs",
        description="signs: a coin for each day; drawn: each name's own moves anew, which keeps their skew",
    )
    block_days: int = Field(default=20, ge=1, description="days that stay together when the days are permuted")
    sign_days: int = Field(
        default=1, ge=1, description="days that share a coin; more than 1 leaves the reversal between them"
    )


@dataclass(frozen=True)
class CentredMoves:
    """Centred log moves `[T, N]`; NaN where a price or the volume is missing.

    `night` is the close before to the open, `whole` the close before to the close, both less the market's; `up` and
    `down` are the distance of high and low beyond open and close. `market` `[T]` is the mean subtracted from `whole`.
    """

    night: Frame
    whole: Frame
    up: Frame
    down: Frame
    volume: Frame
    market: Frame

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Return the mask of cells with complete OHLCV `[T, N]`."""
        return np.isfinite(self.night + self.whole + self.up + self.down + self.volume)


def make_null_panel(panel: Panel, seed: int, how: Nulling | None = None) -> Panel:
    """Return a panel of the same days, symbols and missing cells whose returns are unpredictable.

    Parameters
    ----------
    panel
        T days by N symbols.
    seed
        Of the permutation, the coins and the draws; equal seeds give equal bytes.
    how
        The method, and the length of blocks and of spans that share a coin.

    Returns
    -------
    Panel
        Prices start at the first close of each symbol. Volume moves with its day. close_raw, vwap (typical price) and
        amount are recomputed where the panel has them; any other column stays, since it is independent of the coins. A
        symbol without a value on the drawn day gets another of its own days, under the same coin.
    """
    how = how or Nulling()
    rng = np.random.default_rng([seed, NULL_STREAM])
    moves = centre_moves(panel)
    rows = permute_rows(rng, panel.days, how.block_days)
    if how.kind == "drawn":
        fields = _draw_own_moves(panel, moves, rng, rows)
        note = f"made null with seed {seed}: moves drawn anew, nothing can earn"
    else:
        coins = rng.choice((-1.0, 1.0), panel.days)
        sign = coins[np.maximum(rows - 1, 0) // how.sign_days]
        fields = rebuild_fields(panel, moves, draw_donors(rng, rows, moves.usable), sign[:, None])
        note = f"made null with seed {seed}: nothing is in it"
    return Panel(
        dates=panel.dates,
        symbols=panel.symbols,
        fields=fields,
        universe=panel.universe,
        groups=panel.groups,
        group_labels=panel.group_labels,
        notes=(*panel.stamps, note),
        back_adjusted=panel.back_adjusted,
        volumes=panel.volumes,
        calendar=panel.calendar,
    )


def centre_moves(panel: Panel) -> CentredMoves:
    """Return the moves of a panel: the median of each name's log returns is 0, then the mean of each day's."""
    with np.errstate(divide="ignore", invalid="ignore"):
        opened, high, low, close = (np.log(panel.fields[name].astype(np.float64)) for name in PRICE_FIELDS)
    before = fill_last_before(close)
    volume = panel.fields["volume"].astype(np.float64)
    known = np.isfinite(opened + high + low + close + before + volume)
    night, whole = (np.where(known, price - before, np.nan) for price in (opened, close))
    whole = whole - _compute_name_medians(whole)
    market = _compute_day_means(whole)
    return CentredMoves(
        night=night - _compute_day_means(night)[:, None],
        whole=whole - market[:, None],
        up=np.where(known, np.maximum(high - np.maximum(opened, close), 0.0), np.nan),
        down=np.where(known, np.maximum(np.minimum(opened, close) - low, 0.0), np.nan),
        volume=np.where(known, volume, np.nan),
        market=market,
    )


def fill_last_before(values: Frame) -> Frame:
    """Return the last finite value of each symbol before each day, `[T, N]`; NaN where there is none."""
    rows = np.where(np.isfinite(values), np.arange(len(values))[:, None], -1)
    last = np.full(values.shape, -1)
    np.maximum.accumulate(rows[:-1], axis=0, out=last[1:])
    previous = np.take_along_axis(values, np.maximum(last, 0), axis=0)
    return np.where(last >= 0, previous, np.nan)


def permute_rows(rng: np.random.Generator, days: int, block_days: int) -> Rows:
    """Return the source row of each row `[T]`: blocks in random order; the first row, which has no move, stays."""
    blocks = np.split(np.arange(1, days), np.arange(block_days, days - 1, block_days))
    order = rng.permutation(len(blocks))
    return np.concatenate([np.zeros(1, np.int64), *(blocks[place] for place in order)])


def draw_donors(rng: np.random.Generator, rows: Rows, usable: NDArray[np.bool_]) -> Rows:
    """Return the source row of each cell `[T, N]`: that of its day, else a random usable one of the symbol."""
    source = np.repeat(rows[:, None], usable.shape[1], axis=1)
    for name in np.flatnonzero(~usable[rows].all(axis=0)):
        pool = np.flatnonzero(usable[:, name])
        lacking = ~usable[rows, name]
        if pool.size:
            source[lacking, name] = rng.choice(pool, int(lacking.sum()))
    return source


def _draw_own_moves(panel: Panel, moves: CentredMoves, rng: np.random.Generator, rows: Rows) -> dict[str, Frame]:
    """Return the fields of a panel on which each symbol draws its own moves, scaled by the spreads of permuted days."""
    spread = measure_day_spread(moves)
    unit = scale_to_spread(moves, spread)
    return rebuild_fields(panel, unit, draw_own_days(rng, unit.usable), spread[rows][:, None])


def measure_day_spread(moves: CentredMoves) -> Frame:
    """Return the median size of each day's moves, `[T]`; the median of all days where that is unknown or zero."""
    size = np.abs(moves.whole)
    spread = np.zeros(len(size))
    known = np.isfinite(size).any(axis=1)
    spread[known] = np.nanmedian(size[known], axis=1)
    usual = float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    return np.where(spread > 0, spread, usual)


def scale_to_spread(moves: CentredMoves, spread: Frame) -> CentredMoves:
    """Return the moves in units of their day's spread `[T]`, less the mean of each symbol."""
    unit = {name: getattr(moves, name) / spread[:, None] for name in ("night", "whole", "up", "down")}
    middle = {name: unit[name] - _compute_day_means(unit[name].T) for name in ("night", "whole")}
    return replace(moves, **{**unit, **middle})


def draw_own_days(rng: np.random.Generator, usable: NDArray[np.bool_]) -> Rows:
    """Return the source row of each cell `[T, N]`: any usable one of the symbol, with replacement."""
    source = np.zeros(usable.shape, dtype=np.int64)
    for name in range(usable.shape[1]):
        pool = np.flatnonzero(usable[:, name])
        if pool.size:
            source[:, name] = rng.choice(pool, len(source))
    return source


def rebuild_fields(panel: Panel, moves: CentredMoves, source: Rows, sign: Frame) -> dict[str, Frame]:
    """Return the fields of the null panel: moves chained from each symbol's first close, times `sign` `[T, 1]`.

    A negative sign mirrors a day: the reach above open and close becomes the reach below them.
    """
    parts = {
        name: np.take_along_axis(getattr(moves, name), source, axis=0) for name in ("night", "whole", "up", "down")
    }
    night, whole, up, down = (np.nan_to_num(values) for values in parts.values())
    size = np.abs(sign)
    known = np.isfinite(panel.fields["close"])
    first = np.take_along_axis(panel.fields["close"], known.argmax(axis=0)[None, :], axis=0)
    path = np.log(first) + np.cumsum(np.where(known, sign * whole, 0.0), axis=0)
    before = path - sign * whole
    opened = before + sign * night
    fields = dict(panel.fields)
    fields |= {
        "open": np.exp(opened),
        "high": np.exp(np.maximum(opened, path) + size * np.where(sign > 0, up, down)),
        "low": np.exp(np.minimum(opened, path) - size * np.where(sign > 0, down, up)),
        "close": np.exp(path),
        "volume": np.take_along_axis(moves.volume, source, axis=0),
    }
    return _restore_gaps(panel, _derive_dependents(fields))


def _derive_dependents(fields: dict[str, Frame]) -> dict[str, Frame]:
    """Return the fields with those recomputed that follow from prices and volume."""
    derived = {
        "close_raw": fields["close"],
        "vwap": (fields["high"] + fields["low"] + fields["close"]) / 3.0,
        "amount": fields["close"] * fields["volume"],
    }
    return {**fields, **{name: values for name, values in derived.items() if name in fields}}


def _restore_gaps(panel: Panel, fields: dict[str, Frame]) -> dict[str, Frame]:
    """Return the fields with the missing cells of the original, and returns to match."""
    restored = {}
    for name, values in fields.items():
        old = panel.fields[name]
        restored[name] = values if values is old else np.where(np.isnan(old), np.nan, values).astype(old.dtype)
    return restored | {"returns": compute_simple_returns(restored["close"])}


def _compute_name_medians(values: Frame) -> Frame:
    """Return the median of each symbol `[N]`; 0 where none is known."""
    known = np.isfinite(values).any(axis=0)
    middle = np.zeros(values.shape[1])
    middle[known] = np.nanmedian(values[:, known], axis=0)
    return middle


def _compute_day_means(values: Frame) -> Frame:
    """Return the mean of each day's known values `[T]`; 0 where none is known."""
    known = np.isfinite(values)
    mean: Frame = np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return mean
