"""The cheapest way to a valid reply, learned from the outcomes of earlier calls within the policy's bounds.

Three ways lead to a reply: a frontier model, a local model, or a local one first and the frontier where its reply is not
valid (cascade). What is believed of each intent, difficulty and tier is a Beta law of success and a mean price. Each
decision draws one chance of success from every law (Thompson sampling) and takes the way whose valid reply is then expected
to cost least. Old outcomes count less and less, so a model that was changed is noticed (Raj and Kalyani, arXiv 1707.09727).

A decision depends on the seed, the key of the call and the outcomes so far, in their order, and on nothing else: the
ledger's record is the authority, and what was learned is rebuilt from it. The floor is looked at before each call, so its
quantile is a rule for one look and no level of error over a course. Nothing here is asked where a task may go to one
tier only, as a confidential one may.
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
    """What is thought of a tier before any outcome: as if so many calls had succeeded and failed, at this price each."""

    successes: float = Field(gt=0, allow_inf_nan=False)
    failures: float = Field(gt=0, allow_inf_nan=False)
    usd: float = Field(ge=0, allow_inf_nan=False, description="US dollars of one call")


class Prior(_LearningModel):
    """The beliefs at the start, and how fast outcomes are forgotten."""

    local: Belief = Belief(successes=1, failures=1, usd=0.0)
    frontier: Belief = Belief(successes=4, failures=1, usd=0.01)
    half_life: float = Field(
        default=200, gt=0, description="outcomes of an intent and difficulty after which one counts half; may be inf"
    )


class Bounds(_LearningModel):
    """What no outcome may change, and what a failure costs."""

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
    """What became of one call to one tier: whether its reply was valid, and its price in US dollars."""

    intent: str
    tier: Tier
    success: bool
    cost_usd: float
    difficulty: str = "easy"


@dataclass
class Arm:
    """What is known of one tier for one intent and difficulty: discounted successes, failures and dollars."""

    belief: Belief
    successes: float = 0.0
    failures: float = 0.0
    usd: float = 0.0

    @property
    def law(self) -> tuple[float, float]:
        """The parameters of the Beta law of success."""
        return self.belief.successes + self.successes, self.belief.failures + self.failures

    @property
    def mean(self) -> float:
        """The expected success."""
        good, bad = self.law
        return good / (good + bad)

    @property
    def price(self) -> float:
        """The expected US dollars of a call; the belief counts as one call."""
        return (self.belief.usd + self.usd) / (1.0 + self.successes + self.failures)

    def fade(self, share: float) -> None:
        """Let what was seen count less."""
        self.successes *= share
        self.failures *= share
        self.usd *= share

    def add(self, outcome: TierOutcome) -> None:
        """Count one outcome."""
        self.successes += outcome.success
        self.failures += not outcome.success
        self.usd += outcome.cost_usd

    def quantile(self, share: float) -> float:
        """Return the success below which this share of the law lies."""
        from scipy.special import betaincinv  # a third of a second, hence late

        return float(betaincinv(*self.law, share))


@dataclass(frozen=True)
class LearnedDecision:
    """The way that is taken, why, and what a valid reply was expected to cost by each way that was open (US dollars)."""

    way: Way
    why: str
    expected: Mapping[Way, float] = field(default_factory=dict)


def cost_per_valid(way: Way, success: Mapping[Tier, float], usd: Mapping[Tier, float], failure_usd: float) -> float:
    """Return the expected US dollars for a valid reply by one way.

    An attempt costs its price, and `failure_usd` if it fails; a cascade that fails locally pays for a frontier attempt too.
    What an ask costs is divided by the chance that it ends in a valid reply.
    """
    attempt = {tier: usd[tier] + (1.0 - success[tier]) * failure_usd for tier in TIERS}
    if way == "cascade":
        missed = 1.0 - success["local"]
        cost, chance = attempt["local"] + missed * attempt["frontier"], 1.0 - missed * (1.0 - success["frontier"])
    else:
        cost, chance = attempt[way], success[way]
    return cost / chance if chance > 0 else float("inf")


class Learner:
    """Chooses the way of each call, and learns from outcomes.

    Parameters
    ----------
    prior : Prior
        What is believed before the first outcome, and how fast outcomes are forgotten.
    bounds : Bounds
        What no outcome may change.
    seed : int
        With the key of a call it gives the draws of its decision.
    outcomes : iterable of TierOutcome
        What was recorded before, in order.
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
        """Learn from one outcome; what is known of the other tier fades with it, so it is tried again one day.

        Raises
        ------
        RouterError
            If its price is no price.
        """
        if not 0.0 <= outcome.cost_usd < float("inf"):
            raise RouterError(
                "an outcome needs a price",
                field="cost_usd",
                got=outcome.cost_usd,
                allowed="0 or more US dollars",
                hint="Take the price that the ledger holds for the call.",
            )
        arms = self._arms.setdefault((outcome.intent, outcome.difficulty), self._fresh())
        for arm in arms.values():
            arm.fade(self._fade)
        arms[outcome.tier].add(outcome)

    def find_arm(self, intent: str, difficulty: str, tier: Tier) -> Arm:
        """Return what is known of a tier for an intent and difficulty; not to be changed."""
        return self._arms.get((intent, difficulty), self._fresh())[tier]

    def list_ways(self, intent: str, difficulty: str) -> tuple[tuple[Way, ...], str]:
        """Return the ways that the bounds leave open, and why the others are closed."""
        bounds = self._bounds
        if tier := bounds.pinned.get(intent):
            return (tier,), f"{intent} is pinned to {tier}"
        if difficulty in bounds.hard:
            shown = self.find_arm(intent, difficulty, "local").quantile(bounds.quantile)
            if shown < bounds.floor:
                ways: tuple[Way, ...] = ("frontier", "cascade") if bounds.try_hard_locally else ("frontier",)
                return ways, f"local has shown a success of {shown:.2f} at least, the floor is {bounds.floor:.2f}"
        return WAYS, ""

    def decide(self, key: str, intent: str, difficulty: str = "easy") -> LearnedDecision:
        """Return the way that a call takes; the same seed, key and outcomes give the same way."""
        ways, why = self.list_ways(intent, difficulty)
        if len(ways) == 1:
            return LearnedDecision(ways[0], why)
        success = {tier: self.find_arm(intent, difficulty, tier).quantile(self._draw(key, tier)) for tier in TIERS}
        usd = {tier: self.find_arm(intent, difficulty, tier).price for tier in TIERS}
        expected = {way: cost_per_valid(way, success, usd, self._bounds.failure_usd) for way in ways}
        best = min(ways, key=lambda way: expected[way])
        said = f"a draw of success (local {success['local']:.2f}, frontier {success['frontier']:.2f}) makes {best} cheapest"
        return LearnedDecision(best, f"{why}; {said}" if why else said, expected)

    def _fresh(self) -> dict[Tier, Arm]:
        """Return what is known before any outcome."""
        return {"local": Arm(self._prior.local), "frontier": Arm(self._prior.frontier)}

    def _draw(self, key: str, tier: Tier) -> float:
        """Return a number between 0 and 1 that seed, key and tier determine."""
        return (int(compute_digest([self._seed, key, tier])[:13], 16) + 0.5) / 16**13
