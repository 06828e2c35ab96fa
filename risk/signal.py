"""`Signal`: an exposure in one asset, in basis points of the book's equity; and the conversion of scores into signals.

`signals_from_scores` converts floats: from there on all exposures are integer basis points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Final

from ..ledger import JSON, AlphaloomError

MAX_EXPOSURE_BP: Final = 1_000_000
"""Largest exposure, 100 times equity; a larger one is a mistake."""

_NUMBER_FIELDS: Final = ("target_bp", "lo_bp", "hi_bp", "horizon_days")
_TEXT_FIELDS: Final = ("asset", "reason", "evidence")

MIN_SCORED_NAMES = 10


class RiskError(AlphaloomError):
    """A malformed signal or book state, or an `Approved` that the gate did not make; `code` says which.

    A refusal is a `Decision`, never an error.
    """

    code: str = "risk"


@dataclass(frozen=True, slots=True)
class Signal:
    """A target exposure with bounds.

    Attributes
    ----------
    asset
        Symbol.
    target_bp, lo_bp, hi_bp
        Exposure in basis points of equity, negative for short, ``lo_bp <= target_bp <= hi_bp``. Whole numbers.
    horizon_days
        Intended holding period in trading days, at least 1.
    reason
        The reason, for a person.
    evidence
        Id of the factor, set or combination behind it.

    Raises
    ------
    RiskError
        A field has another type (NaN, infinity, bool and text are no whole numbers) or the bounds are out of order.
    """

    asset: str
    target_bp: int
    lo_bp: int
    hi_bp: int
    horizon_days: int
    reason: str
    evidence: str

    def __post_init__(self) -> None:
        """Refuse a malformed signal."""
        mistake = find_mistake(self)
        if mistake:
            raise RiskError(mistake[1], field=mistake[0], got=getattr(self, mistake[0]), code="signal")

    def record(self) -> dict[str, JSON]:
        """Return the signal as a JSON-able object."""
        return asdict(self)


def find_mistake(signal: Signal) -> tuple[str, str] | None:
    """Return field and reason of the first mistake; types are checked first, since NaN would pass a comparison."""
    for name in _TEXT_FIELDS:
        value = getattr(signal, name, None)
        if type(value) is not str or not value:
            return name, "must be a text that is not empty"
    for name in _NUMBER_FIELDS:
        value = getattr(signal, name, None)
        if type(value) is not int:
            return name, "must be a whole number"
        if abs(value) > MAX_EXPOSURE_BP:
            return name, f"must be between -{MAX_EXPOSURE_BP} and {MAX_EXPOSURE_BP}"
    if signal.horizon_days < 1:
        return "horizon_days", "must be at least 1"
    if not signal.lo_bp <= signal.target_bp <= signal.hi_bp:
        return "target_bp", f"must lie between lo_bp {signal.lo_bp} and hi_bp {signal.hi_bp}"
    return None


@dataclass(frozen=True)
class Sizing:
    """The conversion of scores into exposures.

    Attributes
    ----------
    side_bp
        Exposure of each side, in basis points of equity.
    horizon_days
        Horizon of the scores, in days.
    rank_ic, rank_ic_error
        Mean daily RankIC on the search window and its Newey-West standard error: their ratio sets the bounds.
    reason, evidence
        Copied to every signal.
    """

    side_bp: int
    horizon_days: int
    rank_ic: float
    rank_ic_error: float
    reason: str
    evidence: str

    @property
    def doubt(self) -> float:
        """Return the relative standard error of the RankIC, from 0 to 1; 1 where it is unknown."""
        if not (math.isfinite(self.rank_ic) and math.isfinite(self.rank_ic_error)) or self.rank_ic == 0:
            return 1.0
        return min(abs(self.rank_ic_error / self.rank_ic), 1.0)


def signals_from_scores(
    symbols: Sequence[str],
    scores: Sequence[float],
    sizing: Sizing,
    positions: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Signal, ...]:
    """Convert scores into integer signals: top quintile long, bottom quintile short, equal weights.

    Parameters
    ----------
    symbols, scores
        One score per symbol, known now; higher is better. NaN takes no position. Ties are broken by symbol.
    sizing
        Exposure of a side, and the standard error of the evidence.
    positions
        Positions in basis points; positions outside both quintiles get a target of 0.

    Returns
    -------
    tuple of Signal
        By asset. Each side sums to `side_bp` exactly; odd basis points go to the strongest scores. A target that is
        proportional to the edge is as uncertain as the edge, so the bounds are one standard error of the search RankIC
        away, ``target * (1 -+ error / rank_ic)``, rounded outwards and never across 0. With fewer than ten scores all
        targets are 0.

    Raises
    ------
    RiskError
        A score is infinite, or symbols and scores do not match.
    """
    if len(symbols) != len(scores) or len(set(symbols)) != len(symbols):
        raise RiskError(
            "needs one score for each symbol, each symbol once", field="scores", got=len(scores), code="signal"
        )
    infinite = [symbol for symbol, score in zip(symbols, scores, strict=True) if math.isinf(score)]
    if infinite:
        raise RiskError(
            "a score is infinite", field="scores", got=infinite[:5], allowed="finite numbers or NaN", code="signal"
        )
    pairs = ((float(score), symbol) for symbol, score in zip(symbols, scores, strict=True))
    ranked = sorted((score, symbol) for score, symbol in pairs if not math.isnan(score))
    count = len(ranked) // 5 if len(ranked) >= MIN_SCORED_NAMES else 0
    long = _divide([symbol for _, symbol in reversed(ranked)][:count], sizing.side_bp)
    short = _divide([symbol for _, symbol in ranked][:count], sizing.side_bp)
    targets = {symbol: 0 for symbol, position in positions.items() if position}
    targets |= long | {symbol: -size for symbol, size in short.items()}
    return tuple(_make_signal(asset, targets[asset], sizing) for asset in sorted(targets))


def _divide(names: Sequence[str], total: int) -> dict[str, int]:
    """Divide integer basis points; the first names get the odd ones."""
    if not names:
        return {}
    share, remainder = divmod(total, len(names))
    return {name: share + (place < remainder) for place, name in enumerate(names)}


def _make_signal(asset: str, target: int, sizing: Sizing) -> Signal:
    near = math.floor(abs(target) * (1.0 - sizing.doubt))
    far = math.ceil(abs(target) * (1.0 + sizing.doubt))
    low, high = (near, far) if target >= 0 else (-far, -near)
    reason = sizing.reason if target else f"{sizing.reason}: no longer wanted"
    return Signal(asset, target, low, high, sizing.horizon_days, reason, sizing.evidence)
