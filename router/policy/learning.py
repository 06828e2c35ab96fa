"""The cheapest way to a valid reply, learned from the outcomes of earlier calls within the policy's bounds.

Three ways lead to a reply: a frontier model, a local model, or a local model first and the frontier if its reply is not
valid (cascade). For each intent, difficulty and tier, the belief is a Beta distribution of success and a mean price.
Each decision draws one probability of success from every distribution (Thompson sampling) and takes the way with the
lowest expected cost of a valid reply. Old outcomes are discounted, so that a changed model is noticed (Raj and Kalyani,
arXiv 1707.09727).

A decision depends only on the seed, the key of the call and the earlier outcomes in their order. The ledger's record is
the authority, and the beliefs are rebuilt from it. The floor is checked before each call, so its quantile is a rule for
a single check and not an error rate over a whole run. A task that may go to one tier only, such as a confidential one,
is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ...ledger import compute_digest
from ..config import Tier
from ..errors import RouterError

Way: TypeAlias = Literal["frontier", "local", "cascade"]
WAYS: tuple[Way, ...] = ("frontier", "local", "cascade")
TIERS: tuple[Tier, ...] = ("local", "frontier")


class _LearningModel(BaseModel):
    """Frozen, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Belief(_LearningModel):
    """The belief about a tier before any outcome: pseudo-counts of successes and failures, and the price of a call."""

    successes: float = Field(gt=0, allow_inf_nan=False)
    failures: float = Field(gt=0, allow_inf_nan=False)
    usd: float = Field(ge=0, allow_inf_nan=False, description="US dollars of one call")


class Prior(_LearningModel):
    """The beliefs at the start, and the half-life of outcomes."""

    local: Belief = Belief(successes=1, failures=1, usd=0.0)
    frontier: Belief = Belief(successes=4, failures=1, usd=0.01)
    half_life: float = Field(
        default=200, gt=0, description="outcomes of an intent and difficulty after which one counts half; may be inf"
    )


class Bounds(_LearningModel):
    """The limits that no outcome may change, and the cost of a failure."""

    pinned: dict[str, Tier] = Field(default={}, description="intents that stay with one tier")
    hard: frozenset[str] = Field(default=frozenset({"hard"}), description="difficulties for which the floor holds")
    floor: float = Field(
        default=0.9,
        ge=0,
        le=1,
        description="success that a local model must show before it gets a hard prompt; 0: none",
    )
    quantile: float = Field(
        default=0.05, gt=0, lt=1, description="of the law of its success, which must reach the floor"
    )
    try_hard_locally: bool = Field(
        default=False,
        description="below the floor, let a hard prompt go by cascade: invalid replies go on to the frontier",
    )
    failure_usd: float = Field(
        default=0.001, ge=0, allow_inf_nan=False, description="US dollars that an invalid reply costs beside its price"
    )


@dataclass(frozen=True)
class TierOutcome:
    """The outcome of one call to one tier: whether its reply was valid, and its price in US dollars."""

    intent: str
    tier: Tier
    success: bool
    cost_usd: float
    difficulty: str = "easy"


@dataclass
class Arm:
    """One tier for one intent and difficulty: discounted successes, failures and US dollars."""

    belief: Belief
    successes: float = 0.0
    failures: float = 0.0
    usd: float = 0.0

    @property
    def law(self) -> tuple[float, float]:
        """The parameters (alpha, beta) of the Beta distribution of success."""
        return self.belief.successes + self.successes, self.belief.failures + self.failures

    @property
    def mean(self) -> float:
        """The expected probability of success."""
        good, bad = self.law
        return good / (good + bad)

    @property
    def price(self) -> float:
        """The expected US dollars of a call; the belief counts as one call."""
        return (self.belief.usd + self.usd) / (1.0 + self.successes + self.failures)

    def fade(self, share: float) -> None:
        """Multiply the counts by a share, so that earlier outcomes count less."""
        self.successes *= share
        self.failures *= share
        self.usd *= share

    def add(self, outcome: TierOutcome) -> None:
        """Count one outcome."""
        self.successes += outcome.success
        self.failures += not outcome.success
        self.usd += outcome.cost_usd

    def quantile(self, share: float) -> float:
        """Return the quantile of the distribution of success at this share."""
        from scipy.special import betaincinv  # a third of a second, hence late

        return float(betaincinv(*self.law, share))


@dataclass(frozen=True)
class LearnedDecision:
    """The chosen way, the reason, and the expected US dollars of a valid reply by each way that was open."""

    way: Way
    why: str
    expected: Mapping[Way, float] = field(default_factory=dict)


