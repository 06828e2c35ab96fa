"""From a combination's last day to a decision: what a campaign would ask the gate to let it trade."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from .decision import Decision
from .gate import decide
from .policy import Policy
from .sizing import Sizing, signals_from_scores
from .state import BookState

START_CENTS = 100_000_000_00
"""Equity of the paper book that a campaign opens with, in cents; exposures are shares of it."""


def trade(scores: dict[str, float], priced: dict[str, date], sizing: Sizing, policy: Policy) -> Decision:
    """Decide on an empty book what the scores of the last day ask for.

    Parameters
    ----------
    scores
        One by symbol; NaN takes no position.
    priced
        Day of each symbol's last price; the decision is taken the day after the latest.
    sizing
        Exposure of a side, and how sure the evidence is.
    policy
        The limits.
    """
    symbols: Sequence[str] = sorted(scores)
    signals = signals_from_scores(symbols, [scores[symbol] for symbol in symbols], sizing)
    state = BookState(positions={}, last_price=priced, equity=START_CENTS, high_water=START_CENTS)
    return decide(signals, state, policy, max(priced.values()) + timedelta(days=1))
