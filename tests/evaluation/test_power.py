"""What a window could prove is known before a trial is spent, and without reading a selection day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from alphaloom.evaluation import Evaluator, ResultsBuilder
from alphaloom.evaluation.checks.power import (
    NORMAL_QUANTILE_80,
    Scatter,
    few_labels,
    outlook,
    prospect,
    published_scatter,
    record_first_power,
)
from alphaloom.evidence.gate.mean_test import MeanTest, find_null
from alphaloom.evidence.multiple_testing.online_fdr import lond_level
from alphaloom.evidence.newey_west import null_distribution
from alphaloom.evidence.originality.published import published_expressions
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.factors import Expression
from alphaloom.market import Panel

from ..evidence.lab import Lab, market

Make = Callable[..., Lab]


def test_a_mean_at_the_bar_has_the_p_value_of_the_level() -> None:
    null = null_distribution(200, 5, 10)
    found = prospect(null, 9, 0, 0.05, 0.1)
    assert found.p_required == lond_level(10, 0, 0.05)
    t = found.rank_ic_provable / (0.1 / np.sqrt(200))
    assert null.p_value(t) == pytest.approx(found.p_required, rel=1e-6)
    assert norm.cdf(NORMAL_QUANTILE_80) == pytest.approx(0.8, abs=1e-4)
    assert found.rank_ic_likely - found.rank_ic_provable == pytest.approx(NORMAL_QUANTILE_80 * 0.1 / np.sqrt(200))


def test_more_trials_ask_more_and_more_days_less(lab: Make) -> None:
    run = lab().evaluator
    scatter = Scatter([0.1, 0.2, 0.3])
    rows = outlook(run, scatter, (0, 1, 5, 50))
    proven = [row.rank_ic_provable for row in rows]
    assert proven == sorted(proven)
    assert len(set(proven)) == 4
    longer = outlook(run, scatter, (5,), days=900)[0]
    assert (longer.days, longer.rank_ic_provable < proven[2]) == (894, True)


def test_a_campaign_says_the_same_after_as_many_trials(lab: Make) -> None:
    run = lab()
    verdict = run.judged("ts_kurt(high / low, 25)")
    evaluator = run.evaluator
    values = evaluator.values(evaluator.read(evaluator.scores[verdict.factor_id].text))
    scatter = Scatter([evaluator.scorer.proof(values, evaluator.windows.search).deviation])
    assert ResultsBuilder(evaluator).power() == outlook(evaluator, scatter, (1,))[0].record() | {"test": "labels"}


def test_one_trial_is_one_trial() -> None:
    null = null_distribution(200, 5, 10)
    said = [prospect(null, trials, 0, 0.05, deviation).sentence() for trials in (1, 2) for deviation in (0.1, np.nan)]
    assert [line.split(" on ")[0].split(",")[0] for line in said] == ["After 1 trial"] * 2 + ["After 2 trials"] * 2


def test_an_unknown_scatter_is_not_a_number() -> None:
    assert np.isnan(Scatter([]).typical)


def test_later_days_change_nothing(lab: Make) -> None:
    """What is said before a trial may not know a return of the selection or of the sealed window."""
    panel = market()
    stop = lab().evaluator.windows.search.stop
    rng = np.random.default_rng(1)
    fields = {name: values.copy() for name, values in panel.fields.items()}
    for values in fields.values():
        values[stop:] *= rng.uniform(0.5, 2.0, values[stop:].shape)
    other: Panel = replace(panel, fields=fields)
    found = [published_scatter(lab(name, panel=each).evaluator) for name, each in (("a", panel), ("b", other))]
    assert found[0].deviations == found[1].deviations
    assert len(found[0].deviations) > 20


def test_every_published_formula_is_measured_that_the_panel_has_the_fields_for(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {name: values for name, values in market().fields.items() if name not in {"vwap", "amount"}}
    asked: list[str] = []

    def noted(self: Evaluator, expression: Expression) -> NDArray[np.float32]:
        asked.append(expression.id)
        return np.zeros(self.panel.universe.shape, np.float32)

    monkeypatch.setattr(Evaluator, "values", noted)
    monkeypatch.setattr(Scorer, "proof", lambda *_: MeanTest("labels", 1.0, 200, 5, 10, 0.01))
    found = published_scatter(lab(panel=replace(market(), fields=fields)).evaluator)
    known = [each for _, each, _ in published_expressions()]
    assert asked == [formula.id for formula in known if formula.fields <= set(fields)]
    assert 100 < len(asked) == found.record()["factors"] < len(known)


def test_the_days_that_are_tested_end_inside_the_window() -> None:
    assert (find_null("labels", 5, 482).days, find_null("held", 5, 482).days) == (476, 480)


def test_what_could_be_proven_is_stated_before_anything_is_scored(lab: Make) -> None:
    run = lab().evaluator
    sentence, few = record_first_power(run)
    assert run.meter.evaluations_spent() == 0
    assert "a factor with a true RankIC of 0.082 passes four times in five" in sentence
    assert "Five unlike factors combined need 0.0" in sentence
    assert "so an acceptance is unlikely here: more names, a longer history" in sentence
    assert "has 126 days, 25 labels of 5 days that do not overlap; below 50" in few
    assert record_first_power(run) == [sentence, few]
    record = ResultsBuilder(run).record()
    assert (record["power_before"]["trials"], record["power_before"]["sentence"]) == (0, sentence)
    assert {"code": "few_labels", "message": few} in record["warnings"]


def test_enough_labels_are_no_warning() -> None:
    assert (few_labels(250, 5), few_labels(20, 1) != "", few_labels(249, 5) != "") == ("", True, True)
