"""The negative control: acceptances of campaigns on null markets, compared with those that a correct gate allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...evidence import Claim, Proposal
from ...evidence.multiple_testing import lond_level
from ...evidence.scoring import round_significant
from ...factors import parse, sample
from ..service import Evaluator

MAX_RANDOM_FORMULAS = 200
"""Most random formulas that a top-up draws."""
RARE_CHANCE = 0.05
INTERVAL_CONFIDENCE = 0.95
"""A count whose probability under a correct gate is below this fails the gate."""


@dataclass(frozen=True)
class NullRun:
    """One campaign on a null market; `accepted` counts factors and sets, all of them false."""

    seed: int
    evaluations: int
    trials: int
    accepted: int
    level: float = 0.05
    seconds: float = 0.0

    @classmethod
    def of(cls, seed: int, evaluator: Evaluator) -> NullRun:
        """Read the outcome of a campaign from its ledger."""
        words = [row.verdict for row in evaluator.ledger.verdicts.of(evaluator.run)]
        spent = evaluator.meter.trials_spent()
        return cls(seed, evaluator.meter.evaluations_spent(), spent, words.count("accepted"), evaluator.settings.level)

    @property
    def chance(self) -> float:
        """Return a bound on the probability that a correct gate accepts anything in these trials."""
        return sum(lond_level(number, 0, self.level) for number in range(1, self.trials + 1))


@dataclass(frozen=True)
class ControlTally:
    """The counts over all runs on one kind of market."""

    kind: str
    runs: Sequence[NullRun]

    @property
    def accepted(self) -> int:
        """Return the number of accepted factors and sets."""
        return sum(run.accepted for run in self.runs)

    @property
    def trials(self) -> int:
        """Return the number of trials."""
        return sum(run.trials for run in self.runs)

    @property
    def fooled(self) -> int:
        """Return the number of markets with an acceptance, which is judged because markets are independent."""
        return sum(1 for run in self.runs if run.accepted)

    @property
    def expected(self) -> float:
        """Return a bound on the expected number of markets with an acceptance under a correct gate."""
        return sum(run.chance for run in self.runs)

    @property
    def allowed(self) -> int:
        """Return the largest count that a correct gate reaches with a probability of at least `RARE_CHANCE`."""
        from scipy.stats import binom

        markets = max(len(self.runs), 1)
        return int(binom.isf(RARE_CHANCE, markets, min(self.expected / markets, 1.0)))

    @property
    def holds(self) -> bool:
        """True if the count is within what a correct gate allows."""
        return self.fooled <= self.allowed

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        low, high = share_interval(self.fooled, len(self.runs))
        return {
            "kind": self.kind,
            "markets": len(self.runs),
            "trials": self.trials,
            "accepted": self.accepted,
            "markets_with_an_acceptance": self.fooled,
            "expected": round_significant(self.expected),
            "allowed": self.allowed,
            "clean": self.fooled == 0,
            "interval": [round_significant(low), round_significant(high)],
            "holds": self.holds,
            "runs": [{name: value for name, value in asdict(run).items() if name != "seconds"} for run in self.runs],
        }


def share_interval(count: int, of: int) -> tuple[float, float]:
    """Return the exact interval of a share: it contains the true one with a probability of at least 95 %.

    Parameters
    ----------
    count
        Successes, from 0 to `of`.
    of
        Independent tries; with 0 the interval is (0, 1).

    Returns
    -------
    tuple of float
        Lower and upper end, each in [0, 1].

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413.
    """
    if not 0 <= count <= of:
        raise ValueError(f"count must be from 0 to {of}, got {count}")
    from scipy.stats import beta

    tail = (1.0 - INTERVAL_CONFIDENCE) / 2.0
    low = float(beta.ppf(tail, count, of - count + 1)) if count else 0.0
    high = float(beta.isf(tail, count + 1, of - count)) if count < of else 1.0
    return low, high


def top_up(evaluator: Evaluator, seed: int) -> None:
    """Submit factors until no trial is left: scored ones, the best on search first, then random ones.

    Steps before statistics refuse some factors of the agents, and a control with fewer trials has less power. Random
    formulas are drawn from the grammar by `seed`, as many as the budget of evaluations allows.
    """
    judged = {row.factor_id for row in evaluator.ledger.verdicts.of(evaluator.run)}
    claims = evaluator.log.proposals.claims()
    for row in sorted(evaluator.scores.values(), key=lambda row: (-(row.sheet["merit"] or 0.0), row.factor_id)):
        if evaluator.meter.trials_left() <= 0:
            return
        if row.factor_id in claims and row.factor_id not in judged:
            evaluator.submissions.submit([row.factor_id])
    _submit_random(evaluator, seed)


def _submit_random(evaluator: Evaluator, seed: int) -> None:
    """Submit random formulas with the claimed sign on search; a resumed control draws the same ones again."""
    rng, fields = np.random.default_rng(seed), tuple(evaluator.panel.fields)
    for number in range(MAX_RANDOM_FORMULAS):
        if evaluator.meter.trials_left() <= 0 or evaluator.meter.evaluations_left() <= 0:
            return
        text = sample(rng, fields=fields, max_size=8).canonical_text
        reads = tuple(sorted(parse(text, fields=fields).fields))
        claim = Claim(f"control-{number:03d}", "control", "a random formula", 1, evaluator.settings.horizon_days, reads)
        answer = evaluator.propose(Proposal(text, claim, claim.id))
        if answer["ok"] and (answer["sheet"]["rank_ic"] or 0.0) > 0:
            evaluator.submissions.submit([answer["id"]])
