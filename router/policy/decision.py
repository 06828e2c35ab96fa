"""Which model answers a prompt: from signals to a decision, deterministic and in under a millisecond, with its reason in words.

The decision is the record that every call keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ..calls.prices import find_price
from ..calls.replies import measure_depth
from ..calls.task import Sensitivity, Task
from ..classifier import INTENTS
from ..config import ModelSettings, RouterConfig, Tier
from ..errors import NoModel
from .eligibility import Route, bar_reason, list_permitted_models
from .intents import collect_examples, infer_intent

if TYPE_CHECKING:
    from ..classifier.model import Classifier

PROMPT_BYTES_PER_TOKEN = 4.0
"""Of English prose; only for prices told beforehand, never for what is charged."""
MAX_INTENTS_SHOWN = 3
LOWER_TIER_REASON = "of a lower tier: what is hard never goes down"
NEXT_MODEL_REASON = "asked if the one before it fails"
Difficulty = Literal["low", "high"]


@dataclass(frozen=True, kw_only=True)
class RoutingQuestion:
    """What is known of a call before it is made.

    Attributes
    ----------
    prompt : str
        The text that says what is wanted.
    role, intent : str or None
        What the caller says of itself and of what it asks.
    context_tokens : int or None
        Length of all that is sent, where that is more than the prompt.
    reply_tokens : int or None
        Length of the reply at most.
    schema_depth : int
        How deep the reply's JSON schema nests; 0 for text.
    sensitivity, jurisdiction : str
        Where the text may go.
    latency_s : float or None
        Seconds within which the reply is wanted.
    failures : mapping of str to float
        Of each tier, the share of its recent replies to this intent that were of no use.
    attested : frozenset of str
        The models elsewhere that prove, now, what they run.
    """

    prompt: str
    role: str | None = None
    intent: str | None = None
    context_tokens: int | None = None
    reply_tokens: int | None = None
    schema_depth: int = 0
    sensitivity: Sensitivity = "public"
    jurisdiction: str = ""
    latency_s: float | None = None
    failures: Mapping[str, float] = field(default_factory=dict)
    attested: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _CallSize:
    """How much a call takes, in tokens, as far as it can be said beforehand."""

    sent: int
    reply: int


class Decider:
    """Decides which model answers.

    Parameters
    ----------
    config : RouterConfig
        Models, policies and thresholds.
    classifier : Classifier, optional
        Reads texts; by default the one over `routing.embedding`, or where none is named the one that ships, with
        `routing.own_intents` beside our intents.
    """

    def __init__(self, config: RouterConfig, classifier: Classifier | None = None) -> None:
        self.config = config
        self._given = classifier

    @cached_property
    def classifier(self) -> Classifier:
        """What reads texts, loaded when the first text is read."""
        own, base = collect_examples(self.config.routing.own_intents), self._given or self._base()
        if not own:
            return base
        from ..classifier.own_intents import OwnClassifier

        return OwnClassifier(base, own)

    def _base(self) -> Classifier:
        from ..classifier.model import Classifier

        folder = self.config.routing.embedding
        if folder is None:
            return Classifier.shipped()
        from ..classifier.embedding import EmbeddingVectors

        own = EmbeddingVectors(folder)
        return Classifier(own, own.name)

    def decide(self, asked: RoutingQuestion) -> RoutingDecision:
        """Return the decision; the same signals give the same one.

        A text that may not leave is told with no model: whoever would send it refuses (`list_permitted_models`).
        """
        reading = self.classifier.read(asked.prompt)
        intent, shares = infer_intent(asked.role, asked.intent, reading, self.config.routing.roles)
        hard = round(reading.hard, 4)  # what the record says is what decided
        sized = self._call_size(asked)
        tier, reason = self._tier(asked, intent, hard, sized)
        order, closed = self._order(asked, tier, sized)
        model = order[0] if order else None
        if model is not None and self.config.models[model].tier != tier:
            reason = f"{reason}; no {tier} model may be asked, and {model} answers"
        told = sorted(shares.items(), key=lambda each: (-each[1], each[0]))[:MAX_INTENTS_SHOWN]
        signals: dict[str, Any] = {
            "role": asked.role, "declared_intent": asked.intent, "intents": {name: round(share, 4) for name, share in told},
            "hard": hard, "tokens": sized.sent, "reply_tokens": sized.reply,
            "schema_depth": asked.schema_depth, "sensitivity": asked.sensitivity, "jurisdiction": asked.jurisdiction,
            "attested": sorted(asked.attested), "latency_s": asked.latency_s, "failures": dict(asked.failures), "classifier": self.classifier.name,
        }  # fmt: skip
        if own := {name: round(share, 4) for name, share in reading.intents.items() if name not in INTENTS}:
            signals["own_intents"] = own
        others = [self._alternative(name, sized, NEXT_MODEL_REASON) for name in order[1:]]
        others += [self._alternative(name, sized, why) for name, why in closed.items()]
        difficulty: Difficulty = "high" if hard > 0.5 else "low"
        cost = None if model is None else self._cost(model, sized)
        return RoutingDecision(intent, difficulty, tier, model, signals, cost, tuple(others), reason)

    def route(
        self, task: Task, failures: Mapping[str, float] | None = None, attested: frozenset[str] = frozenset()
    ) -> tuple[RoutingDecision, Route]:
        """Return the decision on a task, and the models in the order in which they are asked.

        First the models of its tier, then those above, never one below, unless there is no other: a house with one model
        needs no second. A task is read by its last message: what stands before is the same for all of a role.

        Raises
        ------
        Confidential
            If the task may not leave, and no configured model is where it may go.
        NoModel
            If no configured model can hold it.
        """
        list_permitted_models(task, self.config.models, attested)
        sent = sum(len(message.content.encode(errors="replace")) for message in task.messages)
        decision = self.decide(
            RoutingQuestion(
                prompt=task.messages[-1].content, role=task.role, intent=task.intent,
                context_tokens=int(sent / PROMPT_BYTES_PER_TOKEN) + 1, reply_tokens=task.max_tokens,
                schema_depth=measure_depth(task.schema.model_json_schema()), sensitivity=task.sensitivity,
                jurisdiction=task.jurisdiction, latency_s=task.latency_s, failures=failures or {}, attested=attested,
            )
        )  # fmt: skip
        if decision.model is None:
            raise NoModel(
                f"no configured model can hold this task ({task.role}, {task.intent})", field="models",
                got=f"{decision.signals['tokens'] + task.max_tokens:,} tokens",
                allowed={name: each.context_tokens for name, each in self.config.models.items()},
                hint="Name a model with a larger context, or mend its context_tokens.",
            )  # fmt: skip
        after = tuple(each.model for each in decision.alternatives if each.reason == NEXT_MODEL_REASON)
        return decision, Route(decision.model, after)

    def move_up(self, decision: RoutingDecision, route: Route, why: str) -> tuple[RoutingDecision, Route] | None:
        """Return the decision and the route of the tier above with the reason; None where there is no such model."""
        up = [name for name in (route.name, *route.fallbacks) if self.config.models[name].tier == "frontier"]
        if not up or decision.tier == "frontier":
            return None
        return self._moved(decision, up, why)

    def move_past(
        self, decision: RoutingDecision, route: Route, asked: Collection[str]
    ) -> tuple[RoutingDecision, Route] | None:
        """Return the decision and the route once the replies of some models did not fit; None where no other may be asked."""
        stays = self.config.routing.policy == "direct"
        names = [
            name
            for name in (route.name, *route.fallbacks)
            if name not in asked and not (stays and self.config.models[name].tier != decision.tier)
        ]
        return self._moved(decision, names, f"the replies of {', '.join(asked)} did not fit") if names else None

    def _moved(self, decision: RoutingDecision, names: Sequence[str], why: str) -> tuple[RoutingDecision, Route]:
        """Return the decision and the route that begin with another model."""
        costs: dict[str | None, float | None] = {each.model: each.cost_usd for each in decision.alternatives}
        costs[decision.model] = decision.cost_usd
        first = names[0]
        others = tuple(each for each in decision.alternatives if each.model != first)
        tier = self.config.models[first].tier
        moved = replace(decision, tier=tier, model=first, cost_usd=costs.get(first), alternatives=others, reason=why)
        return moved, Route(first, tuple(names[1:]))

    def move_down(self, decision: RoutingDecision, route: Route, way: str) -> tuple[RoutingDecision, Route] | None:
        """Return the decision and the route of a task that goes to the small tier first, as was learned; None where it has none."""
        if decision.tier == "local":
            return decision, route
        closed = decision.alternatives
        small = [
            each
            for each in closed
            if self.config.models[each.model].tier == "local" and each.reason == LOWER_TIER_REASON
        ]
        if not small or decision.model is None:
            return None
        others = (
            *(replace(each, reason=NEXT_MODEL_REASON) for each in small[1:]),
            Alternative(decision.model, decision.tier, decision.cost_usd, NEXT_MODEL_REASON),
            *(each for each in closed if each not in small),
        )
        why = f"by what became of earlier calls the way {way} gives the cheapest valid reply"
        told = replace(
            decision, tier="local", model=small[0].model, cost_usd=small[0].cost_usd, alternatives=others, reason=why
        )
        return told, Route(told.model or "", tuple(each.model for each in others if each.reason == NEXT_MODEL_REASON))

    def _tier(self, asked: RoutingQuestion, intent: str, hard: float, sized: _CallSize) -> tuple[Tier, str]:
        """Return the tier and the first rule that names it: what the house has fixed, then what makes a prompt hard."""
        routing, roles = self.config.routing, self.config.roles
        fixed: tuple[tuple[str, str], ...] = (
            (f"intent {intent}", routing.intents.get(intent, "auto")),
            (f"role {asked.role}", roles.get(asked.role or "", "auto")),
        )
        for what, tier in fixed:
            if tier != "auto":
                return (
                    "local" if tier == "local" else "frontier"
                ), f"the configuration gives the {what} the tier {tier}"
        failed = asked.failures.get("local", 0.0)
        reasons = (
            (hard >= routing.most_hard, f"a small model may fail: {hard:.0%} by its text, {routing.most_hard:.0%} is the limit"),
            (sized.sent > routing.local_tokens, f"{sized.sent:,} tokens are more than the {routing.local_tokens:,} of routing.local_tokens"),
            (asked.schema_depth > routing.local_depth, f"the reply nests {asked.schema_depth} deep, routing.local_depth is {routing.local_depth}"),
            (failed > routing.most_failures, f"{failed:.0%} of the local tier's replies to {intent} were of no use"),
        )  # fmt: skip
        for holds, reason in reasons:
            if holds:
                return "frontier", reason
        return "local", f"a small model will do: {hard:.0%} hard by its text, below {routing.most_hard:.0%}"

    def _order(self, asked: RoutingQuestion, tier: Tier, sized: _CallSize) -> tuple[list[str], dict[str, str]]:
        """Return the models that may be asked, in order, and why the others may not."""
        closed = {}
        for name, settings in self.config.models.items():
            shut = bar_reason(settings, asked.sensitivity, asked.jurisdiction, name in asked.attested)
            if why := shut or _context_objection(settings, sized):
                closed[name] = why
        opened = {name: each for name, each in self.config.models.items() if name not in closed}
        same = [name for name, each in opened.items() if each.tier == tier]
        if asked.latency_s is not None:  # the first that is fast enough, then the others, none is left out
            same.sort(key=lambda name: self._too_slow(name, asked, sized))
        above = [name for name, each in opened.items() if each.tier == "frontier" != tier]
        below = [] if same + above else list(opened)
        closed |= {name: LOWER_TIER_REASON for name in opened if name not in {*same, *above, *below}}
        return same + above + below, closed

    def _too_slow(self, name: str, asked: RoutingQuestion, sized: _CallSize) -> bool:
        speed = self.config.models[name].tokens_per_second
        return speed is not None and asked.latency_s is not None and sized.reply / speed > asked.latency_s

    def _call_size(self, asked: RoutingQuestion) -> _CallSize:
        told = int(len(asked.prompt.encode(errors="replace")) / PROMPT_BYTES_PER_TOKEN) + 1
        reply = self.config.routing.reply_tokens if asked.reply_tokens is None else asked.reply_tokens
        return _CallSize(asked.context_tokens or told, reply)

    def _cost(self, name: str, sized: _CallSize) -> float | None:
        price = self._prices[name]
        return None if price is None else sized.sent * price[0] + sized.reply * price[1]

    @cached_property
    def _prices(self) -> dict[str, tuple[float, float] | None]:
        return {name: find_price(settings) for name, settings in self.config.models.items()}

    def _alternative(self, name: str, sized: _CallSize, reason: str) -> Alternative:
        return Alternative(name, self.config.models[name].tier, self._cost(name, sized), reason)


def _context_objection(settings: ModelSettings, sized: _CallSize) -> str:
    """Return why a model cannot hold a call, empty where it can or where its context is not told."""
    wanted = sized.sent + sized.reply
    if settings.context_tokens is None or wanted <= settings.context_tokens:
        return ""
    return f"{wanted:,} tokens do not fit its {settings.context_tokens:,}"


@dataclass(frozen=True)
class Alternative:
    """A model that was not chosen: what it would have cost in US dollars, and why it was not."""

    model: str
    tier: Tier
    cost_usd: float | None
    reason: str


@dataclass(frozen=True)
class RoutingDecision:
    """Which model answers a prompt.

    Attributes
    ----------
    intent : str
        What is wanted.
    difficulty : "low" or "high"
        Whether a small model would more likely do it right than wrong.
    tier : "local" or "frontier"
        The one that is asked first: cautious, so that a prompt that may be hard goes up.
    model : str or None
        The configured name that is asked first; None where no model is set up.
    signals : mapping
        All that the decision rests on; the same signals give the same decision.
    cost_usd : float or None
        Of the call as it is expected, US dollars; None where the price is not known.
    alternatives : tuple of Alternative
        Every other model, in the order in which they would be asked; those that may not be asked come last.
    reason : str
        The rule that decided, in a sentence.
    """

    intent: str
    difficulty: Difficulty
    tier: Tier
    model: str | None
    signals: Mapping[str, Any]
    cost_usd: float | None
    alternatives: tuple[Alternative, ...]
    reason: str

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)
