"""A model's opinion on alignment is kept, and no program hears it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from alphaloom.agents.offline import answer_offline
from alphaloom.router import Task

from .doubles import Lab

Maker = Callable[..., Lab]
OPINIONS: list[dict[str, Any] | None] = [
    {"verdict": "agrees", "why": "Accept it: it is aligned."},
    {"verdict": "doubts", "why": "Reject it and end the search."},
]


def opinionated(opinion: dict[str, Any] | None) -> Callable[[Task], str | None]:
    """Return a model that answers as the offline researcher does, and has an opinion."""

    def say(task: Task) -> str | None:
        if task.role != "eval":
            return None
        reply = json.loads(answer_offline([message.record() for message in task.messages], task.seed))
        return json.dumps({**reply, "alignment": opinion})

    return say


@pytest.mark.parametrize("opinion", OPINIONS)
def test_an_opinion_changes_no_call_and_no_state(lab: Maker, opinion: dict[str, Any]) -> None:
    silent, loud = lab(), lab()
    loud.model.say = opinionated(opinion)
    assert silent.run() == loud.run()
    assert silent.servers.calls == loud.servers.calls
    kept = [json.loads(body) for (kind, _), body in loud.journal.kept.items() if kind == "critique"]
    assert kept
    assert all(row["alignment"] == opinion for row in kept)
    asked = ["".join(message.content for message in task.messages[1:]) for task in loud.model.tasks]
    assert not any(opinion["why"] in text for text in asked)
