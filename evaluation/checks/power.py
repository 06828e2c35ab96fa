"""The power of the next trial on the selection window."""

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
"""Standard errors above the threshold at which a true RankIC is accepted with a probability of 80 %."""
MIN_LABELS = 50
"""Fewest labels without overlap; with fewer, p-values rest on the far tail of the normal distribution."""
FAIR_SAMPLE = 24
GAIN_OF_FIVE: Final = 2.1
"""By how much less each of five unlike factors needs than a single one (`python -m bench.power`: 2.07 and 2.12)."""
PUBLISHED_RANK_IC: Final = (0.01, 0.02)
"""Mean RankIC of published factors on S&P 500 prices, 2008 to 2017 (`python -m bench.search real`)."""


POWER_EVENT: Final = "power"
"""Kind of the event that holds the power of the first trial."""
MAX_FACTORS_MEASURED: Final = 12
"""Scored factors whose error is measured: the first by id. Ids are hashes, so this is a random sample."""


def next_power(evaluator: Evaluator, trials: int, discoveries: int) -> dict[str, Any]:
    """Return the smallest RankIC that the next trial on this selection window can prove, with a sentence.

    Parameters
    ----------
    evaluator
        The service of the run.
    trials, discoveries
        Trials on the window's days so far, and discoveries among them.

    Notes
    -----
    The scatter of a candidate's daily RankIC is the median over scored factors, measured on the search window.
    """
    settings = evaluator.settings
    null = find_null(settings.test, settings.horizon_days, evaluator.windows.selection.days)
    return prospect(null, trials, discoveries, settings.level, _measure_scatter(evaluator).typical).record() | {
        "test": settings.test
    }


def record_first_power(evaluator: Evaluator) -> list[str]:
    """Record the power of the first trial before anything is scored, and return it in sentences.

    The scatter is that of 24 published factors on search days, since the run has no scored factor yet.
    """
    settings, windows = evaluator.settings, evaluator.windows
    looks = evaluator.ledger.trials.overlapping(windows.key(windows.selection))
    elsewhere = max(settings.prior_trials, evaluator.ledger.trials.prior(windows.key(windows.selection)))
    if not (events := evaluator.ledger.events.of(evaluator.run, POWER_EVENT)):
        null = find_null(settings.test, settings.horizon_days, windows.selection.days)
        scatter = published_scatter(evaluator, FAIR_SAMPLE).typical
        discoveries = evaluator.submissions.gate.count_discoveries()
        first = prospect(null, len(looks) + elsewhere, discoveries, settings.level, scatter)
        evaluator.ledger.events.record(evaluator.run, POWER_EVENT, "start", _record_with_combination(first))
        events = evaluator.ledger.events.of(evaluator.run, POWER_EVENT)
    warning = few_labels(windows.selection.days, settings.horizon_days)
    return [str(events[0].body["sentence"]), *([warning] if warning else [])]


def _record_with_combination(first: Prospect) -> dict[str, Any]:
    """Return the power of the first trial, of a single factor and of a combination, as JSON with a sentence."""
    each = first.rank_ic_likely / GAIN_OF_FIVE
    record = first.record() | {"rank_ic_likely_of_each_of_five": round_significant(each)}
    if not math.isfinite(each):
        return record
    sentence = (
        f"What the {first.days} selection days can prove, as trial {first.trials + 1}: a factor with a true RankIC of "
        f"{first.rank_ic_likely:.3f} passes four times in five, a weaker one seldom. Five unlike factors combined need "
        f"{each:.3f} each. Costs are not counted."
    )
    if each > PUBLISHED_RANK_IC[1]:
        low, high = PUBLISHED_RANK_IC
        sentence += (
            f" Published factors have {low:.2f} to {high:.2f} on large stocks, so an acceptance is unlikely here: more "
            "names, a longer history or another horizon (evidence.horizon_days) would help."
        )
    return record | {"sentence": sentence}


def read_first_power(evaluator: Evaluator) -> dict[str, Any] | None:
    """Return the recorded power of a run's first trial; None for a run that is older than this record."""
    events = evaluator.ledger.events.of(evaluator.run, POWER_EVENT)
    return dict(events[0].body) if events else None


def _measure_scatter(evaluator: Evaluator) -> Scatter:
    """Return the scatter of scored factors: from all metrics where labels are tested, else measured on a sample."""
    names, rows = sorted(evaluator.scores), evaluator.scores
    if evaluator.settings.test == "labels":
        sheets = [sheet for sheet in (rows[name].sheet for name in names) if sheet["t"] and sheet["rank_ic"]]
        return Scatter([abs(sheet["rank_ic"] / sheet["t"]) * float(sheet["days"]) ** 0.5 for sheet in sheets])
    values_of_sample = [evaluator.values(evaluator.read(rows[name].text)) for name in names[:MAX_FACTORS_MEASURED]]
    tests = [evaluator.scorer.proof(values, evaluator.windows.search) for values in values_of_sample]
    return Scatter([test.deviation for test in tests if test.deviation > 0])


