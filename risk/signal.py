"""`Signal`: an exposure in one asset; the gate counts in whole units of 1e-8 of equity, 1e-4 basis points (`_e8`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from ..ledger import JSON, AlphaloomError

UNITS_PER_BP: Final = 10_000
UNITS_PER_EQUITY: Final = 100_000_000
MAX_EXPOSURE_E8: Final = 100 * UNITS_PER_EQUITY
"""Largest exposure, 100 times equity; a larger one is a mistake."""

_NUMBER_FIELDS: Final = ("target_e8", "lo_e8", "hi_e8", "horizon_days")
_TEXT_FIELDS: Final = ("asset", "reason", "evidence")
SIGNAL_FIELDS: Final = ("asset", "target_e8", "lo_e8", "hi_e8", "horizon_days", "reason", "evidence", "until")


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
    target_e8, lo_e8, hi_e8
        Exposure in 1e-8 of equity, negative for short, ``lo_e8 <= target_e8 <= hi_e8``. Whole numbers.
    horizon_days
        Intended holding period in trading days, at least 1.
    reason
        The reason, for a person.
    evidence
        Ids of the factors and combinations behind it, joined by ", ".
    until
        The last day on which it may be acted on.

    Raises
    ------
    RiskError
        A field has another type (NaN, infinity, bool and text are no whole numbers) or the bounds are out of order.
    """

    asset: str
    target_e8: int
    lo_e8: int
    hi_e8: int
    horizon_days: int
    reason: str
    evidence: str
    until: date

    def __post_init__(self) -> None:
        """Refuse a malformed signal."""
        mistake = find_mistake(self)
        if mistake:
            raise RiskError(mistake[1], field=mistake[0], got=getattr(self, mistake[0]), code="signal")

    @classmethod
    def restore(cls, record: Mapping[str, Any]) -> Signal:
        """Return a signal from its record."""
        return cls(**{**record, "until": date.fromisoformat(record["until"])})

    def record(self) -> dict[str, JSON]:
        """Return the signal as a JSON-able object."""
        return {**{name: getattr(self, name) for name in SIGNAL_FIELDS}, "until": self.until.isoformat()}


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
        if abs(value) > MAX_EXPOSURE_E8:
            return name, f"must be between -{MAX_EXPOSURE_E8} and {MAX_EXPOSURE_E8}"
    if type(getattr(signal, "until", None)) is not date:
        return "until", "must be a date"
    if signal.horizon_days < 1:
        return "horizon_days", "must be at least 1"
    if not signal.lo_e8 <= signal.target_e8 <= signal.hi_e8:
        return "target_e8", f"must lie between lo_e8 {signal.lo_e8} and hi_e8 {signal.hi_e8}"
    return None
