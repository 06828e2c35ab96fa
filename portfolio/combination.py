"""The combination of a campaign's accepted factors: combiner, trading rate, and a comparison of combiners.

Weights are learnt from labels that ended before the first sealed day. During the sealed days the learnt part stays
fixed, and adaptive weights change only with the market's state, known at each close. Combiner and trading rate are
chosen on search days only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..evidence import EvidenceSettings, Windows
from ..evidence.scoring import Profiler, Scorer, market_return, round_significant
from ..factors import rank_rows
from ..ledger.files import make_file
from ..market import Panel
from .blend import Blend, blend_ranks, weigh_ranks
from .combiners import COMBINER_KINDS, CombinerKind, build_combiner
from .moments import RankMoments, measure_moments, standard_ranks
from .trading_rate import choose_trading_rate, measure_half_life, slow_score

Frame = NDArray[np.float32]

WALK_FORWARD_NOTE = (
    "Each day's weights rest on labels that had ended by then, so these are walk-forward figures; but the factors were "
    "found, and their signs and the trading rate chosen, on search, and the factors were accepted on selection. All "
    "lines of these two windows are therefore optimistically biased, and a significant difference between them is in "
    "sample."
)

Series = NDArray[np.float64]

BOOTSTRAP_BLOCK_HORIZONS = 4
"""Block length in horizons: labels overlap, and good periods of factors cluster."""
BOOTSTRAP_DRAWS = 2_000
BOOTSTRAP_SEED = 20_130_606
INTERVAL_SHARE = 0.95
SHORT_DAYS, LONG_DAYS = 20, 60
LOOK_BACK_DAYS = 756
"""Days with which a day is compared (three years); at least `LONG_DAYS` of them must be known."""
UNKNOWN_STATE = 0.5


@dataclass(frozen=True, eq=False)
class Combination:
    """The combination of a campaign.

    Attributes
    ----------
    kind, rate
        The combiner, and the share of the way to its score that is traded each day.
    chosen
        How the combiner was chosen, in words.
    score
        The score slowed to the trading rate, ``[T, N]``.
    weights
        ``[T, K]``: weights of `parts` times their signs.
    at_once
        The score before the trading rate, ``[T, N]``.
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
    """The run whose factors are combined: its scorer, windows and settings."""

    @property
    def scorer(self) -> Scorer:
        """Return the scorer of the run's panel."""

    @property
    def windows(self) -> Windows:
        """Return the run's windows."""

    @property
    def settings(self) -> EvidenceSettings:
        """Return the evidence settings."""


