"""The published formulas on search days, and the baseline that is made of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from alphaloom.evaluation import Evaluator
from alphaloom.evaluation.baseline import (
    close_baseline,
    compute_published,
    describe_baseline,
    list_known_effects,
    measure_addition,
    read_baseline,
    record_baseline,
)
from alphaloom.evaluation.closing import Baseline, PublishedFormula
from alphaloom.evidence.originality import published_expressions, published_mechanisms, rank_correlation
from alphaloom.evidence.scoring.metrics import FactorMetrics
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window
from alphaloom.market import Panel

from ..evidence.lab import KNOWN, Crash, Lab

Make = Callable[..., Lab]
OTHER = "ts_kurt(high / low, 25)"


class Limited(Scorer):
    """A scorer that dies when it is to look beyond the windows of this list."""

    allowed: tuple[str, ...] = ("search",)

    def score(self, values: Any, window: Window, sign: int | None = None) -> FactorMetrics:
        if window.name not in self.allowed:
            raise Crash
        return super().score(values, window, sign)


class UpToSelection(Limited):
    """A scorer that dies when it is to look at sealed days."""

    allowed = ("search", "selection")


def limited(run: Lab, kind: type[Limited]) -> Evaluator:
    old = run.evaluator
    return Evaluator(
        old.engine, kind(old.panel, old.settings), old.windows, old.ledger, old.settings, old.budget, old.run
    )


def begin(evaluator: Evaluator) -> Baseline:
    baseline = record_baseline(evaluator, lambda done, of: None)
    assert baseline is not None
    return baseline


def test_the_start_scores_every_formula_once_on_search_days_and_spends_nothing(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    baseline = begin(limited(run, Limited))
    assert (baseline.published, baseline.computable, len(baseline.formulas)) == (286, 286, 286)
    assert baseline.living == sum(formula.lives for formula in baseline.formulas)
    assert 286 * 2 * 0.0228 < (baseline.by_chance or 0.0) < 286 * 0.1, "at least as many as by the normal law"
    assert describe_baseline(baseline).startswith("286 published formulas, 286 of which this panel can compute: ")
    assert (run.evaluator.meter.evaluations_spent(), run.trials(), len(run.evaluator.scores)) == (0, [], 0)

    def refuse(done: int, of: int) -> None:
        raise AssertionError("a resumed run scored the formulas again")

    assert record_baseline(run.evaluator, refuse) == baseline == read_baseline(run.evaluator)


def test_the_baseline_holds_the_strongest_formulas_that_differ(lab: Make, planted: Panel) -> None:
    evaluator = lab(panel=planted).evaluator
    baseline = begin(evaluator)
    scores = {formula.name: formula for formula in baseline.formulas}
    names = [member.name for member in baseline.members]
    strongest = max(
        (formula for formula in baseline.formulas if formula.lives), key=lambda formula: abs(formula.t or 0)
    )
    assert strongest.name in names
    assert 2 <= len(names) <= 10
    assert sum(abs(member.weight or 0.0) for member in baseline.members) == pytest.approx(1.0, abs=0.1)
    assert all(np.sign(member.weight or 0.0) == scores[member.name].sign for member in baseline.members)
    values = dict(zip(names, compute_published(evaluator, names), strict=True))
    limit, window = evaluator.settings.max_redundancy, evaluator.windows.search
    assert all(abs(rank_correlation(values[a], values[b], window)) <= limit for a, b in combinations(names, 2))
    assert baseline.search is not None
    assert (baseline.search.t or 0.0) > 2
    assert (baseline.selection, baseline.sealed, baseline.addition) == (None, None, {})


def test_a_run_without_published_formulas_has_no_baseline(lab: Make) -> None:
    evaluator = lab(published=False).evaluator
    assert record_baseline(evaluator, lambda done, of: None) is None
    assert evaluator.ledger.events.of(evaluator.run, "baseline") == []
    assert close_baseline(evaluator, None, open_sealed=False) is None


def test_the_close_adds_selection_figures_that_the_record_for_agents_lacks(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted)
    evaluator = limited(run, UpToSelection)
    begin(evaluator)
    untested = Baseline.read(close_baseline(evaluator, None, open_sealed=False) or {})
    assert untested.selection is None  # without a trial nobody learns anything of these days
    run.judged(OTHER)
    closed = close_baseline(evaluator, None, open_sealed=False)
    assert closed is not None
    told = Baseline.read(closed)
    assert told.selection is not None
    assert (told.sealed, told.own, told.addition, told.addition_of) == (None, {}, {}, "")
    recorded = read_baseline(evaluator)
    assert recorded is not None
    assert recorded.selection is None
    with pytest.raises(Crash):
        close_baseline(evaluator, None, open_sealed=True)


def test_a_combination_that_was_tested_in_vain_is_measured_beside_the_baseline(lab: Make, planted: Panel) -> None:
    run = lab(panel=planted, level=1e-12)
    begin(run.evaluator)
    verdict = run.evaluator.submissions.submit_set([run.scored(text) for text in (KNOWN, OTHER)])
    assert verdict.word != "accepted"
    told = Baseline.read(close_baseline(run.evaluator, None, open_sealed=False) or {})
    assert told.addition_of == verdict.word
    assert set(told.own) == set(told.addition) == {"search", "selection"}
    assert (told.addition["selection"].t or 0.0) > 3, "the plant is in no published list"


def test_what_a_score_adds_is_nothing_to_itself_and_all_to_something_else(lab: Make, planted: Panel) -> None:
    evaluator = lab(panel=planted).evaluator
    window, values = evaluator.windows.search, evaluator.values(evaluator.read(KNOWN))
    same = measure_addition(evaluator, values, values * 2, window)
    assert (same.rank_ic, same.t) == (None, None)
    assert same.kept == pytest.approx(0.0, abs=1e-6)
    noise = np.random.default_rng(0).normal(size=values.shape).astype(np.float32)
    other = measure_addition(evaluator, values, noise, window)
    alone = evaluator.scorer.score(values, window, 1)
    assert other.rank_ic == pytest.approx(alone.rank_ic, rel=0.1)
    assert (other.kept or 0.0) > 0.95


def test_agents_are_told_the_strongest_living_formula_of_each_mechanism() -> None:
    rows = [
        PublishedFormula(name="a", mechanism="reversal", rank_ic=-0.03, t=-4.0),
        PublishedFormula(name="b", mechanism="reversal", rank_ic=0.02, t=3.0),
        PublishedFormula(name="c", mechanism="size", rank_ic=0.02, t=2.5, objection="reads a level"),
        PublishedFormula(name="d", mechanism="", rank_ic=0.02, t=2.4),
        PublishedFormula(name="e", mechanism="momentum", rank_ic=0.01, t=1.9),
    ]
    (told,) = list_known_effects(rows)
    assert told == {
        "mechanism": "reversal", "name": "a", "text": "", "direction": -1, "t": -4.0, "living": 2, "of": 2
    }  # fmt: skip  # one line reads better


def test_every_formula_whose_source_documents_it_has_a_mechanism() -> None:
    known = {name: expression.id for name, expression, _ in published_expressions()}
    assert (len(known), len(set(known.values()))) == (286, 285)
    without = set(known) - set(published_mechanisms())
    assert set(published_mechanisms()) <= set(known)
    assert len(without) == 99
    assert all(name.startswith("WorldQuant") for name in without)
