"""The control in small: where nothing is, nothing is accepted; where something strong is, it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from alphaloom.evidence import Proposal
from alphaloom.evidence.verdict import Verdict
from alphaloom.factors import sample
from alphaloom.market import Panel

from .lab import KNOWN, Lab, claim_of, market

EVALUATIONS, TRIALS = 40, 10


def search(run: Lab, seed: int) -> list[Verdict]:
    """Score random formulas, each with a hypothesis that it keeps, and submit the best until no trial is left."""
    rng = np.random.default_rng(seed)
    fields = tuple(run.evaluator.panel.fields)
    while run.evaluator.evaluations_spent() < EVALUATIONS:
        text = sample(rng, fields=fields, max_size=8).canonical_text
        run.evaluator.propose(Proposal(text, claim_of(text), f"{len(run.ledger.attempts('run')):03d}"))
    ranked = sorted(run.evaluator.rows.values(), key=lambda row: -(row.sheet["merit"] or 0.0))
    verdicts: list[Verdict] = []
    for row in ranked:
        if run.evaluator.trials_left():
            verdicts += run.evaluator.submit([row.factor_id])
    return verdicts


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_accepted_where_nothing_is(lab: Callable[..., Lab], seed: int) -> None:
    run = lab(panel=market(seed, nothing=True))
    words = [verdict.word for verdict in search(run, seed)]
    assert "accepted" not in words
    assert len(run.trials()) == TRIALS
    assert run.ledger.library() == []


def test_a_known_factor_is_accepted_as_the_tenth_trial(lab: Callable[..., Lab], planted: Panel) -> None:
    run = lab(panel=planted, prior_trials=9)
    verdict = run.judged(KNOWN)
    assert (verdict.word, verdict.trial) == ("accepted", 10)
