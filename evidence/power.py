"""What the next trial on the selection window could prove."""

from __future__ import annotations

from typing import Any, Final

from .evaluator import Evaluator
from .proof import null_of
from .prospect import Scatter, prospect

MOST_ASKED: Final = 12
"""Scored factors whose error is measured, in the order of their ids, which are hashes and so a fair sample."""


def next_power(evaluator: Evaluator, trials: int, found: int) -> dict[str, Any]:
    """Return the smallest RankIC that the next trial on this selection window could prove, with a sentence that says it.

    Parameters
    ----------
    evaluator
        Of the run.
    trials, found
        Looks that were taken at the window's days, and discoveries among them.

    Notes
    -----
    The scatter of a candidate's daily RankIC is the median over scored factors, measured on the search window.
    """
    settings = evaluator.settings
    null = null_of(settings.test, settings.horizon_days, evaluator.windows.selection.days)
    return prospect(null, trials, found, settings.level, _scatter(evaluator).typical).record() | {"test": settings.test}


def _scatter(evaluator: Evaluator) -> Scatter:
    """Return the scatter of scored factors: of all from their sheets where labels are tested, else measured on some."""
    names, rows = sorted(evaluator.rows), evaluator.rows
    if evaluator.settings.test == "labels":
        known = [sheet for sheet in (rows[name].sheet for name in names) if sheet["t"] and sheet["rank_ic"]]
        return Scatter([abs(sheet["rank_ic"] / sheet["t"]) * float(sheet["days"]) ** 0.5 for sheet in known])
    chosen = [evaluator.values(evaluator.read(rows[name].text)) for name in names[:MOST_ASKED]]
    tests = [evaluator.scorer.proof(values, evaluator.windows.search) for values in chosen]
    return Scatter([each.deviation for each in tests if each.deviation > 0])
