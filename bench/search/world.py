"""A panel with its windows and labels, and what is true of it; and the part of it that a method may see."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alphaloom.evidence import EvidenceSettings
from alphaloom.evidence.gate.adjusted_price_leak import PriceLevelTest
from alphaloom.evidence.newey_west import NeweyWest, newey_west_t
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window, Windows, fix_windows
from alphaloom.factors import Engine, Expression, RowOrder, order_rows, row_rank_correlation
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

__all__ = ["LAG", "Alpha", "Ground", "World", "labelled", "windows_of"]

Frame = NDArray[np.float64]
Values = NDArray[np.float32]
LAG = 2 * EvidenceSettings().horizon_days
"""Newey-West lag in days, as the evaluator's."""
LEAST_DAYS = 0.5
"""Share of search days on which a factor must order names; one that orders fewer has a t of 0."""


@dataclass(frozen=True)
class Alpha:
    """A planted alpha.

    Attributes
    ----------
    text : str
        Its formula.
    rank_ic : float
        Five-day RankIC at full life.
    first_day, end_day : int
        Rows on which it lives, the last one excluded.
    half_life_days : float or None
        None: it does not fade.
    life : float
        Mean share of its strength that it has on sealed days.
    t : float
        The evaluator's t of its formula on search days.
    known : bool
        Its form is in a library or a list.
    alive, counts : bool
        It lives in the sealed span; it does, and could be seen on search days.
    """

    text: str
    rank_ic: float
    first_day: int
    end_day: int
    half_life_days: float | None
    life: float
    t: float
    known: bool
    alive: bool
    counts: bool


@dataclass(frozen=True)
class World:
    """Everything of one benchmark panel.

    `label` `[T, N]` holds the evaluator's own residual five-day labels, NaN where one would end outside its window;
    `size` the log of what a name is worth, trailing; `expected` the noise-free expected return, None where nobody knows
    it.
    """

    name: str
    panel: Panel
    windows: Windows
    label: Frame
    size: Frame
    expected: Values | None = None
    alphas: tuple[Alpha, ...] = ()

    @property
    def counted(self) -> tuple[Alpha, ...]:
        """Return the alphas that a method is asked to find."""
        return tuple(alpha for alpha in self.alphas if alpha.counts)

    @cached_property
    def label_digest(self) -> str:
        """Return the digest of the labels."""
        return hashlib.sha256(self.label.tobytes()).hexdigest()

    def ground(self) -> Ground:
        """Return what a method may see."""
        return Ground(self.panel, self.windows.search, self.windows.search.cut(self.label))


@dataclass(frozen=True)
class Ground:
    """What a method may see: labels of search days only.

    `whole` is the panel of all days, so that what was fitted can be applied to later ones; nobody may fit on them.
    """

    whole: Panel
    search: Window
    label: Frame

    @cached_property
    def panel(self) -> Panel:
        """Return the search days."""
        return self.whole.rows(self.search.start, self.search.stop)

    @cached_property
    def engine(self) -> Engine:
        """Return the engine over search days."""
        return Engine(self.panel, threads=1)

    @cached_property
    def order(self) -> RowOrder:
        """Return the order of the names by label."""
        return order_rows(self.label)

    @cached_property
    def levels(self) -> PriceLevelTest:
        """Return the evaluator's test for what reads the level of back-adjusted prices, which knows later days."""
        return PriceLevelTest(self.panel, Window("search", 0, self.panel.days, "", ""))

    def test(self, values: Values) -> NeweyWest:
        """Return mean RankIC and t of values on search days, `[days, N]`; t is 0 where too few days have ranks."""
        daily = row_rank_correlation(values, self.order)
        found = newey_west_t(daily, LAG)
        seen = found.days >= LEAST_DAYS * np.count_nonzero(self.order.counts) and np.isfinite(found.t)
        return found if seen else NeweyWest(0.0, np.inf, 0.0, found.days)

    def score(self, expression: Expression) -> NeweyWest:
        """Compute a formula on search days and test it: one evaluation."""
        return self.test(self.engine.evaluate([expression])[0])


def windows_of(panel: Panel, name: str) -> Windows:
    """Return the windows that a campaign would fix for a panel, without fixing anything."""
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder), clock=_never) as ledger:
        return fix_windows(panel, ledger, EvidenceSettings().windows, name, store=False)


def labelled(name: str, panel: Panel) -> World:
    """Return a panel with its windows and labels."""
    windows, scorer = windows_of(panel, name), Scorer(panel, EvidenceSettings())
    label = np.full(panel.universe.shape, np.nan)
    for window in (windows.search, windows.selection, windows.sealed):
        label[window.start : window.stop] = scorer.target(window).label
    return World(name, panel, windows, label, scorer.exposures.size)


def _never() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)
