"""What the next trial on the selection window could prove."""

from __future__ import annotations

from typing import Any, Final

from ...evidence.gate import null_of
from ..service import Evaluator
from .prospect import FAIR_SAMPLE, Scatter, few_labels, prospect, published_scatter

POWER_EVENT: Final = "power"
"""Kind of the event that holds what the first trial could prove."""
MAX_FACTORS_MEASURED: Final = 12
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


def record_first_power(evaluator: Evaluator) -> list[str]:
    """Record what the first trial of a run could prove, before anything is scored, and return it in sentences.

    The scatter is that of 24 published factors on search days, since nothing of the run is scored yet.
    """
    settings, windows = evaluator.settings, evaluator.windows
    looks = evaluator.ledger.overlapping_trials(windows.key(windows.selection))
    elsewhere = max(settings.prior_trials, evaluator.ledger.prior(windows.key(windows.selection)))
    if not (noted := evaluator.ledger.events(evaluator.run, POWER_EVENT)):
        null = null_of(settings.test, settings.horizon_days, windows.selection.days)
        scatter = published_scatter(evaluator, FAIR_SAMPLE).typical
        found = prospect(null, len(looks) + elsewhere, evaluator.gate.count_discoveries(), settings.level, scatter)
        evaluator.ledger.record_event(evaluator.run, POWER_EVENT, "start", found.record())
        noted = evaluator.ledger.events(evaluator.run, POWER_EVENT)
    few = few_labels(windows.selection.days, settings.horizon_days)
    return [str(noted[0].body["sentence"]), *([few] if few else [])]


def read_first_power(evaluator: Evaluator) -> dict[str, Any] | None:
    """Return what was recorded before a run scored anything; None for a run of before it was."""
    noted = evaluator.ledger.events(evaluator.run, POWER_EVENT)
    return dict(noted[0].body) if noted else None


def _scatter(evaluator: Evaluator) -> Scatter:
    """Return the scatter of scored factors: of all from their sheets where labels are tested, else measured on some."""
    names, rows = sorted(evaluator.rows), evaluator.rows
    if evaluator.settings.test == "labels":
        known = [sheet for sheet in (rows[name].sheet for name in names) if sheet["t"] and sheet["rank_ic"]]
        return Scatter([abs(sheet["rank_ic"] / sheet["t"]) * float(sheet["days"]) ** 0.5 for sheet in known])
    chosen = [evaluator.values(evaluator.read(rows[name].text)) for name in names[:MAX_FACTORS_MEASURED]]
    tests = [evaluator.scorer.proof(values, evaluator.windows.search) for values in chosen]
    return Scatter([each.deviation for each in tests if each.deviation > 0])
