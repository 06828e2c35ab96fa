"""The control in small: where nothing is, nothing is accepted; where something strong is, it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from alphaloom.evaluation.checks.negative_control import RARE_CHANCE, ControlTally, NullRun, share_interval, top_up
from alphaloom.evidence import Proposal
from alphaloom.evidence.gate.verdict import Verdict
from alphaloom.factors import sample
from alphaloom.market import Panel

from ..evidence.lab import KNOWN, Lab, claim_of, market

EVALUATIONS, TRIALS = 40, 10


def search(run: Lab, seed: int) -> list[Verdict]:
    """Score random formulas, each with a hypothesis that it keeps, and submit the best until no trial is left."""
    rng = np.random.default_rng(seed)
    fields = tuple(run.evaluator.panel.fields)
    while run.evaluator.meter.evaluations_spent() < EVALUATIONS:
        text = sample(rng, fields=fields, max_size=8).canonical_text
        run.evaluator.propose(Proposal(text, claim_of(text), f"{len(run.ledger.attempts.of('run')):03d}"))
    ranked = sorted(run.evaluator.scores.values(), key=lambda row: -(row.sheet["merit"] or 0.0))
    verdicts: list[Verdict] = []
    for row in ranked:
        if run.evaluator.meter.trials_left():
            verdicts += run.evaluator.submissions.submit([row.factor_id])
    return verdicts


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_accepted_where_nothing_is(lab: Callable[..., Lab], seed: int) -> None:
    run = lab(panel=market(seed, nothing=True), published=False)  # each of the best is looked at, known or not
    words = [verdict.word for verdict in search(run, seed)]
    assert "accepted" not in words
    assert len(run.trials()) == TRIALS
    assert run.ledger.library.rows() == []


def test_a_known_factor_is_accepted_as_the_tenth_trial(lab: Callable[..., Lab], planted: Panel) -> None:
    run = lab(panel=planted, prior_trials=9, label_scale="none")
    verdict = run.judged(KNOWN)
    assert (verdict.word, verdict.trial) == ("accepted", 10)


def test_a_top_up_spends_every_trial_and_judges_nothing_twice(lab: Callable[..., Lab]) -> None:
    run = lab(panel=market(3, nothing=True))
    judged = run.judged("ts_kurt(high / low, 25)").factor_id
    rng = np.random.default_rng(3)
    while run.evaluator.meter.evaluations_spent() < EVALUATIONS:
        text = sample(rng, fields=tuple(run.evaluator.panel.fields), max_size=8).canonical_text
        run.evaluator.propose(Proposal(text, claim_of(text), f"{len(run.ledger.attempts.of('run')):03d}"))
    top_up(run.evaluator, 3)
    found = NullRun.of(3, run.evaluator)
    assert (found.trials, found.accepted, run.evaluator.meter.trials_left()) == (TRIALS, 0, 0)
    assert judged in {row.factor_id for row in run.ledger.verdicts.of("run")}
    top_up(run.evaluator, 3)
    assert NullRun.of(3, run.evaluator) == found


def test_where_too_few_were_scored_random_formulas_spend_the_rest(lab: Callable[..., Lab]) -> None:
    run = lab(panel=market(3, nothing=True))
    run.scored("ts_kurt(high / low, 25)")
    top_up(run.evaluator, 3)
    assert NullRun.of(3, run.evaluator).trials == TRIALS
    attempts = len(run.ledger.attempts.of("run"))
    top_up(run.evaluator, 3)
    assert len(run.ledger.attempts.of("run")) == attempts


@given(st.integers(1, 300), st.data())
def test_an_interval_is_where_the_tails_are_exact(of: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, of))
    low, high = share_interval(count, of)
    assert low <= count / of <= high
    if count:
        assert binom.sf(count - 1, of, low) == pytest.approx(0.025, rel=1e-6)
    if count < of:
        assert binom.cdf(count, of, high) == pytest.approx(0.025, rel=1e-6)


def tally(*accepted: int, trials: int = 10) -> ControlTally:
    return ControlTally("null", [NullRun(seed, 40, trials, each) for seed, each in enumerate(accepted)])


@pytest.mark.parametrize(("markets", "allowed"), [(20, 1), (200, 3)])
def test_a_count_is_held_against_what_a_correct_gate_reaches(markets: int, allowed: int) -> None:
    right = tally(*[1] * allowed, *[0] * (markets - allowed))
    assert (right.allowed, right.fooled, right.holds) == (allowed, allowed, True)
    assert not tally(*[1] * (allowed + 1), *[0] * (markets - allowed - 1)).holds
    chance = right.expected / markets
    assert binom.sf(allowed, markets, chance) <= RARE_CHANCE < binom.sf(allowed - 1, markets, chance)


def test_the_expected_number_is_the_one_of_the_stream_rule() -> None:
    assert tally(*[0] * 200).expected == pytest.approx(0.82, abs=0.01)
    assert tally(0, trials=0).expected == 0
    assert tally(3, 0).record()["markets_with_an_acceptance"] == 1
    assert tally(3, 0).accepted == 3
