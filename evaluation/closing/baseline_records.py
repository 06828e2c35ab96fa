"""Frozen records of the baseline in `results.json`: the published formulas on search days, and their combination.

Units are those of `factor_records`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .close_records import CombinerFigures
from .factor_records import Figure, ResultsPart

MIN_LIVING_T = 2.0
"""Least absolute t on search days of a formula that is said to live."""


class PublishedFormula(ResultsPart):
    """A published formula on the search days.

    Attributes
    ----------
    mechanism
        The effect or quantity that the source documents; empty where it documents none.
    rank_ic, t
        Of the formula as printed: a negative sign means that it is held the other way round.
    turnover, net_sharpe
        Of the long-short in the direction that search shows; the Sharpe ratio is after costs.
    objection
        Why its figures on this panel count for nothing; empty where they count.
    """

    name: str
    source: str = ""
    mechanism: str = ""
    text: str = ""
    rank_ic: Figure = None
    t: Figure = None
    turnover: Figure = None
    net_sharpe: Figure = None
    objection: str = ""

    @property
    def lives(self) -> bool:
        """True for a formula whose absolute t on search days is at least `MIN_LIVING_T`, without an objection."""
        return not self.objection and abs(self.t or 0.0) >= MIN_LIVING_T

    @property
    def sign(self) -> int:
        """Return the direction in which it is held, fixed on search: 1 or -1."""
        return -1 if (self.rank_ic or 0.0) < 0 else 1


class BaselineMember(ResultsPart):
    """A formula of the baseline with its signed weight; `alike` counts the living formulas for which it is there."""

    name: str
    weight: Figure = None
    alike: int = 1


class BaselineAddition(ResultsPart):
    """The campaign's combination on one window, its ranks residualised on those of the baseline.

    `kept` is the share of the variance of its ranks that is left.
    """

    rank_ic: Figure = None
    t: Figure = None
    kept: Figure = None


class Baseline(ResultsPart):
    """The published formulas that live on search days, combined as a campaign combines its factors.

    Attributes
    ----------
    published, computable
        Published formulas in all, and those that this panel can compute.
    living, by_chance
        Formulas that live, and the number expected if none predicted anything.
    formulas
        Each formula that the panel can compute, the largest absolute t first.
    members
        The strongest formula of each group of formulas that rank the names alike, ten at most.
    trading_rate
        Share of the way to the score that is traded each day.
    search, selection, sealed
        Figures by window. Those of selection and sealed days are computed after the last test. They are no trial.
    own
        The campaign's combination by window, measured in the same way.
    addition
        What the campaign's combination adds, by window.
    addition_of
        The verdict on the combination that `own` and `addition` are of; empty without a combination.
    """

    published: int = 0
    computable: int = 0
    living: int = 0
    by_chance: Figure = None
    formulas: tuple[PublishedFormula, ...] = ()
    members: tuple[BaselineMember, ...] = ()
    combiner: str = ""
    chosen: str = ""
    trading_rate: Figure = None
    search: CombinerFigures | None = None
    selection: CombinerFigures | None = None
    sealed: CombinerFigures | None = None
    own: Mapping[str, CombinerFigures] = {}
    addition: Mapping[str, BaselineAddition] = {}
    addition_of: str = ""
