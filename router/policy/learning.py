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
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...ledger import compute_digest
from ..config import LearningSettings, Tier
from ..errors import RouterError

Way: TypeAlias = Literal["frontier", "local", "cascade"]
WAYS: tuple[Way, ...] = ("frontier", "local", "cascade")
TIERS: tuple[Tier, ...] = ("local", "frontier")
BELIEFS: Mapping[Tier, tuple[float, float, float]] = {"local": (1.0, 1.0, 0.0), "frontier": (4.0, 1.0, 0.01)}
"""Pseudo-counts of successes and failures before any outcome, and the US dollars of a call."""
FLOOR_QUANTILE = 0.05
"""Share of the distribution of success below the value that must reach the floor."""
FAILURE_USD = 0.001
"""US dollars that an invalid reply costs beside its price."""


@dataclass(frozen=True)
class TierOutcome:
    """The outcome of one call to one tier: whether its reply was valid, and its price in US dollars."""

    intent: str
    tier: Tier
    success: bool
    cost_usd: float
    difficulty: str = "low"


@dataclass
class Arm:
    """One tier for one intent and difficulty: discounted successes, failures and US dollars."""

    tier: Tier
    successes: float = 0.0
    failures: float = 0.0
    usd: float = 0.0

    @property
    def law(self) -> tuple[float, float]:
        """The parameters (alpha, beta) of the Beta distribution of success."""
        good, bad, _ = BELIEFS[self.tier]
        return good + self.successes, bad + self.failures

    @property
    def price(self) -> float:
        """The expected US dollars of a call; the belief counts as one call."""
        return (BELIEFS[self.tier][2] + self.usd) / (1.0 + self.successes + self.failures)

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
    """The chosen way, and the reason."""

    way: Way
    why: str


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
    settings : LearningSettings
        The limits that no outcome may change, and the half-life of outcomes.
    seed : int
        Determines, with the key of a call, the draws of its decision.
    outcomes : iterable of TierOutcome
        The recorded outcomes, in order.
    failure_usd : float
        US dollars that an invalid reply costs beside its price.
    """

    def __init__(
        self,
        settings: LearningSettings,
        seed: int,
        outcomes: Iterable[TierOutcome] = (),
        failure_usd: float = FAILURE_USD,
    ) -> None:
        self._settings, self._seed, self._failure_usd = settings, seed, failure_usd
        self._fade = 0.5 ** (1.0 / settings.half_life)
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
        arms = self._arms.setdefault((outcome.intent, outcome.difficulty), {tier: Arm(tier) for tier in TIERS})
        for arm in arms.values():
            arm.fade(self._fade)
        arms[outcome.tier].add(outcome)

    def find_arm(self, intent: str, difficulty: str, tier: Tier) -> Arm:
        """Return the arm of a tier for an intent and difficulty; callers must not change it."""
        arms = self._arms.get((intent, difficulty))
        return arms[tier] if arms else Arm(tier)

    def list_ways(self, intent: str, difficulty: str) -> tuple[tuple[Way, ...], str]:
        """Return the ways that the bounds allow, and the reason against the others."""
        floor = self._settings.floor
        if difficulty == "high":
            proven = self.find_arm(intent, difficulty, "local").quantile(FLOOR_QUANTILE)
            if proven < floor:
                ways: tuple[Way, ...] = ("frontier", "cascade") if self._settings.try_hard_locally else ("frontier",)
                return ways, f"local has shown a success of {proven:.2f} at least, the floor is {floor:.2f}"
        return WAYS, ""

    def decide(self, key: str, intent: str, difficulty: str = "low") -> LearnedDecision:
        """Return the way of a call; the same seed, key and outcomes give the same way."""
        ways, why = self.list_ways(intent, difficulty)
        if len(ways) == 1:
            return LearnedDecision(ways[0], why)
        success = {tier: self.find_arm(intent, difficulty, tier).quantile(self._draw(key, tier)) for tier in TIERS}
        usd = {tier: self.find_arm(intent, difficulty, tier).price for tier in TIERS}
        best = min(ways, key=lambda way: cost_per_valid(way, success, usd, self._failure_usd))
        draws = f"local {success['local']:.2f}, frontier {success['frontier']:.2f}"
        reason = f"a draw of success ({draws}) makes {best} cheapest"
        return LearnedDecision(best, f"{why}; {reason}" if why else reason)

    def _draw(self, key: str, tier: Tier) -> float:
        """Return a number between 0 and 1 (both excluded) from seed, key and tier."""
        return (int(compute_digest([self._seed, key, tier])[:13], 16) + 0.5) / 16**13
