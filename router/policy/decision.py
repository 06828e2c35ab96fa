"""What the router decided on one prompt, and why: the record that every call keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..config import Tier

Difficulty = Literal["low", "high"]


@dataclass(frozen=True)
class Alternative:
    """A model that was not chosen: what it would have cost in US dollars, and why it was not."""

    model: str
    tier: Tier
    cost_usd: float | None
    reason: str


@dataclass(frozen=True)
class RoutingDecision:
    """Which model answers a prompt.

    Attributes
    ----------
    intent : str
        What is wanted.
    difficulty : "low" or "high"
        Whether a small model would more likely do it right than wrong.
    tier : "local" or "frontier"
        The one that is asked first: cautious, so that a prompt that may be hard goes up.
    model : str or None
        The configured name that is asked first; None where no model is set up.
    signals : mapping
        All that the decision rests on; the same signals give the same decision.
    cost_usd : float or None
        Of the call as it is expected, US dollars; None where the price is not known.
    alternatives : tuple of Alternative
        Every other model, in the order in which they would be asked; those that may not be asked come last.
    reason : str
        The rule that decided, in a sentence.
    """

    intent: str
    difficulty: Difficulty
    tier: Tier
    model: str | None
    signals: Mapping[str, Any]
    cost_usd: float | None
    alternatives: tuple[Alternative, ...]
    reason: str

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)