def cost_per_valid(way: Way, success: Mapping[Tier, float], usd: Mapping[Tier, float], failure_usd: float) -> float:
    """Return the expected US dollars for a valid reply by one way.

    An attempt costs its price, and `failure_usd` if it fails; a cascade that fails locally pays for a frontier attempt
    too. The expected cost is divided by the probability of a valid reply; it is infinite where that is 0.
    """
    attempt = {tier: usd[tier] + (1.0 - success[tier]) * failure_usd for tier in TIERS}
    if way == "cascade":
        failure_rate = 1.0 - success["local"]
        cost, chance = (
            attempt["local"] + failure_rate * attempt["frontier"],
            1.0 - failure_rate * (1.0 - success["frontier"]),
        )
    else:
        cost, chance = attempt[way], success[way]
    return cost / chance if chance > 0 else float("inf")


class Learner:
    """Chooses the way of each call, and learns from outcomes.

    Parameters
    ----------
    prior : Prior
        The beliefs before the first outcome, and the half-life of outcomes.
    bounds : Bounds
        The limits that no outcome may change.
    seed : int
        Determines, with the key of a call, the draws of its decision.
    outcomes : iterable of TierOutcome
        The recorded outcomes, in order.
    """

    def __init__(self, prior: Prior, bounds: Bounds, seed: int, outcomes: Iterable[TierOutcome] = ()) -> None:
        self._prior = prior
        self._bounds = bounds
        self._seed = seed
        self._fade = 0.5 ** (1.0 / prior.half_life)
        self._arms: dict[tuple[str, str], dict[Tier, Arm]] = {}
        for outcome in outcomes:
            self.record(outcome)

    def record(self, outcome: TierOutcome) -> None:
        """Learn from one outcome. The counts of the other tier fade too, so that it is tried again later.

        Raises
        ------
        RouterError
            If its price is negative, infinite or NaN.
        """
        if not 0.0 <= outcome.cost_usd < float("inf"):
            raise RouterError(
                "an outcome needs a price",
                field="cost_usd",
                got=outcome.cost_usd,
                allowed="0 or more US dollars",
                hint="Take the price that the ledger holds for the call.",
            )
        arms = self._arms.setdefault((outcome.intent, outcome.difficulty), self._build_fresh_arms())
        for arm in arms.values():
            arm.fade(self._fade)
        arms[outcome.tier].add(outcome)

    def find_arm(self, intent: str, difficulty: str, tier: Tier) -> Arm:
        """Return the arm of a tier for an intent and difficulty; callers must not change it."""
        return self._arms.get((intent, difficulty), self._build_fresh_arms())[tier]

    def list_ways(self, intent: str, difficulty: str) -> tuple[tuple[Way, ...], str]:
        """Return the ways that the bounds allow, and the reason against the others."""
        bounds = self._bounds
        if tier := bounds.pinned.get(intent):
            return (tier,), f"{intent} is pinned to {tier}"
        if difficulty in bounds.hard:
            proven_success = self.find_arm(intent, difficulty, "local").quantile(bounds.quantile)
            if proven_success < bounds.floor:
                ways: tuple[Way, ...] = ("frontier", "cascade") if bounds.try_hard_locally else ("frontier",)
                return (
                    ways,
                    f"local has shown a success of {proven_success:.2f} at least, the floor is {bounds.floor:.2f}",
                )
        return WAYS, ""

    def decide(self, key: str, intent: str, difficulty: str = "easy") -> LearnedDecision:
        """Return the way of a call; the same seed, key and outcomes give the same way."""
        ways, why = self.list_ways(intent, difficulty)
        if len(ways) == 1:
            return LearnedDecision(ways[0], why)
        success = {tier: self.find_arm(intent, difficulty, tier).quantile(self._draw(key, tier)) for tier in TIERS}
        usd = {tier: self.find_arm(intent, difficulty, tier).price for tier in TIERS}
        expected = {way: cost_per_valid(way, success, usd, self._bounds.failure_usd) for way in ways}
        best = min(ways, key=lambda way: expected[way])
        draws = f"local {success['local']:.2f}, frontier {success['frontier']:.2f}"
        reason = f"a draw of success ({draws}) makes {best} cheapest"
        return LearnedDecision(best, f"{why}; {reason}" if why else reason, expected)

    def _build_fresh_arms(self) -> dict[Tier, Arm]:
        return {"local": Arm(self._prior.local), "frontier": Arm(self._prior.frontier)}

    def _draw(self, key: str, tier: Tier) -> float:
        """Return a number between 0 and 1 (both excluded) from seed, key and tier."""
        return (int(compute_digest([self._seed, key, tier])[:13], 16) + 0.5) / 16**13
