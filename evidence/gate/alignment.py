"""Does the formula say what the hypothesis says? Direction, horizon and fields, by rule; no model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...factors import Expression
from ..settings import EvidenceSettings

HORIZON_SPAN = 5
DERIVED_FROM = {
    "returns": {"close"},
    "vwap": {"close", "high", "low", "amount"},
    "amount": {"volume", "close"},
    "cap": {"close"},
    "close_raw": {"close"},
    "open": {"close"},
    "high": {"close"},
    "low": {"close"},
}


@dataclass(frozen=True)
class Claim:
    """What a hypothesis promises, in the parts that a rule can check.

    Attributes
    ----------
    direction
        1: a higher factor means a higher return; -1: a lower one.
    horizon_days
        Days over which the mechanism is said to work.
    fields
        Columns that the mechanism is about.
    """

    id: str
    mechanism: str
    statement: str
    direction: int
    horizon_days: int
    fields: tuple[str, ...]
    detail: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Claim:
        """Read a claim from what an agent sent; the caller has validated it."""
        plain = {"id", "mechanism", "statement", "direction", "horizon_days", "fields"}
        detail = {key: value for key, value in sorted(record.items()) if key not in plain}
        return cls(
            id=str(record["id"]),
            mechanism=str(record["mechanism"]),
            statement=str(record["statement"]),
            direction=int(record["direction"]),
            horizon_days=int(record["horizon_days"]),
            fields=tuple(sorted({str(name) for name in record["fields"]})),
            detail=detail,
        )

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **self.detail,
            "id": self.id,
            "mechanism": self.mechanism,
            "statement": self.statement,
            "direction": self.direction,
            "horizon_days": self.horizon_days,
            "fields": list(self.fields),
        }


def find_word_mismatches(expression: Expression, claim: Claim, settings: EvidenceSettings) -> list[str]:
    """Return what a formula and its hypothesis disagree about before anything is computed.

    At least half of the formula's raw fields must be named by the hypothesis, or be made of one that is; and the
    hypothesis' horizon must lie within a factor of five of the horizon that is scored.
    """
    found = []
    named = set(claim.fields)
    strange = sorted(
        name for name in expression.fields if name not in named and not DERIVED_FROM.get(name, set()) & named
    )
    if 2 * len(strange) > len(expression.fields):
        found.append(
            f"the formula reads {', '.join(sorted(expression.fields))}, but the hypothesis is about "
            f"{', '.join(claim.fields) or 'no field'}: name the fields in it, or write a formula of them"
        )
    if not settings.horizon_days / HORIZON_SPAN <= claim.horizon_days <= settings.horizon_days * HORIZON_SPAN:
        found.append(
            f"the hypothesis works over {claim.horizon_days} days, factors are scored over {settings.horizon_days}: "
            f"allowed are {max(1, -(-settings.horizon_days // HORIZON_SPAN))} to {settings.horizon_days * HORIZON_SPAN}"
        )
    return found


def find_direction_mismatch(rank_ic: float | None, claim: Claim) -> list[str]:
    """Return a sentence if the search window shows the opposite of what the hypothesis claims, or nothing."""
    if rank_ic is None:
        return ["the factor has no RankIC on the search window, so that no direction can be read from it"]
    if rank_ic * claim.direction > 0:
        return []
    said = "higher" if claim.direction > 0 else "lower"
    return [f"the hypothesis says that a {said} factor means a higher return; the search window shows the opposite"]