@dataclass(frozen=True, eq=False)
class Combining:
    """Combines factors of one run by any combiner; each combination is computed once.

    Attributes
    ----------
    parts
        The factors, `[T, N]` each.
    last_window
        Weights rest on labels that ended before the day after this window. Before the first test of a campaign it is
        the search window; for a combination of accepted factors, which is untested, the selection window.
    """

    judged: JudgedRun
    parts: Sequence[CombinationPart]
    last_window: Literal["search", "selection"] = "selection"

    def combine_as_set(self) -> Combination:
        """Return the combination by the combiner of the settings."""
        kind = self.judged.settings.combination
        if len(self.parts) == 1:
            return self.combine("equal", "there is one factor")
        if kind == "best":
            return self.combine(self._choose_best(), "highest Sharpe ratio after costs in walk-forward on search")
        return self.combine(kind, "set in the campaign file, evidence.combination")

    def combine(self, kind: CombinerKind, chosen: str) -> Combination:
        """Return the combination by one combiner; `chosen` says in words how it was chosen."""
        if kind not in self._combinations:
            blend = self._blend(kind)
            rate = self.judged.settings.trading_rate or self._choose_rate(blend.score)
            score = slow_score(blend.score, rate)
            self._combinations[kind] = Combination(kind, rate, "", self.parts, score, blend.weights, blend.score)
        return replace(self._combinations[kind], chosen=chosen)

    def compare(self) -> dict[str, Any] | None:
        """Return the comparison of all combiners on search and selection; None for a single factor."""
        if len(self.parts) == 1:
            return None
        windows = (self.judged.windows.search, self.judged.windows.selection)
        profilers = {window.name: Profiler(self.judged.scorer, window) for window in windows}
        combinations = {kind: self.combine(kind, "") for kind in COMBINER_KINDS}
        entrants: dict[str, Entrant] = {
            kind: Entrant(combination.at_once, combination.score) for kind, combination in combinations.items()
        }
        rates = {kind: round_significant(combination.rate) for kind, combination in combinations.items()}
        return {"note": WALK_FORWARD_NOTE, "trading_rate": rates, **compare_combiners(entrants, profilers)}

    def _choose_best(self) -> CombinerKind:
        scorer, search = self.judged.scorer, self.judged.windows.search
        sharpes = {kind: scorer.score(self.combine(kind, "").score, search, 1).net_sharpe for kind in COMBINER_KINDS}
        defined = [kind for kind in COMBINER_KINDS if not np.isnan(sharpes[kind])] or [COMBINER_KINDS[0]]
        return max(defined, key=lambda kind: sharpes[kind])

    def _blend(self, kind: CombinerKind) -> Blend:
        """Return the combination by one combiner, before the trading rate."""
        how = build_combiner(kind, self.judged.settings.horizon_days)
        if kind == "equal":
            even = np.full((self.judged.scorer.panel.days, len(self.parts)), 1.0 / len(self.parts))
            return Blend(combine_ranks(self.parts), even, self._signs)
        return blend_ranks(
            self._ranks, self._moments, self._learnable_days, how, states=self._states, signs=self._signs
        )

    def _choose_rate(self, score: Frame) -> float:
        return choose_trading_rate(score, self.judged.scorer, self.judged.windows.search)

    @cached_property
    def _combinations(self) -> dict[CombinerKind, Combination]:
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
    def _learnable_days(self) -> NDArray[np.bool_]:
        """Return the days whose labels ended before the end of the last window, `[T]`."""
        horizon, windows = self.judged.settings.horizon_days, self.judged.windows
        stop = windows.search.stop if self.last_window == "search" else windows.sealed.start
        return np.arange(self.judged.scorer.panel.days) + 1 + horizon < stop

    @cached_property
    def _moments(self) -> RankMoments:
        label = np.where(self._learnable_days[:, None], self.judged.scorer.main_label, np.nan)
        return measure_moments(self._ranks, label)


@dataclass(frozen=True)
class CombinationPart:
    """One accepted factor or set in the combination; `sign` is its direction on search."""

    factor_id: str
    sign: int
    values: NDArray[np.float32]


def combine_ranks(parts: Sequence[CombinationPart]) -> NDArray[np.float32]:
    """Return the mean of the parts' ranks, each centred at 0 and multiplied by its sign.

    Parameters
    ----------
    parts
        At least one part; values `[T, N]`, NaN missing.

    Returns
    -------
    NDArray[np.float32]
        `[T, N]` in [-0.5, 0.5]; NaN where no part has a value. A part without a value there is left out of the mean.
    """
    total = np.zeros(parts[0].values.shape)
    count = np.zeros(parts[0].values.shape)
    for part in parts:
        ranks = part.sign * (rank_rows(part.values) - 0.5)
        is_present = ~np.isnan(ranks)
        total += np.where(is_present, ranks, 0.0)
        count += is_present
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def hold_fixed(parts: Sequence[CombinationPart], weights: Sequence[float], rate: float) -> Frame:
    """Return the combination of parts with the same weights on all days, slowed to a trading rate.

    Parameters
    ----------
    parts
        At least one part; values `[T, N]`, NaN missing.
    weights
        Weight of each part, above 0.
    rate
        Share of the way to the weighted ranks that is traded each day, in (0, 1].

    Returns
    -------
    NDArray[np.float32]
        `[T, N]` in [-0.5, 0.5]; NaN where no part has a value. A part without a value there is left out of the mean.
    """
    total, share = (np.zeros(parts[0].values.shape) for _ in range(2))
    for part, weight in zip(parts, weights, strict=True):
        ranks = part.sign * (rank_rows(part.values) - 0.5)
        is_present = ~np.isnan(ranks)
        total += np.where(is_present, weight * ranks, 0.0)
        share += weight * is_present
    mean = np.where(share > 0, total / np.where(share > 0, share, 1.0), np.nan)
    return slow_score(mean.astype(np.float32), rate)


