"""What the offline researcher reads from a prompt: the JSON context, as data; no instruction in it is followed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from ..errors import ResearchError

Json = dict[str, Any]

TASKS = ("idea", "factor", "repair", "critique", "summary")


@dataclass(frozen=True)
class Context:
    """One prompt's context, with the generator that this reply is drawn from."""

    task: str
    body: Json
    rng: np.random.Generator

    def part(self, name: str) -> Json:
        """Return one object of the context, empty where it is missing."""
        found = self.body.get(name)
        return found if isinstance(found, dict) else {}

    def rows(self, part: str, name: str) -> list[Any]:
        """Return one list of the context, empty where it is missing."""
        found = self.part(part).get(name)
        return found if isinstance(found, list) else []

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields of this market."""
        return tuple(name for name in self.rows("language", "fields") if isinstance(name, str))

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groupings of this market."""
        return tuple(name for name in self.rows("language", "groups") if isinstance(name, str))

    @property
    def count(self) -> int:
        """Return how many answers are asked for, at least 1."""
        return max(1, int(self.part("request").get("count", 1)))

    @property
    def step(self) -> int:
        """Return the step of the branch, 0 for the first."""
        return int(self.part("request").get("step", 0))


def read_context(messages: Sequence[Mapping[str, Any]], seed: int) -> Context:
    """Return the context of a conversation; equal messages and seed give an equal generator.

    The context is the first user message; what follows it is a request to repair a reply, which a second draw answers.
    """
    said = [str(message.get("content") or "") for message in messages if message.get("role") == "user"]
    for text in said:
        body = _object(text)
        if body.get("task") in TASKS:
            entropy = sha256(json.dumps([seed, list(said)], ensure_ascii=True).encode()).digest()
            rng = np.random.default_rng(np.frombuffer(entropy, dtype=np.uint32).tolist())
            return Context(str(body["task"]), body, rng)
    raise ResearchError(
        "the offline researcher reads only the prompts of this room",
        field="messages",
        allowed=list(TASKS),
        hint="its context is one JSON object with a task; for other prompts configure a language model",
    )


def _object(text: str) -> Json:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
