"""The bench of search days: what it measures equals the run's own scores, and no later day can change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from alphaloom.evaluation import SearchBench, SearchQuestion
from alphaloom.evidence import EvidenceError
from alphaloom.market import Panel
from alphaloom.search import SearchConstraints

from ..evidence.lab import Lab

TEXT = "ts_mean(returns, 5)"
QUESTIONS = (
    SearchQuestion(cost_factor=2.0),
    SearchQuestion(horizon_days=20),
    SearchQuestion(sector_neutral=True),
    SearchQuestion(stretch="worst_month"),
)


def spoil(panel: Panel, stop: int) -> Panel:
    """Return the panel with every value after a row replaced."""
    fields = {}
    for name, values in panel.fields.items():
        changed = np.array(values)
        changed[stop:] = changed[stop:] * 3.0 + 0.5
        fields[name] = changed
    return replace(panel, fields=fields)


def cut(lab: Lab, panel: Panel) -> SearchBench:
    evaluator = lab.evaluator
    return SearchBench.cut(panel, evaluator.windows.search, evaluator.settings, SearchConstraints())


def test_its_scores_are_those_of_the_run(lab: Callable[..., Lab], planted: Panel) -> None:
    made = lab(panel=planted)
    sheet = cut(made, planted).measure(TEXT, SearchQuestion())
    own = made.evaluator.score(TEXT)
    assert {name: sheet[name] for name in sheet if name != "warnings"} == {
        name: own[name] for name in sheet if name != "warnings"
    }


def test_no_day_after_search_can_change_an_answer(lab: Callable[..., Lab], planted: Panel) -> None:
    made = lab(panel=planted)
    stop = made.evaluator.windows.search.stop
    panels = (planted, planted.rows(0, stop), spoil(planted, stop))
    benches = [cut(made, panel) for panel in panels]
    assert [bench.scorer.panel.days for bench in benches] == [stop] * 3
    for question in QUESTIONS:
        answers = [bench.compare((TEXT, "-rank(volume)"), (SearchQuestion(), question)) for bench in benches]
        assert answers[0] == answers[1] == answers[2], question
    assert [one.code for one in benches[0].stretches] == [one.code for one in benches[2].stretches]


def test_costs_and_horizon_change_what_they_should(lab: Callable[..., Lab], planted: Panel) -> None:
    bench = cut(lab(panel=planted), planted)
    plain, dear = (bench.measure(TEXT, SearchQuestion(cost_factor=factor)) for factor in (1.0, 2.0))
    assert (dear["rank_ic"], dear["gross_sharpe"]) == (plain["rank_ic"], plain["gross_sharpe"])
    assert dear["net_sharpe"] < plain["net_sharpe"] < plain["gross_sharpe"]
    assert bench.measure(TEXT, SearchQuestion(horizon_days=10))["horizon_days"] == 10
    assert bench.measure(TEXT, SearchQuestion()) == plain
    with pytest.raises(EvidenceError, match="stretch"):
        bench.measure(TEXT, SearchQuestion(stretch="nowhere"))
