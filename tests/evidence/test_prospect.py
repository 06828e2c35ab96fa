"""What a window could prove is known before a trial is spent, and without reading a selection day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from alphaloom.evidence import Dossier
from alphaloom.evidence.null import null_distribution
from alphaloom.evidence.prospect import LIKELY, Scatter, labelled, outlook, prospect, published_scatter, scatter_of
from alphaloom.evidence.significance import lond_level
from alphaloom.market import Panel

from .lab import SMALL, Lab, market

Make = Callable[..., Lab]


def test_a_mean_at_the_bar_has_the_p_value_of_the_level() -> None:
    null = null_distribution(200, 5, 10)
    found = prospect(null, 9, 0, 0.05, 0.1)
    assert found.p_required == lond_level(10, 0, 0.05)
    t = found.rank_ic_provable / (0.1 / np.sqrt(200))
    assert null.p_value(t) == pytest.approx(found.p_required, rel=1e-6)
    assert norm.cdf(LIKELY) == pytest.approx(0.8, abs=1e-4)
    assert found.rank_ic_likely - found.rank_ic_provable == pytest.approx(LIKELY * 0.1 / np.sqrt(200))


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
    run.judged("ts_kurt(high / low, 25)")
    dossier = Dossier(run.evaluator)
    scatter = Scatter([dossier._daily_deviation()])
    assert dossier.power() == outlook(run.evaluator, scatter, (1,))[0].record()


def test_a_scatter_is_the_long_run_deviation_of_a_day() -> None:
    rng = np.random.default_rng(0)
    series = [rng.normal(0, 0.2, 20_000), np.full(50, np.nan), np.zeros(50)]
    found = scatter_of(series, 0)
    assert len(found.deviations) == 1
    assert found.typical == pytest.approx(0.2, rel=0.02)
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


def test_labelled_days_end_inside_the_window() -> None:
    assert labelled(482, SMALL.horizon_days) == 476
    assert labelled(3, 5) == 1
