"""The offline researcher and decaying factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphaloom.agents.offline.ideas import propose_ideas
from alphaloom.agents.offline.mechanisms import load_mechanisms
from alphaloom.agents.offline.prompt_context import Context
from alphaloom.agents.schemas import Ideas

KNOWN = load_mechanisms()[0].id
ROWS = [
    {"id": "f00000000000000aa", "text": "rank(close)", "mechanism": KNOWN, "hypothesis": "h", "since": "2020-03-31"},
    {"id": "f00000000000000bb", "text": "rank(open)", "mechanism": KNOWN, "hypothesis": "h", "since": "2019-03-31"},
]


def ideas(decaying: list[dict[str, Any]], **record: Any) -> list[dict[str, Any]]:
    fields = ["open", "high", "low", "close", "volume", "returns", "vwap", "amount", "cap"]
    body = {
        "market": {"horizon_days": 5, "fields": fields},
        "language": {"fields": fields, "groups": ["sector"]},
        "record": {"decaying": decaying, **record},
        "request": {"count": 4, "round": 1},
    }
    reply = propose_ideas(Context("idea", body, np.random.default_rng(0)))
    return [hypothesis.model_dump() for hypothesis in Ideas.model_validate(reply).hypotheses]


def heirs(found: list[dict[str, Any]]) -> list[str]:
    return [idea["succeeds"] for idea in found if idea["succeeds"]]


def test_the_longest_decaying_is_taken_up_first_and_once() -> None:
    found = ideas(ROWS)
    assert len(found) == 4
    assert heirs(found) == ["f00000000000000bb"]
    (first,) = [idea for idea in found if idea["succeeds"]]
    assert "f00000000000000bb" in first["statement"]
    assert first["mechanism"] == KNOWN
    again = ideas(ROWS, hypotheses=[{"id": "r01/h00", **first}])
    assert heirs(again) == ["f00000000000000aa"]
    refused = ideas(ROWS[1:], refused=[{"mechanism": KNOWN, "statement": first["statement"], "why": "said before"}])
    assert heirs(refused) == []


def test_a_mechanism_that_it_does_not_know_has_no_successor() -> None:
    assert heirs(ideas([{**ROWS[0], "mechanism": "moon phases"}])) == []
    assert heirs(ideas([])) == []
