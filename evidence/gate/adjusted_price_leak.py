"""Test whether a factor reads the level of back-adjusted prices.

Such a level is the quoted price times every later split and dividend factor, so it contains the future; a ratio of two
levels does not. The test multiplies all adjusted prices of each name by a random constant per name, and checks that the
factor still ranks the names as before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...factors import Engine, Expression, row_rank_correlation
from ...market import SHARE_COUNT_FIELDS, Panel, find_adjusted_fields, keep_members
from ..values.computing import Computes, Computing
from ..windows import Window

RESCALING_SEED = 20_080_917
LEVEL_TEST_DAYS = 500
"""Rows of the test; a factor that looks further back is tested on more of the window."""
SPARE_DAYS = 60
CACHE_BYTES = 32 << 20
MIN_ORDER_CORRELATION = 0.999
"""Least mean daily rank correlation: float32 rounding may swap two names of nearly equal value."""
READS_LEVEL_MESSAGE = (
    "reads the level of back-adjusted prices, which know later splits and dividends: use close_raw for a level, "
    "or a ratio of prices (close / delay(close, 5))"
)
READS_VOLUMES_MESSAGE = (
    "reads the level of volumes in shares of a later day (said by market.volumes, or seen at the splits of search "
    "days), which know later splits: compare a volume with its own past (volume / ts_mean(volume, 20))"
)
UNORDERED_MESSAGE = (
    "orders no names on the last {days} days of search, so that it cannot be shown not to read the level of "
    "back-adjusted prices"
)


@dataclass(frozen=True)
class PriceLevelTest:
    """Compares factors on the last rows of a window with the same factors at other price levels."""

    panel: Panel
    window: Window
    computing: Computing | None = None

    def objection(self, expression: Expression) -> str:
        """Return why a factor may know later splits and dividends; empty if the test shows that it does not.

        Raises
        ------
        FactorError
            The panel lacks what the factor reads.
        PythonRefused
            Its code gave no values on these days.
        """
        if not (self.panel.back_adjusted or self.panel.volumes == "adjusted"):
            return ""
        if not (moved := expression.fields & self._last_days.moved):
            return ""
        is_long_enough = self._last_days.days >= expression.warmup + SPARE_DAYS
        pair = self._last_days if is_long_enough else self._build_pair(expression.warmup + SPARE_DAYS)
        objection = (self._all_days if expression.code else pair).objection(expression)
        return (
            READS_VOLUMES_MESSAGE if objection == READS_LEVEL_MESSAGE and moved <= {*SHARE_COUNT_FIELDS} else objection
        )

    @cached_property
    def _all_days(self) -> Pair:
        """Return the pair for code: all days on which it is scored, since on fewer it could give other values."""
        return self._build_pair_from(0)

    @cached_property
    def _last_days(self) -> Pair:
        return self._build_pair(LEVEL_TEST_DAYS)

    def _build_pair(self, days: int) -> Pair:
        return self._build_pair_from(max(self.window.stop - days, self.window.start))

    def _build_pair_from(self, first: int) -> Pair:
        part = keep_members(self.panel.rows(first, self.window.stop))  # or later names would move the constants
        other = rescale_prices(part)
        moved = frozenset(name for name in part.fields if other.fields[name] is not part.fields[name])
        return Pair(self._make_engine(part), self._make_engine(other), moved)

    def _make_engine(self, panel: Panel) -> Computes:
        """Return an engine for a panel; it computes formulas only where `computing` is None."""
        return self.computing.on(panel, CACHE_BYTES) if self.computing else Engine(panel, cache_bytes=CACHE_BYTES)


@dataclass(frozen=True)
class Pair:
    """The same days and names twice; `moved` are the fields whose level differs between them."""

    plain: Computes
    scaled: Computes
    moved: frozenset[str]

    @property
    def days(self) -> int:
        """Return the number of rows."""
        return self.plain.panel.days

    def objection(self, expression: Expression) -> str:
        """Return the objection if missing cells or the order of names differ between the panels, else an empty text."""
        before, after = (engine.evaluate([expression])[0] for engine in (self.plain, self.scaled))
        if not np.array_equal(np.isnan(before), np.isnan(after)):
            return READS_LEVEL_MESSAGE
        correlation = order_correlation(before, after)
        if correlation is None:
            return UNORDERED_MESSAGE.format(days=self.days)
        return "" if correlation >= MIN_ORDER_CORRELATION else READS_LEVEL_MESSAGE


def order_correlation(before: NDArray[np.float32], after: NDArray[np.float32]) -> float | None:
    """Return the mean daily rank correlation of two frames `[T, N]`; None where neither orders names on any day.

    A day on which both frames hold one value for all names, or fewer than two names, does not count; a day on which
    only one of them orders names counts as 0.
    """
    ordered = find_ordered_days(before) | find_ordered_days(after)
    if not ordered.any():
        return None
    if np.array_equal(before, after, equal_nan=True):  # as for every plain ratio; saves the sorting
        return 1.0
    return float(np.nan_to_num(row_rank_correlation(before, after, min_names=2)[ordered]).mean())


def find_ordered_days(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the days `[T]` that hold at least two different values."""
    differ: NDArray[np.bool_] = np.fmax.reduce(values, axis=1) > np.fmin.reduce(values, axis=1)
    return differ


def rescale_prices(panel: Panel) -> Panel:
    """Return the panel with the adjusted prices of each name multiplied by a random constant per name.

    Volumes and amounts in shares of the panel's last day get constants of their own. The constants are lognormal with
    deviation 1, rounded to powers of two: multiplication is then exact, a ratio of prices keeps its bits, and rounding
    is not mistaken for a level. A column named after the adjustment (adj_factor, adj_close) gets other constants than
    the prices, so that a ratio of such a column to a price is also found.
    """
    rng = np.random.default_rng(RESCALING_SEED)
    constant, apart, *others = (np.exp2(np.rint(rng.normal(0.0, 1.0 / np.log(2.0), panel.names))) for _ in range(4))
    fields = dict(panel.fields)
    fields |= {name: fields[name] * constant for name in find_adjusted_fields(panel)}
    fields |= {name: fields[name] * apart for name in fields if name.startswith("adj")}
    if panel.volumes == "adjusted":
        fields |= {
            name: fields[name] * factor
            for name, factor in zip(SHARE_COUNT_FIELDS, others, strict=True)
            if name in fields
        }
    return replace(panel, fields=fields)