def weigh_fixed(parts: Sequence[CombinationPart], weights: Sequence[float], rate: float) -> Frame:
    """Return what `hold_fixed` does, with a missing value counted as the middle rank: so learnt weights were learnt.

    Parameters and shape are those of `hold_fixed`; the score is in [-0.5, 0.5].
    """
    share = sum(weights)
    row = np.array([weight / share * part.sign for part, weight in zip(parts, weights, strict=True)])
    ranks = [standard_ranks(part.values) for part in parts]
    return slow_score(weigh_ranks(ranks, np.tile(row, (len(ranks[0]), 1))), rate)


def write_combination(score: NDArray[np.float32], panel: Panel, path: Path) -> int:
    """Write a score `[T, N]` atomically as a Parquet file (date, symbol, score), and return its rows."""
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
        unfinished.unlink(missing_ok=True)  # left by a failed write, such as on a full disk
    return len(frame)


@dataclass(frozen=True, eq=False)
class Entrant:
    """A combination before and after its trading rate; ``[T, N]`` each."""

    at_once: Frame
    traded: Frame


@dataclass(frozen=True)
class PairedDifference:
    """Mean of paired daily differences with its 95 % bootstrap interval; NaN unknown."""

    mean: float
    low: float
    high: float
    days: int

    @property
    def is_tie(self) -> bool:
        """True if the interval contains 0 or is unknown."""
        return not (self.low > 0 or self.high < 0)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        numbers = {name: round_significant(getattr(self, name)) for name in ("mean", "low", "high")}
        return {**numbers, "days": self.days, "tie": self.is_tie}


