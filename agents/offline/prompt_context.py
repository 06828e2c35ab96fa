"""The offline researcher's view of a prompt: the JSON context as data; no instruction in it is followed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from ..config import AgentsConfig
from ..errors import AgentError

Json = dict[str, Any]

DEFAULT_SURVEY_SHARE: float = AgentsConfig().survey_share

TASKS = ("idea", "mechanism", "factor", "repair", "critique", "summary")


@dataclass(frozen=True)
class ShownFormula:
    """One formula that a prompt shows, with its figures of the search window.

    Attributes
    ----------
    id : str
        The factor's id; empty for drafts and refused formulas.
    t_stat, rank_ic : float
        Newey-West t, and RankIC (of a draft: its forecast); 0 where missing.
    added_t : float
        Of a leader: its incremental t beside the other leaders.
    weaknesses : tuple of str
        Codes, the worst first; in a critique each with its message after a colon.
    parent : str or None
        The factor that a draft changes; None where the prompt does not say.
    intent : str
        The changes that a draft says it makes.
    mechanism, hypothesis : str
        The name of the mechanism that it tests, and the key of the hypothesis.
    followed : int
        Hypotheses that follow it up.
    neighbours : tuple of str
        Ids of formulas that are like it.
    rank_ic_by_horizon : mapping
        RankIC by horizon in trading days.
    """

    id: str
    text: str
    t_stat: float = 0.0
    rank_ic: float = 0.0
    added_t: float = 0.0
    weaknesses: tuple[str, ...] = ()
    parent: str | None = None
    intent: str = ""
    mechanism: str = ""
    hypothesis: str = ""
    followed: int = 0
    neighbours: tuple[str, ...] = ()
    rank_ic_by_horizon: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, row: Json) -> ShownFormula:
        """Return the formula of one row of a prompt."""
        words = {name: str(row.get(name) or "") for name in ("id", "text", "intent", "mechanism", "hypothesis")}
        curve = {int(days): float(value) for days, value in (row.get("decay") or {}).items() if value is not None}
        return cls(
            **words,
            t_stat=float(row.get("t") or 0.0),
            rank_ic=float(row.get("rank_ic") or 0.0),
            added_t=float(row.get("beside") or 0.0),
            weaknesses=tuple(str(code) for code in row.get("weaknesses") or []),
            parent=str(row["parent"]) if "parent" in row else None,
            followed=int(row.get("followed") or 0),
            neighbours=tuple(str(like["id"]) for like in row.get("kin") or [] if isinstance(like, dict)),
            rank_ic_by_horizon=curve,
        )


@dataclass(frozen=True)
class ShownHypothesis:
    """A hypothesis on record, or the one that formulas are asked for; `direction` 1 or -1.

    With `either_way` it is a survey, which states no mechanism.
    """

    id: str
    mechanism: str
    statement: str
    direction: int
    fields: tuple[str, ...]
    either_way: bool = False

    @classmethod
    def parse(cls, row: Json) -> ShownHypothesis:
        """Return the hypothesis of one row of a prompt."""
        words = {name: str(row.get(name) or "") for name in ("id", "mechanism", "statement")}
        fields = tuple(str(name) for name in row.get("fields", ()))
        either_way = bool(row.get("either_way"))
        return cls(**words, direction=int(row.get("direction", 1)), fields=fields, either_way=either_way)


@dataclass(frozen=True)
class DecayingFactor:
    """A decaying factor of the library; `since` is the day as text."""

    id: str
    mechanism: str
    since: str


@dataclass(frozen=True)
class PromptRequest:
    """The request of a prompt.

    Attributes
    ----------
    count : int
        Answers, at least 1.
    step : int
        The step of the branch, 0 for the first.
    spent_share : float
        Share of the evaluations that is spent, 0 to 1; 1 if not given.
    surveying : bool
        Whether the search is still exploring.
    survey_share : float
        Share of fresh hypotheses that are surveys.
    unused_only : bool
        Whether every hypothesis must name a mechanism that is not on record.
    python, directed : bool
        Whether code is allowed, and whether changes that a critique requests are wanted.
    """

    count: int
    step: int
    spent_share: float
    surveying: bool
    python: bool
    directed: bool
    survey_share: float
    unused_only: bool

    @classmethod
    def parse(cls, body: Json) -> PromptRequest:
        """Return the request of a prompt."""
        flags = (bool(body.get("surveying")), bool(body.get("python")), body.get("directed") is not False)
        count, step = max(1, int(body.get("count", 1))), int(body.get("step", 0))
        mix = (float(body.get("survey_share", DEFAULT_SURVEY_SHARE)), bool(body.get("unused_only")))
        return cls(count, step, float(body.get("spent", 1.0)), *flags, *mix)


@dataclass(frozen=True)
class Context:
    """One prompt's context, with the random generator of this reply."""

    task: str
    body: Json
    rng: np.random.Generator

    def part(self, name: str) -> Json:
        """Return one object of the context, empty where it is missing."""
        value = self.body.get(name)
        return value if isinstance(value, dict) else {}

    def rows(self, part: str, name: str) -> list[Any]:
        """Return one list of the context, empty where it is missing."""
        value = self.part(part).get(name)
        return value if isinstance(value, list) else []

    def formulas(self, part: str, name: str) -> list[ShownFormula]:
        """Return the formulas of one list of the context."""
        return [ShownFormula.parse(row) for row in self.rows(part, name) if isinstance(row, dict)]

    @cached_property
    def hypotheses(self) -> list[ShownHypothesis]:
        """The hypotheses on record."""
        rows = self.rows("record", "hypotheses")
        return [ShownHypothesis.parse(row) for row in rows if isinstance(row, dict)]

    @cached_property
    def hypothesis(self) -> ShownHypothesis:
        """The hypothesis that formulas are asked for."""
        return ShownHypothesis.parse(self.part("hypothesis"))

    @cached_property
    def request(self) -> PromptRequest:
        """The prompt's request."""
        return PromptRequest.parse(self.part("request"))

    @property
    def horizon_days(self) -> int:
        """Trading days over which factors are scored."""
        return int(self.part("market").get("horizon_days", 5))

    @property
    def critique(self) -> Json:
        """The critique that the formulas answer; empty if there is none."""
        critique = self.part("branch").get("critique")
        return critique if isinstance(critique, dict) else {}

    @property
    def decaying(self) -> list[DecayingFactor]:
        """The decaying factors of the library that have an id."""
        rows = [row for row in self.rows("record", "decaying") if isinstance(row, dict) and row.get("id")]
        return [DecayingFactor(*(str(row.get(name, "")) for name in ("id", "mechanism", "since"))) for row in rows]

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of this market."""
        return tuple(name for name in self.rows("language", "fields") if isinstance(name, str))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groupings of this market."""
        return tuple(name for name in self.rows("language", "groups") if isinstance(name, str))


def read_context(messages: Sequence[Mapping[str, Any]], seed: int) -> Context:
    """Return the context of a conversation; equal messages and seed give an equal generator.

    The context is the first user message that is one. A later message asks for a repair of the reply; it changes the
    generator, so that the reply is drawn anew.
    """
    texts = [str(message.get("content") or "") for message in messages if message.get("role") == "user"]
    for text in texts:
        body = _parse_object(text)
        if body.get("task") in TASKS:
            entropy = sha256(json.dumps([seed, list(texts)], ensure_ascii=True).encode()).digest()
            rng = np.random.default_rng(np.frombuffer(entropy, dtype=np.uint32).tolist())
            return Context(str(body["task"]), body, rng)
    raise AgentError(
        "the offline researcher reads only the prompts of this room",
        field="messages",
        allowed=list(TASKS),
        hint="its context is one JSON object with a task; for other prompts configure a language model",
        code="research",
    )


def _parse_object(text: str) -> Json:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
