"""Python factors that the offline researcher writes: only where they are allowed, and only what the gate could take."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from alphaloom.agents import load_prompt
from alphaloom.agents.offline import answer_offline
from alphaloom.agents.offline.mechanisms import Code, find_codes, find_mechanism, load_mechanisms
from alphaloom.agents.prompt import load_prompts
from alphaloom.factors import parse
from alphaloom.factors.python import lint_code

KNOWN: dict[str, Code] = {code.id: code for one in load_mechanisms() for code in find_codes(one.id)}


def asked(*, python: bool) -> dict[str, Any]:
    """Return the reply to a request for formulas of a mechanism that has code."""
    request = {"count": 4, "step": 0} | ({"python": True} if python else {})
    context = {
        "task": "factor",
        "language": {"operators": [], "fields": ["close", "open", "returns", "volume"], "groups": []},
        "hypothesis": {"mechanism": "trend_quality", "fields": ["close", "returns"], "direction": 1},
        "record": {},
        "branch": {},
        "request": request,
    }
    found: dict[str, Any] = json.loads(answer_offline([{"role": "user", "content": json.dumps(context)}], 3))
    return found


def test_code_is_written_only_where_it_is_allowed() -> None:
    without, allowed = (
        [candidate["text"] for candidate in asked(python=python)["candidates"]] for python in (False, True)
    )
    assert not any("def factor" in text for text in without)
    assert ["def factor" in text for text in allowed] == [True, False, False, False]


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_what_it_writes_can_be_taken(name: str) -> None:
    code, rng = KNOWN[name], np.random.default_rng(1)
    drawn = [parse(code.draw(rng)) for _ in range(12)]
    assert len({expression.id for expression in drawn}) > 1
    for each in drawn:
        assert lint_code(each.code, each.fields) == ()
        assert (each.size <= 120, each.depth <= 40, each.constants <= 32) == (True, True, True)
        for mechanism in map(find_mechanism, code.of):
            assert mechanism is not None
            assert 2 * len(each.fields - {*mechanism.fields}) <= len(each.fields)


def test_prompts_that_are_joined_have_a_digest_of_their_own() -> None:
    both, one = load_prompts("factor", "python"), load_prompt("factor")
    assert load_prompts("factor") == one
    assert both.text.startswith(one.text)
    assert "def factor(panel)" in both.text
    assert len({both.digest, one.digest, load_prompt("python").digest}) == 3
