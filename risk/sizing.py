"""From the weights of a book to signals that its policy admits; floats end here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from .policy import Policy
from .signal import UNITS_PER_BP, UNITS_PER_EQUITY, RiskError, Signal

ROOM: Final = Fraction(49, 50)
"""Share of the limits on gross and net that a book asks for: prices move before it is filled and after."""


@dataclass(frozen=True)
class Sizing:
    """What is known of a forecast when its book is sized.

    Attributes
    ----------
    horizon_days
        Horizon of the scores, in days.
    doubt_e8
        Relative standard error of the forecast in 1e-8, from 0 to 1e8 (`measure_doubt`): it sets the bounds.
    reason, evidence
        Copied to every signal.
    """

    horizon_days: int
    doubt_e8: int
    reason: str
    evidence: str


def measure_doubt(rank_ic: float, error: float) -> int:
    """Return the relative standard error of a mean RankIC in 1e-8, rounded up, at most 1e8; 1e8 where it is unknown."""
    if not (math.isfinite(rank_ic) and math.isfinite(error)) or rank_ic == 0:
        return UNITS_PER_EQUITY
    return math.ceil(min(abs(error / rank_ic), 1.0) * UNITS_PER_EQUITY)


@dataclass(frozen=True)
class SizedBook:
    """The signals of a book; `scale` is the share of the asked weights that the policy has room for, at most 1."""

    signals: tuple[Signal, ...]
    scale: Fraction

    def rounding_e8(self, weights: Mapping[str, float]) -> float:
        """Return the largest distance of a target from its scaled weight, in 1e-8 of equity."""
        held = {signal.asset: signal.target_e8 for signal in self.signals}
        asked = {name: weight * float(self.scale) * UNITS_PER_EQUITY for name, weight in weights.items()}
        return max((abs(value - held.get(name, 0)) for name, value in asked.items()), default=0.0)


def size_book(
    weights: Mapping[str, float],
    sizing: Sizing,
    policy: Policy,
    until: date,
    positions: Mapping[str, int] = MappingProxyType({}),
) -> SizedBook:
    """Turn the weights of a book into signals.

    Parameters
    ----------
    weights
        Target weight of each symbol as a share of equity, negative for short, as the backtest holds them.
    sizing
        Horizon, error of the forecast, and what every signal says.
    policy
        Its limits on a name, on the distance of bounds, on gross and on net decide how large the book is: all weights
        are multiplied by the largest share up to 1 that fits, with some room on gross and net (`ROOM`). Turnover is
        left to the gate, so a book is built over days.
    until
        The last day on which the signals may be acted on.
    positions
        Exposures held, in 1e-8 of equity; what the weights do not hold gets a target of 0.

    Returns
    -------
    SizedBook
        Signals by asset, without those of 0 that nobody holds. A target is rounded towards 0. A target that is
        proportional to the edge is as uncertain as the edge, so bounds are one standard error of the search RankIC
        away, ``target * (1 -+ doubt)``, rounded outwards and never across 0.

    Raises
    ------
    RiskError
        A weight is NaN or infinite.
    """
    broken = [name for name, weight in weights.items() if not math.isfinite(weight)]
    if broken:
        raise RiskError(
            "a weight is no finite number", field="weights", got=broken[:5], allowed="finite numbers", code="signal"
        )
    asked = {name: math.trunc(weight * UNITS_PER_EQUITY) for name, weight in weights.items()}
    scale = _find_scale(list(asked.values()), sizing.doubt_e8, policy)
    targets = {name: 0 for name, held in positions.items() if held}
    targets |= {name: scaled for name, units in asked.items() if (scaled := _scale(units, scale)) or name in targets}
    return SizedBook(tuple(_make_signal(name, targets[name], sizing, until) for name in sorted(targets)), scale)


def _find_scale(units: Sequence[int], doubt_e8: int, policy: Policy) -> Fraction:
    """Return the largest share of the weights that no limit on exposure refuses, at most 1."""
    largest = max((abs(value) for value in units), default=0)
    worst = Fraction(largest * (UNITS_PER_EQUITY + doubt_e8), UNITS_PER_EQUITY)
    width = Fraction(2 * largest * doubt_e8, UNITS_PER_EQUITY)
    count = len(units)  # each target is rounded by less than a unit, so the net of all by less than their number
    pairs = (
        (worst, Fraction(policy.single_name_cap_bp), 1),
        (width, Fraction(policy.interval_width_cap_bp), 2),
        (Fraction(sum(abs(value) for value in units)), policy.gross_cap_bp * ROOM, 0),
        (Fraction(abs(sum(units))), policy.net_cap_bp * ROOM, count),
    )
    limits = [(value, max(cap * UNITS_PER_BP - spare, Fraction(0))) for value, cap, spare in pairs]
    return min((Fraction(limit) / value for value, limit in limits if value > limit), default=Fraction(1))


def _scale(units: int, scale: Fraction) -> int:
    """Return whole units times a share, rounded towards 0."""
    size = abs(units) * scale.numerator // scale.denominator
    return size if units > 0 else -size


def _make_signal(asset: str, target: int, sizing: Sizing, until: date) -> Signal:
    size, doubt = abs(target), sizing.doubt_e8
    near = size * (UNITS_PER_EQUITY - doubt) // UNITS_PER_EQUITY
    far = -(-size * (UNITS_PER_EQUITY + doubt) // UNITS_PER_EQUITY)
    low, high = (near, far) if target >= 0 else (-far, -near)
    reason = sizing.reason if target else f"{sizing.reason}: no longer wanted"
    return Signal(asset, target, low, high, sizing.horizon_days, reason, sizing.evidence, until)
