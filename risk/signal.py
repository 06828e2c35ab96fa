"""What is asked of the gate: an exposure in one asset, in basis points of the book's equity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from ..ledger import JSON
from .errors import SignalError

MAX_EXPOSURE_BP: Final = 1_000_000
"""No exposure beyond 100 times equity is a number anyone meant."""

_NUMBER_FIELDS: Final = ("target_bp", "lo_bp", "hi_bp", "horizon_days")
_TEXT_FIELDS: Final = ("asset", "reason", "evidence")


@dataclass(frozen=True, slots=True)
class Signal:
    """A wished exposure, with bounds.

    Attributes
    ----------
    asset
        Symbol.
    target_bp, lo_bp, hi_bp
        Exposure in basis points of equity, negative for short, ``lo_bp <= target_bp <= hi_bp``. Whole numbers.
    horizon_days
        Trading days that it is meant to be held, at least 1.
    reason
        Why, for a person.
    evidence
        Id of the factor, set or combination behind it.

    Raises
    ------
    SignalError
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
            raise SignalError(mistake[1], field=mistake[0], got=getattr(self, mistake[0]))

    def record(self) -> dict[str, JSON]:
        """Return the signal as a JSON-able object."""
        return asdict(self)


def find_mistake(signal: Signal) -> tuple[str, str] | None:
    """Return field and reason of the first thing wrong; types come before any comparison, which NaN would pass."""
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
