"""The sealed exam: written into the ledger before the look, taken once for a run, numbered over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..evidence.gate import confirm_p_value, run_mean_test
from ..evidence.scoring import FactorMetrics, round_significant
from ..ledger import Ledger, Opening, WindowKey
from .combination import CombinationPart, JudgedRun


class RecordedRun(JudgedRun, Protocol):
    """A run that is on record."""

    @property
    def run(self) -> str:
        """Return the run's id."""

    @property
    def ledger(self) -> Ledger:
        """Return the record."""


def run_sealed_exam(
    judged: RecordedRun, parts: Sequence[CombinationPart], score: NDArray[np.float32], reason: str
) -> dict[str, Any]:
    """Open the sealed window and return what it says of the combination `[T, N]` and of each part.

    The opening is in the ledger before the look. A run that opened it already, and was cut short, goes on under the same
    number and the reason that was written then.
    """
    window, ledger = judged.windows.sealed, judged.ledger
    key = judged.windows.key(window)
    number = ledger.record_opening(Opening(judged.run, key, reason))
    kept = find_own_opening(judged)
    sheet = judged.scorer.score(score, window, 1)
    singles = {each.factor_id: judged.scorer.score(each.values, window, each.sign) for each in parts}
    return {
        "opened": True,
        "number": number,
        "reason": kept.reason if kept else reason,
        **sheet.record(),
        **_significance(judged, score, 1),
        "factors": {each.factor_id: _line(judged, each, singles[each.factor_id]) for each in parts},
        "earlier": list_earlier_openings(ledger, key, judged.run),
    }


def find_own_opening(judged: RecordedRun) -> Opening | None:
    """Return the opening that this run has written, if it has."""
    key = judged.windows.key(judged.windows.sealed)
    own = [each for each in judged.ledger.openings(key) if each.run == judged.run and each.window == key]
    return own[0] if own else None


def list_earlier_openings(ledger: Ledger, key: WindowKey, run: str) -> list[dict[str, Any]]:
    """Return the openings of days and names shared with a window, those that other runs wrote before this one's own."""
    found = ledger.openings(key)
    own = next((each.number for each in found if each.run == run and each.window == key), None)
    others = [each for each in found if each.run != run and (own is None or each.number < own)]
    return [
        {"number": each.number, "reason": each.reason, "first": each.window.first_day, "last": each.window.last_day}
        for each in sorted(others, key=lambda each: (each.number, each.window.first_day, each.reason))
    ]


def _line(judged: RecordedRun, one: CombinationPart, sheet: FactorMetrics) -> dict[str, Any]:
    """Return what the sealed days say of one factor, in the direction in which it is held."""
    named = {"rank_ic": sheet.rank_ic, "t": sheet.t, "net_sharpe": sheet.net_sharpe}
    figures = {name: round_significant(value) for name, value in named.items()}
    return {"sign": one.sign, "days": sheet.days, **figures, **_significance(judged, one.values, one.sign)}


def _significance(judged: RecordedRun, values: NDArray[np.float32], sign: int) -> dict[str, Any]:
    """Return the one-sided p-value of one exam on its own, by the test that the settings name; None after too few days.

    Where what is held is tested, the labels must bear it out as they must at the gate, and their p-value is told too.
    """
    scorer, settings, window = judged.scorer, judged.settings, judged.windows.sealed
    daily, held = scorer.daily_rank_ic(values, window), scorer.held(values, window)
    labels = run_mean_test(daily, None, settings.horizon_days, scorer.lag)
    if labels.null is None:
        return {"p_value": None}
    agreed = labels.p_value(sign)
    if held is None:
        return {"p_value": round_significant(agreed)}
    tested = run_mean_test(daily, held, settings.horizon_days, scorer.lag).p_value(sign)
    return {
        "p_value": round_significant(confirm_p_value(tested, agreed, settings.watch_p)),
        "test": "held",
        "p_labels": round_significant(agreed),
    }
