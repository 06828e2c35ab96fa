"""The returns of a paper book by its closes, without the money that people paid in or took out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..evidence.scoring import annual_sharpe


@dataclass(frozen=True)
class TrackRecord:
    """What a book earned; None where that is undefined.

    Attributes
    ----------
    total_return
        Time-weighted return since the first close, decimal.
    drawdown
        Largest fall of that return's curve from its highest value, negative.
    sharpe
        Sharpe ratio of the daily returns, annualised by the root of 252.
    """

    total_return: float | None
    drawdown: float | None
    sharpe: float | None


def chain_returns(equity: Sequence[float], flows: Sequence[float]) -> NDArray[np.float64]:
    """Return the daily returns of a book, ``[D - 1]``, decimal.

    Parameters
    ----------
    equity
        Equity at each close, ``[D]``.
    flows
        Money paid in before each day's open, negative where it was taken out, ``[D]``: a day's return is on the equity
        of the close before with that money, so money is never a gain.
    """
    worth, paid = np.asarray(equity, dtype=np.float64), np.asarray(flows, dtype=np.float64)
    returns: NDArray[np.float64] = worth[1:] / (worth[:-1] + paid[1:]) - 1.0
    return returns


def measure_book(equity: Sequence[float], flows: Sequence[float]) -> TrackRecord:
    """Return what a book earned; the parameters are those of `chain_returns`. A book that was ruined has no figures."""
    if len(equity) < 2 or min(equity) <= 0 or min(np.add(equity[:-1], flows[1:])) <= 0:
        return TrackRecord(None, None, None)
    returns = chain_returns(equity, flows)
    curve = np.cumprod(np.concatenate([[1.0], 1.0 + returns]))
    sharpe = annual_sharpe(returns)
    fall = curve / np.maximum.accumulate(curve) - 1.0
    return TrackRecord(float(curve[-1] - 1.0), float(fall.min()), None if np.isnan(sharpe) else float(sharpe))
