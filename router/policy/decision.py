"""Which model answers a prompt: signals to a decision with its reason, deterministic and in under a millisecond.

Every call records its decision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ..calls.prices import find_price
from ..calls.replies import measure_depth
from ..calls.task import Sensitivity, Task, describe_schema
from ..classifier import INTENTS
from ..classifier.blocks import find_request
from ..classifier.outcomes import AskedQuestion, OutcomeModel
from ..config import ModelSettings, RouterConfig, Tier
from ..errors import NoModel
from .eligibility import Route, bar_reason, require_permitted
from .intents import collect_examples, infer_intent

if TYPE_CHECKING:
    from ..classifier.model import Classifier
    from ..classifier.prompt_reading import PromptReading

PROMPT_BYTES_PER_TOKEN = 4.0
"""Bytes per token of English prose. Used for estimates before a call, never for charges."""
MAX_INTENTS_SHOWN = 3
LOWER_TIER_REASON = "of a lower tier: what is hard never goes down"
NEXT_MODEL_REASON = "asked if the one before it fails"
Difficulty = Literal["low", "high"]
MAX_CHECKED_HARD = 0.9
"""Chance of failure from which a small model is not asked first where its reply is checked: it costs time too."""


@dataclass(frozen=True, kw_only=True)
class RoutingQuestion:
    """The signals of a call before it is made.

    Attributes
    ----------
    prompt : str
        The text of the request.
    role, intent : str or None
        The caller's role and its declared intent.
    context_tokens : int or None
        Tokens of all messages, where they are more than the prompt.
    reply_tokens : int or None
        Maximum tokens of the reply.
    schema_depth : int
        Nesting depth of the reply's JSON schema; 0 for text.
    sensitivity, jurisdiction : str
        Limits on where the text may go.
    refused : int
        Earlier refusals of the same piece of work.
    attested : frozenset of str
        The attested models whose proof holds now.
    checked : bool
        Whether the asker checks a small model's reply: one of no use is asked of the tier above.
    """

    prompt: str
    role: str | None = None
    intent: str | None = None
    context_tokens: int | None = None
    reply_tokens: int | None = None
    schema_depth: int = 0
    sensitivity: Sensitivity = "public"
    jurisdiction: str = ""
    refused: int = 0
    attested: frozenset[str] = frozenset()
    checked: bool = False


@dataclass(frozen=True)
class _CallSize:
    """Estimated tokens of a call, prompt and reply."""

    sent: int
    reply: int


@dataclass(frozen=True)
class _Judgement:
    """How likely a small model fails, as it is recorded; by which signs, and the name of what read them."""

    hard: float
    by: str
    classifier: str


class Decider:
    """Decides which model answers.

    Parameters
    ----------
    config : RouterConfig
        Models, policies and thresholds.
    classifier : Classifier, optional
        Reads prompts. By default the classifier over `routing.embedding`, else the built-in one, with
        `routing.own_intents` beside the built-in intents.
    """

    def __init__(self, config: RouterConfig, classifier: Classifier | None = None) -> None:
        self.config = config
        self._given = classifier

    @cached_property
    def classifier(self) -> Classifier:
        """The classifier, loaded with the first prompt."""
        own, base = collect_examples(self.config.routing.own_intents), self._given or self._load_base()
        if not own:
            return base
        from ..classifier.own_intents import OwnClassifier

        return OwnClassifier(base, own)

    def _load_base(self) -> Classifier:
        from ..classifier.model import Classifier

        folder = self.config.routing.embedding
        if folder is None:
            return Classifier.shipped()
        from ..classifier.embedding import EmbeddingVectors

        vectors = EmbeddingVectors(folder)
        return Classifier(vectors, vectors.name)

    def decide(self, question: RoutingQuestion) -> RoutingDecision:
        """Return the decision; the same signals give the same one.

        Where no model may see the text, the decision has no model; the sender refuses (`require_permitted`).
        """
        reading = self.classifier.read(question.prompt)
        size = self._measure_call(question)
        judged = self._judge(question, reading, size)
        intent, shares = infer_intent(question.role, question.intent, reading, self.config.routing.roles)
        tier, reason = self._choose_tier(question, intent, judged, size)
        order, closed = self._order_models(question, tier, size)
        model = order[0] if order else None
        if model is not None and self.config.models[model].tier != tier:
            reason = f"{reason}; no {tier} model may be asked, and {model} answers"
        signals = self._describe_signals(question, judged, shares, size)
        if user_intents := {name: round(share, 4) for name, share in reading.intents.items() if name not in INTENTS}:
            signals["own_intents"] = user_intents
        others = [self._build_alternative(name, size, NEXT_MODEL_REASON) for name in order[1:]]
        others += [self._build_alternative(name, size, why) for name, why in closed.items()]
        difficulty: Difficulty = "high" if judged.hard > 0.5 else "low"
        cost = None if model is None else self._estimate_cost(model, size)
        return RoutingDecision(intent, difficulty, tier, model, signals, cost, tuple(others), reason, tier)

    def _describe_signals(
        self, question: RoutingQuestion, judged: _Judgement, shares: Mapping[str, float], size: _CallSize
    ) -> dict[str, Any]:
        likeliest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))[:MAX_INTENTS_SHOWN]
        return {
            "role": question.role,
            "declared_intent": question.intent,
            "intents": {name: round(share, 4) for name, share in likeliest},
            "hard": judged.hard,
            "tokens": size.sent,
            "reply_tokens": size.reply,
            "schema_depth": question.schema_depth,
            "refused": question.refused,
            "sensitivity": question.sensitivity,
            "jurisdiction": question.jurisdiction,
            "attested": sorted(question.attested),
            "classifier": judged.classifier,
            **({"checked": True} if question.checked else {}),
        }

    def route(self, task: Task, attested: frozenset[str] = frozenset()) -> tuple[RoutingDecision, Route]:
        """Return the decision on a task, and the models in the order in which they are asked.

        The models of its tier come first, then those above. A model below is asked only where there is no other, as in
        a configuration with one model. A question of our own agents is judged by what became of such questions
        (`classifier.outcomes`), any other by its last message that is more than data.

        Raises
        ------
        Confidential
            If no configured model may see the task.
        NoModel
            If the task fits the context of no configured model.
        """
        require_permitted(task, self.config.models, attested)
        sent = sum(len(message.content.encode(errors="replace")) for message in task.messages)
        decision = self.decide(
            RoutingQuestion(
                prompt=find_request([message.content for message in task.messages]), role=task.role, intent=task.intent,
                context_tokens=int(sent / PROMPT_BYTES_PER_TOKEN) + 1, reply_tokens=task.max_tokens,
                schema_depth=measure_depth(describe_schema(task.schema)), sensitivity=task.sensitivity,
                jurisdiction=task.jurisdiction, refused=task.refused, attested=attested,
                checked=task.check is not None and self.config.routing.policy != "direct",
            )
        )  # fmt: skip  # a table
        if decision.model is None:
            raise NoModel(
                f"no configured model can hold this task ({task.role}, {task.intent})",
                field="models",
                got=f"{decision.signals['tokens'] + task.max_tokens:,} tokens",
                allowed={name: settings.context_tokens for name, settings in self.config.models.items()},
                hint="Name a model with a larger context, or mend its context_tokens.",
            )
        after = tuple(
            alternative.model for alternative in decision.alternatives if alternative.reason == NEXT_MODEL_REASON
        )
        return decision, Route(decision.model, after)

    def move_up(self, decision: RoutingDecision, route: Route, why: str) -> tuple[RoutingDecision, Route] | None:
        """Return the decision and the route of the tier above; None where it has no model."""
        up = [name for name in (route.name, *route.fallbacks) if self.config.models[name].tier == "frontier"]
        if not up or decision.tier == "frontier":
            return None
        return self._move(decision, up, why)

    def move_past(
        self, decision: RoutingDecision, route: Route, tried: Collection[str]
    ) -> tuple[RoutingDecision, Route] | None:
        """Return the decision and the route without the models already tried; None where no other may be asked."""
        stays = self.config.routing.policy == "direct"
        names = [
            name
            for name in (route.name, *route.fallbacks)
            if name not in tried and not (stays and self.config.models[name].tier != decision.tier)
        ]
        return self._move(decision, names, f"the replies of {', '.join(tried)} did not fit") if names else None

    def _move(self, decision: RoutingDecision, names: Sequence[str], why: str) -> tuple[RoutingDecision, Route]:
        """Return the decision and the route that begin with the first of these models."""
        costs: dict[str | None, float | None] = {
            alternative.model: alternative.cost_usd for alternative in decision.alternatives
        }
        costs[decision.model] = decision.cost_usd
        first = names[0]
        others = tuple(alternative for alternative in decision.alternatives if alternative.model != first)
        tier = self.config.models[first].tier
        moved = replace(decision, tier=tier, model=first, cost_usd=costs.get(first), alternatives=others, reason=why)
        return moved, Route(first, tuple(names[1:]))

    def move_down(self, decision: RoutingDecision, route: Route, way: str) -> tuple[RoutingDecision, Route] | None:
        """Return the decision and the route that begin in the local tier, as learned; None where it has no model."""
        if decision.tier == "local":
            return decision, route
        listed = decision.alternatives
        small = [
            alternative
            for alternative in listed
            if self.config.models[alternative.model].tier == "local" and alternative.reason == LOWER_TIER_REASON
        ]
        if not small or decision.model is None:
            return None
        others = (
            *(replace(alternative, reason=NEXT_MODEL_REASON) for alternative in small[1:]),
            Alternative(decision.model, decision.tier, decision.cost_usd, NEXT_MODEL_REASON),
            *(alternative for alternative in listed if alternative not in small),
        )
        why = f"by what became of earlier calls the way {way} gives the cheapest valid reply"
        moved = replace(
            decision, tier="local", model=small[0].model, cost_usd=small[0].cost_usd, alternatives=others, reason=why,
            first_tier="local",
        )  # fmt: skip  # a table
        return moved, Route(
            moved.model or "",
            tuple(alternative.model for alternative in others if alternative.reason == NEXT_MODEL_REASON),
        )

    @cached_property
    def _outcomes(self) -> OutcomeModel:
        return OutcomeModel.shipped()

    def _judge(self, question: RoutingQuestion, reading: PromptReading, size: _CallSize) -> _Judgement:
        """Judge a question of our own agents by the outcomes of such questions, and any other by its text."""
        asked = AskedQuestion(question.role or "", question.intent or "", size.sent, question.refused)
        hard = self._outcomes.read(asked)
        if hard is None:
            return _Judgement(round(reading.hard, 4), "its text", self.classifier.name)
        return _Judgement(round(hard, 4), "what became of such questions", self._outcomes.name)

    def _choose_tier(
        self, question: RoutingQuestion, intent: str, judged: _Judgement, size: _CallSize
    ) -> tuple[Tier, str]:
        """Return the tier and the rule that chose it: the configuration first, then the signs of a hard prompt."""
        routing, roles, hard, by = self.config.routing, self.config.roles, judged.hard, judged.by
        fixed: tuple[tuple[str, str], ...] = (
            (f"intent {intent}", routing.intents.get(intent, "auto")),
            (f"role {question.role}", roles.get(question.role or "", "auto")),
        )
        for what, tier in fixed:
            if tier != "auto":
                chosen: Tier = "local" if tier == "local" else "frontier"
                return chosen, f"the configuration gives the {what} the tier {tier}"
        limit = self._find_limit(question, size)
        reasons = (
            (hard >= limit, f"a small model may fail: {hard:.0%} by {by}, {limit:.0%} is the limit"),
            (
                size.sent > routing.local_tokens,
                f"{size.sent:,} tokens are more than the {routing.local_tokens:,} of routing.local_tokens",
            ),
            (
                question.schema_depth > routing.local_depth,
                f"the reply nests {question.schema_depth} deep, routing.local_depth is {routing.local_depth}",
            ),
        )
        for holds, reason in reasons:
            if holds:
                return "frontier", reason
        if hard >= routing.most_hard:
            return "local", f"its reply is checked, and asked above if it is of no use: {hard:.0%} hard by {by}"
        return "local", f"a small model will do: {hard:.0%} hard by {by}, below {limit:.0%}"

    def _find_limit(self, question: RoutingQuestion, size: _CallSize) -> float:
        """Return the chance of failure from which a small model is not asked first.

        Where its reply is checked, it is asked as long as that is cheaper on average: a reply of no use costs its call
        beside the one above.
        """
        if not question.checked:
            return self.config.routing.most_hard
        order, _ = self._order_models(question, "local", size)
        first = {self.config.models[name].tier: self._estimate_cost(name, size) for name in reversed(order)}
        cheap, dear = first.get("local"), first.get("frontier")
        if cheap is None or not dear:
            return self.config.routing.most_hard
        return max(self.config.routing.most_hard, min(MAX_CHECKED_HARD, 1.0 - cheap / dear))

    def _order_models(self, question: RoutingQuestion, tier: Tier, size: _CallSize) -> tuple[list[str], dict[str, str]]:
        """Return the models that may be asked, in order, and the reasons against the others."""
        closed = {}
        for name, settings in self.config.models.items():
            shut = bar_reason(settings, question.sensitivity, question.jurisdiction, name in question.attested)
            if why := shut or _explain_misfit(settings, size):
                closed[name] = why
        opened = {name: settings for name, settings in self.config.models.items() if name not in closed}
        same = [name for name, settings in opened.items() if settings.tier == tier]
        above = [name for name, settings in opened.items() if settings.tier == "frontier" != tier]
        below = [] if same + above else list(opened)
        closed |= {name: LOWER_TIER_REASON for name in opened if name not in {*same, *above, *below}}
        return same + above + below, closed

    def _measure_call(self, question: RoutingQuestion) -> _CallSize:
        prompt_tokens = int(len(question.prompt.encode(errors="replace")) / PROMPT_BYTES_PER_TOKEN) + 1
        reply = self.config.routing.reply_tokens if question.reply_tokens is None else question.reply_tokens
        return _CallSize(question.context_tokens or prompt_tokens, reply)

    def _estimate_cost(self, name: str, size: _CallSize) -> float | None:
        price = self._prices[name]
        return None if price is None else size.sent * price[0] + size.reply * price[1]

    @cached_property
    def _prices(self) -> dict[str, tuple[float, float] | None]:
        return {name: find_price(settings) for name, settings in self.config.models.items()}

    def _build_alternative(self, name: str, size: _CallSize, reason: str) -> Alternative:
        return Alternative(name, self.config.models[name].tier, self._estimate_cost(name, size), reason)


def _explain_misfit(settings: ModelSettings, size: _CallSize) -> str:
    """Return why a call does not fit a model's context; empty where it fits or the context is not configured."""
    needed = size.sent + size.reply
    if settings.context_tokens is None or needed <= settings.context_tokens:
        return ""
    return f"{needed:,} tokens do not fit its {settings.context_tokens:,}"


@dataclass(frozen=True)
class Alternative:
    """A model that was not chosen: its estimated cost in US dollars, and the reason."""

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
        The intent of the prompt.
    difficulty : "low" or "high"
        "low" where a small model is more likely right than wrong.
    tier : "local" or "frontier"
        The tier that is asked first: frontier already where a prompt may be hard.
    model : str or None
        The configured name of the model that is asked first; None where no model may be asked.
    signals : mapping
        All inputs of the decision; the same signals give the same decision.
    cost_usd : float or None
        Estimated cost of the call, US dollars; None where the price is not known.
    alternatives : tuple of Alternative
        Every other model in the order of the route; those that may not be asked come last.
    reason : str
        The rule that decided, in a sentence.
    first_tier : "local" or "frontier"
        The tier at which the task began: local where it came up since replies there were of no use.
    """

    intent: str
    difficulty: Difficulty
    tier: Tier
    model: str | None
    signals: Mapping[str, Any]
    cost_usd: float | None
    alternatives: tuple[Alternative, ...]
    reason: str
    first_tier: Tier

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)
