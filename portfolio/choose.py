"""What a campaign accepted, combined: which combiner, how fast it is traded, and how the others would have done.

Weights are learnt from labels that ended before the first sealed day; through the sealed days what was learnt stands still,
and only the market's state, known at each close, still moves adaptive weights. Which combiner and which trading rate are
used is decided on search days alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..evidence import EvidenceSettings, Windows
from ..evidence.scoring import Profiler, Scorer, round_significant
from .blend import Blend, blend, slow_score
from .combination import CombinationPart, combine_ranks
from .combiners import COMBINER_KINDS, CombinerKind, combiner
from .comparison import Entrant, compare_combiners
from .market_state import market_states
from .moments import RankMoments, measure_moments, standard_ranks
from .trading_rate import trading_rate

__all__ = ["Combination", "Combining", "JudgedRun"]

Frame = NDArray[np.float32]

BEST_COMBINER = "best"
WALK_FORWARD_NOTE = (
    "Each day's weights rest on labels that had ended by then, so these are walk-forward figures; but the factors were found, "
    "and their signs and the trading rate chosen, on search, and the factors were accepted on selection, so that all rows "
    "flatter alike."
)


@dataclass(frozen=True, eq=False)
class Combination:
    """The combination of a campaign.

    Attributes
    ----------
    kind, rate
        The combiner, and the share of the way to its score that is traded each day.
    chosen
        Who chose the combiner, in words.
    score
        ``[T, N]``, traded at `rate`.
    weights
        ``[T, K]`` of `parts`, turned by their signs.
    at_once
        The score as it would be traded at once, ``[T, N]``.
    """

    kind: CombinerKind
    rate: float
    chosen: str
    parts: Sequence[CombinationPart]
    score: Frame
    weights: NDArray[np.float64]
    at_once: Frame

    def signed_weights(self, day: int = -1) -> dict[str, float]:
        """Return each factor's weight at the close of a day, times its sign."""
        return {
            part.factor_id: float(round_significant(float(weight)) or 0.0) * part.sign
            for part, weight in zip(self.parts, self.weights[day], strict=True)
        }


class JudgedRun(Protocol):
    """The run whose factors are combined: the days and the rules by which they were judged."""

    @property
    def scorer(self) -> Scorer:
        """Return what scores on the run's panel."""

    @property
    def windows(self) -> Windows:
        """Return the run's windows."""

    @property
    def settings(self) -> EvidenceSettings:
        """Return the rules."""


@dataclass(frozen=True, eq=False)
class Combining:
    """Combines the accepted factors of one run in every way, each made once."""

    judged: JudgedRun
    parts: Sequence[CombinationPart]

    def chosen(self) -> Combination:
        """Return the combination that the settings ask for."""
        asked = self.judged.settings.combination
        if len(self.parts) == 1:
            return self.made("equal", "there is one factor")
        if asked == "best":
            return self.made(self._best(), "highest Sharpe ratio after costs in walk-forward on search")
        return self.made(asked, "named by evidence.combination")

    def made(self, kind: CombinerKind, chosen: str) -> Combination:
        """Return the combination by one combiner; each is made once."""
        if kind not in self._made:
            found = self._blend(kind)
            rate = self.judged.settings.trading_rate or self._rate(found.score)
            score = slow_score(found.score, rate)
            self._made[kind] = Combination(kind, rate, "", self.parts, score, found.weights, found.score)
        return replace(self._made[kind], chosen=chosen)

    def compared(self) -> dict[str, Any] | None:
        """Return every combiner beside the others, on search and selection; None for a single factor."""
        if len(self.parts) == 1:
            return None
        windows = (self.judged.windows.search, self.judged.windows.selection)
        profilers = {window.name: Profiler(self.judged.scorer, window) for window in windows}
        made = {kind: self.made(kind, "") for kind in COMBINER_KINDS}
        entrants: dict[str, Entrant] = {kind: Entrant(each.at_once, each.score) for kind, each in made.items()}
        rates = {kind: round_significant(each.rate) for kind, each in made.items()}
        return {"note": WALK_FORWARD_NOTE, "trading_rate": rates, **compare_combiners(entrants, profilers)}

    def _best(self) -> CombinerKind:
        scorer, search = self.judged.scorer, self.judged.windows.search
        sharpes = {kind: scorer.score(self.made(kind, "").score, search, 1).net_sharpe for kind in COMBINER_KINDS}
        known = [kind for kind in COMBINER_KINDS if not np.isnan(sharpes[kind])] or [COMBINER_KINDS[0]]
        return max(known, key=lambda kind: sharpes[kind])

    def _blend(self, kind: CombinerKind) -> Blend:
        """Return the combination by one combiner as it would be traded at once."""
        how = combiner(kind, self.judged.settings.horizon_days)
        if kind == "equal":
            even = np.full((self.judged.scorer.panel.days, len(self.parts)), 1.0 / len(self.parts))
            return Blend(combine_ranks(self.parts), even, self._signs)
        return blend(self._ranks, self._moments, self._teaching_days, how, states=self._states, signs=self._signs)

    def _rate(self, score: Frame) -> float:
        return trading_rate(score, self.judged.scorer, self.judged.windows.search)

    @cached_property
    def _made(self) -> dict[CombinerKind, Combination]:
        return {}

    @cached_property
    def _states(self) -> NDArray[np.float64]:
        return market_states(self.judged.scorer.panel)

    @cached_property
    def _ranks(self) -> Sequence[Frame]:
        return [standard_ranks(part.values) for part in self.parts]

    @cached_property
    def _signs(self) -> NDArray[np.int64]:
        return np.array([part.sign for part in self.parts], dtype=np.int64)

    @cached_property
    def _teaching_days(self) -> NDArray[np.bool_]:
        """Tell which days teach: those whose labels ended before the first sealed day, `[T]`."""
        horizon, sealed = self.judged.settings.horizon_days, self.judged.windows.sealed
        return np.arange(self.judged.scorer.panel.days) + 1 + horizon < sealed.start

    @cached_property
    def _moments(self) -> RankMoments:
        label = np.where(self._teaching_days[:, None], self.judged.scorer.main_label, np.nan)
        return measure_moments(self._ranks, label)