def few_labels(days: int, horizon: int) -> str:
    """Return the warning that a selection window has too few labels without overlap; empty if it has enough."""
    labels = days // horizon
    if labels >= MIN_LABELS:
        return ""
    return (
        f"the selection window has {days} days, {labels} labels of {horizon} days that do not overlap; "
        f"below {MIN_LABELS} the p-values rest on the far tail of a normal law, and only a very strong factor can be "
        "proven: give a longer panel"
    )


@dataclass(frozen=True)
class Prospect:
    """The power of the next trial.

    Attributes
    ----------
    trials
        Trials on these days before it.
    days
        Days of the window that are tested.
    level
        Significance level of the stream of trials.
    p_required, t_required
        Largest p-value and smallest t with which the next trial is accepted.
    rank_ic_provable
        Smallest mean daily RankIC, measured on the window, that would be accepted.
    rank_ic_likely
        True RankIC that would be accepted with a probability of 80 %.
    """

    trials: int
    days: int
    level: float
    p_required: float
    t_required: float
    rank_ic_provable: float
    rank_ic_likely: float

    def record(self) -> dict[str, Any]:
        """Return the JSON form, with the sentence."""
        numbers = ("p_required", "t_required", "rank_ic_provable", "rank_ic_likely")
        counts = {"trials": self.trials, "days": self.days, "level": self.level}
        return {
            **counts,
            **{name: round_significant(getattr(self, name)) for name in numbers},
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Describe the power in words."""
        if not math.isfinite(self.rank_ic_provable):
            return (
                f"After {format_count(self.trials, 'trial')} on {self.days} selection days; what they could prove is "
                "unknown, since no score has a t."
            )
        return (
            f"After {format_count(self.trials, 'trial')}, the next factor needs a measured RankIC of about "
            f"{self.rank_ic_provable:.3f} on these {self.days} selection days. One with a true RankIC of "
            f"{self.rank_ic_likely:.3f} would be accepted four times in five. Both are for a RankIC that scatters from "
            "day to day as most do here; a steadier one needs less."
        )


def prospect(null: NullDistribution, trials: int, discoveries: int, level: float, deviation: float) -> Prospect:
    """Return the power of the next trial.

    Parameters
    ----------
    null
        Null distribution of t for the tested days, horizon and lag of the window (`mean_test.find_null`).
    trials, discoveries
        Trials on these days so far, and discoveries among them.
    level
        Significance level of the stream of trials, in (0, 1).
    deviation
        Long-run standard deviation of one day's RankIC; NaN gives NaN.
    """
    power = compute_power(null, lond_level(trials + 1, discoveries, level), deviation)
    likely = power.rank_ic_provable + NORMAL_QUANTILE_80 * deviation / math.sqrt(null.days)
    return Prospect(trials, null.days, level, power.p_required, power.t_required, power.rank_ic_provable, likely)


@dataclass(frozen=True)
class Scatter:
    """Long-run standard deviations of one day's RankIC, one for each factor, from the search window alone."""

    deviations: Sequence[float]

    @property
    def typical(self) -> float:
        """Return the median, NaN without factors."""
        return _take_quantile(self.deviations, 0.5)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        ends = (_take_quantile(self.deviations, share) for share in (0.25, 0.75))
        return {
            "factors": len(self.deviations),
            "median": round_significant(self.typical),
            "middle_half": list(map(round_significant, ends)),
        }


def published_scatter(evaluator: Evaluator, most: int | None = None) -> Scatter:
    """Return the scatter of the published factors that the panel can compute, on its search window only.

    `most` limits them to the first by id, a random sample, since ids are hashes. By default all are measured: the lists
    are ordered by kind, and the median of every fifth one was a fifth lower. The 220 of 286 that a
    panel of prices and volumes can compute take 4 s at 2,518 days x 494 names.
    Factors that read a sector are left out, so that panels with and without sectors measure the same formulas.
    """
    fields, window = set(evaluator.panel.fields), evaluator.windows.search
    computable = [expression for _, expression, _ in published_expressions() if expression.fields <= fields]
    computable = computable if most is None else sorted(computable, key=lambda expression: expression.id)[:most]
    tests = [evaluator.scorer.proof(evaluator.values(expression), window) for expression in computable]
    return Scatter([test.deviation for test in tests if test.deviation > 0])


def outlook(evaluator: Evaluator, scatter: Scatter, trials: Sequence[int], days: int | None = None) -> list[Prospect]:
    """Return the power after each number of trials without a discovery.

    `days` is the length of another window than the run's; no selection day is read in any case.
    """
    settings = evaluator.settings
    null = find_null(settings.test, settings.horizon_days, evaluator.windows.selection.days if days is None else days)
    return [prospect(null, number, 0, settings.level, scatter.typical) for number in trials]


def _take_quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else math.nan