def bootstrap_difference(one: Series, other: Series, horizon: int) -> PairedDifference:
    """Compare two daily series of the same days by the circular block bootstrap.

    Parameters
    ----------
    one, other
        Daily series ``[D]``, NaN where undefined; a day counts where both are defined.
    horizon
        Days of the label; blocks are four times as long.

    Returns
    -------
    PairedDifference
        Of `one` less `other`. The interval is NaN for fewer days than two blocks.

    References
    ----------
    Politis and Romano (1992), in Exploring the Limits of Bootstrap, 263-270: blocks in a circle.
    """
    paired = one - other
    paired = paired[~np.isnan(paired)]
    days, block = len(paired), BOOTSTRAP_BLOCK_HORIZONS * horizon
    if days < 2 * block:
        return PairedDifference(float(paired.mean()) if days else float("nan"), float("nan"), float("nan"), days)
    wrapped = np.concatenate([paired, paired[: block - 1]])
    sums = np.convolve(wrapped, np.ones(block), mode="valid")
    starts = np.random.default_rng(BOOTSTRAP_SEED).integers(0, days, (BOOTSTRAP_DRAWS, -(-days // block)))
    means = sums[starts].mean(axis=1) / block
    low, high = np.quantile(means, [(1 - INTERVAL_SHARE) / 2, (1 + INTERVAL_SHARE) / 2])
    return PairedDifference(float(paired.mean()), float(low), float(high), days)


def combination_figures(score: Frame, profiler: Profiler) -> dict[str, Any]:
    """Return the metrics of a combination on a window: RankIC, t, turnover, Sharpe, half-life, capacity."""
    window = profiler.window
    sheet = profiler.scorer.score(score, window, 1)
    names = ("rank_ic", "t", "turnover", "gross_sharpe", "net_sharpe")
    return {
        **{name: round_significant(getattr(sheet, name)) for name in names},
        "half_life_days": round_significant(measure_half_life(score, window)),
        "capacity": profiler.capacity(score),
    }


def compare_pairs(entrants: Mapping[str, Entrant], profiler: Profiler) -> list[dict[str, Any]]:
    """Return the differences of each pair: daily RankIC before the trading rate, and daily return after costs with it.

    The first compares the combiners whatever their rates; the second is the quantity for which rates are chosen.
    """
    scorer, window = profiler.scorer, profiler.window
    rank_ics = {name: scorer.daily_rank_ic(entrant.at_once, window) for name, entrant in entrants.items()}
    returns = {name: scorer.score(entrant.traded, window, 1).net_daily for name, entrant in entrants.items()}
    names, horizon = list(entrants), scorer.settings.horizon_days
    return [
        {
            "of": name,
            "less": other,
            "rank_ic": bootstrap_difference(rank_ics[name], rank_ics[other], horizon).record(),
            "net_return": bootstrap_difference(returns[name], returns[other], horizon).record(),
        }
        for place, name in enumerate(names)
        for other in names[:place]
    ]


def compare_combiners(entrants: Mapping[str, Entrant], profilers: Mapping[str, Profiler]) -> dict[str, Any]:
    """Return figures and paired differences of several combinations on each window, by the window's name."""
    return {
        name: {
            "combiners": {kind: combination_figures(entrant.traded, profiler) for kind, entrant in entrants.items()},
            "differences": compare_pairs(entrants, profiler),
        }
        for name, profiler in profilers.items()
    }


def market_states(panel: Panel) -> Series:
    """Return the market's states on each day, ``[3, T]`` in [0, 1]; 0.5 with too few known days.

    Notes ----- `volatility`: standard deviation of the market's last 20 daily returns. `dispersion`: mean over 20 days
    of the standard deviation of names' returns within a day. `trend`: the market's log return over 60 days. Each is
    given as the share of the last 756 days, that day included, on which it was lower. Unlike the terciles of
    `evidence/scoring/profile.py` it reads no later day.
    """
    market = market_return(panel)
    dispersion = _measure_dispersion(np.where(panel.universe, panel.fields["returns"], np.nan))
    volatility = _compute_trailing(market, SHORT_DAYS, np.std)
    trend = _compute_trailing(np.log1p(market), LONG_DAYS, np.sum)
    return np.stack(
        [_rank_trailing(series) for series in (volatility, _compute_trailing(dispersion, SHORT_DAYS, np.mean), trend)]
    )


def _measure_dispersion(returns: Series) -> Series:
    """Return the standard deviation of each day's returns; 0 on a day with fewer than two."""
    is_present = ~np.isnan(returns)
    count = np.maximum(is_present.sum(axis=1), 1)
    mean = np.where(is_present, returns, 0.0).sum(axis=1) / count
    deviation = np.where(is_present, returns - mean[:, None], 0.0)
    spread: Series = np.sqrt((deviation**2).sum(axis=1) / count)
    return spread


def _compute_trailing(series: Series, days: int, statistic: object) -> Series:
    """Return a statistic of the last `days` values, NaN before there are so many."""
    out = np.full(len(series), np.nan)
    if len(series) >= days:
        windows = np.lib.stride_tricks.sliding_window_view(series, days)
        out[days - 1 :] = statistic(windows, axis=1)  # type: ignore[operator]
    return out


def _rank_trailing(series: Series) -> Series:
    """Return the share of the last `LOOK_BACK_DAYS` days' known values that are below each."""
    out = np.full(len(series), UNKNOWN_STATE)
    for day in np.flatnonzero(~np.isnan(series)):
        before = series[max(day - LOOK_BACK_DAYS + 1, 0) : day + 1]
        before = before[~np.isnan(before)]
        if len(before) >= LONG_DAYS:
            out[day] = np.mean(before < series[day])
    return out
