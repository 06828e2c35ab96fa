"""The sealed exam: written into the ledger before the look, taken once for a run, numbered over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ledger import Ledger, Opening, WindowKey
from .combination import Part
from .combining import combined
from .evaluator import Evaluator
from .proof import borne_out, proof
from .sheet import Sheet, tidy


def part(evaluator: Evaluator, name: str) -> Part:
    """Return an accepted factor as a part of the combination, turned the way search has it."""
    row = evaluator.rows[name]
    values = evaluator.values(evaluator.read(row.text), evaluator.windows.sealed)
    return Part(name, -1 if (row.sheet["rank_ic"] or 0.0) < 0 else 1, values)


def unseal(evaluator: Evaluator, accepted: Sequence[str], reason: str) -> dict[str, Any]:
    """Combine accepted factors and examine them on the sealed days."""
    parts = [part(evaluator, name) for name in sorted(accepted)]
    return examine(evaluator, parts, combined(evaluator, parts).score, reason)


def examine(evaluator: Evaluator, parts: Sequence[Part], score: NDArray[np.float32], reason: str) -> dict[str, Any]:
    """Open the sealed window and return what it says of the combination `[T, N]` and of each part.

    The opening is in the ledger before the look. A run that opened it already, and was cut short, goes on under the same
    number and the reason that was written then.
    """
    window, ledger = evaluator.windows.sealed, evaluator.ledger
    key = evaluator.windows.key(window)
    number = ledger.record_opening(Opening(evaluator.run, key, reason))
    kept = begun(evaluator)
    sheet = evaluator.scorer.score(score, window, 1)
    singles = {each.factor_id: evaluator.scorer.score(each.values, window, each.sign) for each in parts}
    return {
        "opened": True,
        "number": number,
        "reason": kept.reason if kept else reason,
        **sheet.record(),
        **_significance(evaluator, score, 1),
        "factors": {each.factor_id: _line(evaluator, each, singles[each.factor_id]) for each in parts},
        "earlier": earlier_openings(ledger, key, evaluator.run),
    }


def begun(evaluator: Evaluator) -> Opening | None:
    """Return the opening that this run has written, if it has."""
    key = evaluator.windows.key(evaluator.windows.sealed)
    own = [each for each in evaluator.ledger.openings(key) if each.run == evaluator.run and each.window == key]
    return own[0] if own else None


def earlier_openings(ledger: Ledger, key: WindowKey, run: str) -> list[dict[str, Any]]:
    """Return the openings of days and names shared with a window, those that other runs wrote before this one's own."""
    found = ledger.openings(key)
    own = next((each.number for each in found if each.run == run and each.window == key), None)
    others = [each for each in found if each.run != run and (own is None or each.number < own)]
    return [
        {"number": each.number, "reason": each.reason, "first": each.window.first_day, "last": each.window.last_day}
        for each in sorted(others, key=lambda each: (each.number, each.window.first_day, each.reason))
    ]


def _line(evaluator: Evaluator, one: Part, sheet: Sheet) -> dict[str, Any]:
    """Return what the sealed days say of one factor, in the direction in which it is held."""
    named = {"rank_ic": sheet.rank_ic, "t": sheet.t, "net_sharpe": sheet.net_sharpe}
    figures = {name: tidy(value) for name, value in named.items()}
    return {"sign": one.sign, "days": sheet.days, **figures, **_significance(evaluator, one.values, one.sign)}


def _significance(evaluator: Evaluator, values: NDArray[np.float32], sign: int) -> dict[str, Any]:
    """Return the one-sided p-value of one exam on its own, by the test that the settings name; None after too few days.

    Where what is held is tested, the labels must bear it out as they must at the gate, and their p-value is told too.
    """
    scorer, settings, window = evaluator.scorer, evaluator.settings, evaluator.windows.sealed
    daily, held = scorer.daily_rank_ic(values, window), scorer.held(values, window)
    labels = proof(daily, None, settings.horizon_days, scorer.lag)
    if labels.null is None:
        return {"p_value": None}
    agreed = labels.p_value(sign)
    if held is None:
        return {"p_value": tidy(agreed)}
    tested = proof(daily, held, settings.horizon_days, scorer.lag).p_value(sign)
    return {"p_value": tidy(borne_out(tested, agreed, settings.watch_p)), "test": "held", "p_labels": tidy(agreed)}
