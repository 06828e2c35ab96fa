"""What the next trial on the selection window could prove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...evidence import NullDistribution
from ...evidence.gate import compute_power, find_null
from ...evidence.multiple_testing import lond_level
from ...evidence.originality import published_expressions
from ...evidence.scoring import round_significant
from ...market import format_count
from ..service import Evaluator

NORMAL_QUANTILE_80 = 0.8416
"""Standard errors above the bar at which a true RankIC is accepted four times in five."""
MIN_LABELS = 50
"""Labels that do not overlap, below which p-values rest on the far tail of a simulated normal law."""
FAIR_SAMPLE = 24


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
    null = find_null(settings.test, settings.horizon_days, evaluator.windows.selection.days)
    return prospect(null, trials, found, settings.level, _scatter(evaluator).typical).record() | {"test": settings.test}


def record_first_power(evaluator: Evaluator) -> list[str]:
    """Record what the first trial of a run could prove, before anything is scored, and return it in sentences.

    The scatter is that of 24 published factors on search days, since nothing of the run is scored yet.
    """
    settings, windows = evaluator.settings, evaluator.windows
    looks = evaluator.ledger.overlapping_trials(windows.key(windows.selection))
    elsewhere = max(settings.prior_trials, evaluator.ledger.prior(windows.key(windows.selection)))
    if not (noted := evaluator.ledger.events(evaluator.run, POWER_EVENT)):
        null = find_null(settings.test, settings.horizon_days, windows.selection.days)
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


def few_labels(days: int, horizon: int) -> str:
    """Return the warning on a selection window that holds too few labels that do not overlap; nothing where it does not."""
    labels = days // horizon
    if labels >= MIN_LABELS:
        return ""
    return (
        f"the selection window has {days} days, {labels} labels of {horizon} days that do not overlap; below {MIN_LABELS} the "
        "p-values rest on the far tail of a normal law, and only a very strong factor can be proven: give a longer panel"
    )


@dataclass(frozen=True)
class Prospect:
    """What the next trial could prove.

    Attributes
    ----------
    trials
        Looks at these days before it.
    days
        Days of the window that are tested.
    level
        Of the stream of trials.
    p_required, t_required
        What the next trial must reach.
    rank_ic_provable
        Smallest mean daily RankIC, measured on the window, that would be accepted.
    rank_ic_likely
        True RankIC that would be accepted four times in five.
    """

    trials: int
    days: int
    level: float
    p_required: float
    t_required: float
    rank_ic_provable: float
    rank_ic_likely: float

    def record(self) -> dict[str, Any]:
        """Return the JSON form, with the sentence that says it."""
        numbers = ("p_required", "t_required", "rank_ic_provable", "rank_ic_likely")
        known = {"trials": self.trials, "days": self.days, "level": self.level}
        return {
            **known,
            **{name: round_significant(getattr(self, name)) for name in numbers},
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Say in words what the window could have proven."""
        if not math.isfinite(self.rank_ic_provable):
            return (
                f"After {format_count(self.trials, 'trial')} on {self.days} selection days; what they could prove is unknown, since no "
                "score has a t."
            )
        return (
            f"After {format_count(self.trials, 'trial')}, the next look at these {self.days} selection days proves a RankIC of "
            f"{self.rank_ic_provable:.3f} or more there, of a factor that scatters from day to day as most do here (a "
            f"steadier one is proven by less); one whose true RankIC is {self.rank_ic_likely:.3f} would be accepted four "
            "times in five, a fainter one seldom."
        )


def prospect(null: NullDistribution, trials: int, found: int, level: float, deviation: float) -> Prospect:
    """Return what the next trial could prove.

    Parameters
    ----------
    null
        Distribution of t without any effect, for the tested days, horizon and lag of the window (`mean_test.null_of`).
    trials, found
        Looks at these days so far, and how many of them were discoveries.
    level
        Of the stream of trials, in (0, 1).
    deviation
        Long-run standard deviation of one day's RankIC; NaN gives NaN.
    """
    could = compute_power(null, lond_level(trials + 1, found, level), deviation)
    likely = could.rank_ic_provable + NORMAL_QUANTILE_80 * deviation / math.sqrt(null.days)
    return Prospect(trials, null.days, level, could.p_required, could.t_required, could.rank_ic_provable, likely)


@dataclass(frozen=True)
class Scatter:
    """Long-run standard deviations of one day's RankIC, one for each factor, from the search window alone."""

    deviations: Sequence[float]

    @property
    def typical(self) -> float:
        """Return the median, NaN where nothing is known."""
        return _quantile(self.deviations, 0.5)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        ends = (_quantile(self.deviations, share) for share in (0.25, 0.75))
        return {
            "factors": len(self.deviations),
            "median": round_significant(self.typical),
            "middle_half": list(map(round_significant, ends)),
        }


def published_scatter(evaluator: Evaluator, most: int | None = None) -> Scatter:
    """Return the scatter of all published factors that the panel can compute, on its search window: no other day is read.

    `most` takes so many of them, in the order of their ids, which are hashes and so a fair sample.

    All of them, since lists go by kind: of every fifth one the median was a fifth lower. 220 take 4 s at 2,518 days x 494
    names. What reads a sector is left out, so that the same formulas are measured with sectors and without.
    """
    there, window = set(evaluator.panel.fields), evaluator.windows.search
    able = [each for _, each, _ in published_expressions() if each.fields <= there]
    able = able if most is None else sorted(able, key=lambda each: each.id)[:most]
    tests = [evaluator.scorer.proof(evaluator.values(each), window) for each in able]
    return Scatter([each.deviation for each in tests if each.deviation > 0])


def outlook(evaluator: Evaluator, scatter: Scatter, trials: Sequence[int], days: int | None = None) -> list[Prospect]:
    """Return what the selection window could prove after each number of trials, none of them a discovery.

    `days` asks about a window of another length; no selection day is read in any case.
    """
    settings = evaluator.settings
    null = find_null(settings.test, settings.horizon_days, evaluator.windows.selection.days if days is None else days)
    return [prospect(null, number, 0, settings.level, scatter.typical) for number in trials]


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else math.nan
