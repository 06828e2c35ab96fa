"""The combination of a campaign's accepted factors: combiner, trading rate, and how the alternatives would have done.

Weights are learnt from labels that ended before the first sealed day. Through the sealed days the learnt part stays fixed,
and only the market's state, known at each close, moves adaptive weights. Combiner and trading rate are chosen on search days
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..evidence import EvidenceSettings, Windows
from ..evidence.scoring import Profiler, Scorer, round_significant
from ..factors import rank_rows
from ..ledger.files import make_file
from ..market import Panel
from .blend import Blend, blend_ranks
from .combiners import COMBINER_KINDS, CombinerKind, build_combiner
from .market_state import market_states
from .moments import RankMoments, measure_moments, standard_ranks
from .trading_rate import choose_trading_rate, measure_half_life, slow_score

Frame = NDArray[np.float32]

BEST_COMBINER = "best"
WALK_FORWARD_NOTE = (
    "Each day's weights rest on labels that had ended by then, so these are walk-forward figures; but the factors were found, "
    "and their signs and the trading rate chosen, on search, and the factors were accepted on selection, so that all rows "
    "flatter alike."
)

Series = NDArray[np.float64]

BOOTSTRAP_BLOCK_HORIZONS = 4
"""Days of a block for each day of the label: labels overlap, and factors' good weeks come together."""
BOOTSTRAP_DRAWS = 2_000
BOOTSTRAP_SEED = 20_130_606
INTERVAL_SHARE = 0.95


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
        how = build_combiner(kind, self.judged.settings.horizon_days)
        if kind == "equal":
            even = np.full((self.judged.scorer.panel.days, len(self.parts)), 1.0 / len(self.parts))
            return Blend(combine_ranks(self.parts), even, self._signs)
        return blend_ranks(self._ranks, self._moments, self._teaching_days, how, states=self._states, signs=self._signs)

    def _rate(self, score: Frame) -> float:
        return choose_trading_rate(score, self.judged.scorer, self.judged.windows.search)

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


@dataclass(frozen=True)
class CombinationPart:
    """One accepted factor or set in the combination; `sign` is its direction on search."""

    factor_id: str
    sign: int
    values: NDArray[np.float32]


def combine_ranks(parts: Sequence[CombinationPart]) -> NDArray[np.float32]:
    """Return the mean of the parts' ranks, each centred at 0 and turned by its sign.

    Parameters
    ----------
    parts
        At least one; values `[T, N]`.

    Returns
    -------
    NDArray[np.float32]
        `[T, N]` in [-0.5, 0.5]; NaN where no part has a value. A part without a value there is left out of the mean.
    """
    total = np.zeros(parts[0].values.shape)
    count = np.zeros(parts[0].values.shape)
    for part in parts:
        ranks = part.sign * (rank_rows(part.values) - 0.5)
        seen = ~np.isnan(ranks)
        total += np.where(seen, ranks, 0.0)
        count += seen
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def write_combination(score: NDArray[np.float32], panel: Panel, path: Path) -> int:
    """Write a score as a tidy Parquet file (date, symbol, score), whole or not at all, and return its rows."""
    import pandas as pd

    rows, columns = np.nonzero(~np.isnan(score))
    symbols = np.array(panel.symbols, dtype=object)
    frame = pd.DataFrame(
        {"date": panel.dates[rows].astype("datetime64[s]"), "symbol": symbols[columns], "score": score[rows, columns]}
    )
    unfinished = path.with_suffix(".unfinished")
    make_file(unfinished)
    try:
        frame.to_parquet(unfinished, index=False, compression="zstd")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)  # what a full disk cut off
    return len(frame)


@dataclass(frozen=True, eq=False)
class Entrant:
    """A combination as it is, and as it is traded at its rate; ``[T, N]`` each."""

    at_once: Frame
    traded: Frame


@dataclass(frozen=True)
class PairedDifference:
    """Mean of paired daily differences with the interval that holds it in 95 of 100 redrawn histories; NaN unknown."""

    mean: float
    low: float
    high: float
    days: int

    @property
    def is_tie(self) -> bool:
        """Tell whether 0 lies within the interval, or nothing is known."""
        return not (self.low > 0 or self.high < 0)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        numbers = {name: round_significant(getattr(self, name)) for name in ("mean", "low", "high")}
        return {**numbers, "days": self.days, "tie": self.is_tie}


def bootstrap_difference(
    one: Series, other: Series, horizon: int, *, draws: int = BOOTSTRAP_DRAWS, seed: int = BOOTSTRAP_SEED
) -> PairedDifference:
    """Compare two daily series of the same days by the circular block bootstrap.

    Parameters
    ----------
    one, other
        ``[D]``, NaN where undefined; a day counts where both are known.
    horizon
        Days of the label; blocks are four times as long.
    draws, seed
        Redrawn histories, and where all chance comes from.

    References
    ----------
    Politis and Romano (1992), in Exploring the Limits of Bootstrap, 263-270: blocks in a circle.
    """
    paired = one - other
    paired = paired[~np.isnan(paired)]
    days, block = len(paired), BOOTSTRAP_BLOCK_HORIZONS * horizon
    if days < 2 * block:
        return PairedDifference(float(paired.mean()) if days else float("nan"), float("nan"), float("nan"), days)
    around = np.concatenate([paired, paired[: block - 1]])
    sums = np.convolve(around, np.ones(block), mode="valid")
    starts = np.random.default_rng(seed).integers(0, days, (draws, -(-days // block)))
    means = sums[starts].mean(axis=1) / block
    low, high = np.quantile(means, [(1 - INTERVAL_SHARE) / 2, (1 + INTERVAL_SHARE) / 2])
    return PairedDifference(float(paired.mean()), float(low), float(high), days)


def combination_figures(score: Frame, profiler: Profiler) -> dict[str, Any]:
    """Return what a combination shows on a window: RankIC, t, turnover, Sharpe, half-life, capacity."""
    window = profiler.window
    sheet = profiler.scorer.score(score, window, 1)
    named = ("rank_ic", "t", "turnover", "gross_sharpe", "net_sharpe")
    return {
        **{name: round_significant(getattr(sheet, name)) for name in named},
        "half_life_days": round_significant(measure_half_life(score, window)),
        "capacity": profiler.capacity(score),
    }


def compare_pairs(entrants: Mapping[str, Entrant], profiler: Profiler) -> list[dict[str, Any]]:
    """Return the differences of each pair: of the daily RankIC at once, and of the daily return after costs as traded.

    The first tells the combiners apart, whatever the rates; the second is what the rates are chosen for.
    """
    scorer, window = profiler.scorer, profiler.window
    told = {name: scorer.daily_rank_ic(each.at_once, window) for name, each in entrants.items()}
    earned = {name: scorer.score(each.traded, window, 1).net_daily for name, each in entrants.items()}
    names, horizon = list(entrants), scorer.settings.horizon_days
    return [
        {
            "of": one,
            "less": other,
            "rank_ic": bootstrap_difference(told[one], told[other], horizon).record(),
            "net_return": bootstrap_difference(earned[one], earned[other], horizon).record(),
        }
        for place, one in enumerate(names)
        for other in names[:place]
    ]


def compare_combiners(entrants: Mapping[str, Entrant], profilers: Mapping[str, Profiler]) -> dict[str, Any]:
    """Return figures and paired differences of several combinations on each window, by the window's name."""
    return {
        name: {
            "combiners": {kind: combination_figures(each.traded, profiler) for kind, each in entrants.items()},
            "differences": compare_pairs(entrants, profiler),
        }
        for name, profiler in profilers.items()
    }
