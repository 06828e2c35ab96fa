"""What a caller's role says of what it wants, and what the text may say against it."""

from __future__ import annotations

from collections.abc import Mapping

from ..classifier import INTENTS, PromptReading

ROLE_INTENTS: Mapping[str, Mapping[str, float]] = {
    "idea": {"factor_idea": 1.0},
    "factor": {"code": 0.95, "debug": 0.05},
    "repair": {"debug": 1.0},
    "eval": {"backtest_read": 0.95, "critique": 0.05},
    "critic": {"critique": 1.0},
    "data": {"data_lookup": 1.0},
    "news": {"sentiment": 1.0},
    "report": {"summary": 1.0},
    "risk": {"portfolio_risk": 1.0},
    "macro": {"macro_regime": 1.0},
}
"""How likely each intent is before a word was read, by role; what a role never sends is not listed."""
CALL_INTENTS: Mapping[str, str] = {
    "hypotheses": "factor_idea",
    "formulas": "code",
    "repair": "debug",
    "critique": "critique",
}
"""What our own agents call what they ask."""


def intent_of(
    role: str | None, declared: str | None, text: PromptReading, own: Mapping[str, Mapping[str, float]] | None = None
) -> tuple[str, dict[str, float]]:
    """Return what is wanted, and how likely each intent is by role and text together.

    A declared intent is taken at its word; only what our agents call theirs is weighed by the text where the user says that
    their role also sends an intent of the user's own that texts can tell. A role weighs the text's probabilities (Bayes' rule); a role that nobody has heard
    of says nothing, and one that is the name of an intent says that.

    Parameters
    ----------
    role, declared : str or None
        What the caller says of itself and of what it asks.
    text : Reading
        What the text says.
    own : mapping, optional
        Roles of the user's, before those of ours.
    """
    known = declared if declared in INTENTS else CALL_INTENTS.get(declared or "", declared)
    said = (own or {}).get(role or "")
    told_by_text = declared in CALL_INTENTS and any(name in text.intents and name not in INTENTS for name in said or ())
    if known and not told_by_text:
        return known, {known: 1.0}
    prior = said or ROLE_INTENTS.get(role or "") or ({role: 1.0} if role in text.intents else None)
    if prior is None:
        return text.intent, text.intents
    weighed = {name: share * text.intents.get(name, 1.0) for name, share in prior.items()}
    total = sum(weighed.values()) or 1.0
    shares = {name: value / total for name, value in weighed.items()}
    return min(shares, key=lambda name: (-shares[name], name)), shares
