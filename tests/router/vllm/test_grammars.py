"""The grammars of the agents' replies, read by vLLM's own reader: they take exactly what fits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from alphaloom.agents.schemas import Candidates, Critique, Ideas
from alphaloom.factors import decoding_grammar
from alphaloom.router.calls.reply_grammar import ReplyShape, build_choice_grammar, build_reply_grammar

from .served import lacking
from .test_formulas import accepted

pytestmark = pytest.mark.slow

FIELDS = ("close", "volume", "returns")


class Sized(BaseModel):
    model_config = ConfigDict(extra="forbid")

    odds: float = Field(ge=0, le=1)
    lots: int = Field(ge=5)
    delay: int = Field(ge=0, le=5_000)
    edge: float = Field(gt=-0.25)
    note: str


SHAPES = {
    "ideas": ReplyShape(Ideas, 3, {"Hypothesis.fields": build_choice_grammar(FIELDS)}),
    "candidates": ReplyShape(Candidates, 2, {"Candidate.text": decoding_grammar(FIELDS, ("sector",), depth=4)}),
    "code": ReplyShape(Candidates, 2, lines=frozenset({"Candidate.text"})),
    "critique": ReplyShape(Critique),
    "sized": ReplyShape(Sized),
}
WORDS = "Momentum fades — as “Müller” says: by Σ ≥ 2."
IDEA = {
    "mechanism": "momentum", "statement": WORDS, "who_is_on_the_other_side": "动量", "why_it_persists": "",
    "direction": -1, "horizon_days": 250, "fields": ["close", "volume"], "regime": "", "refuted_by": "x",
    "succeeds": "", "either_way": False,
}  # fmt: skip  # a table
DRAFT = {"text": "rank(ts_mean(returns, 20))", "rationale": WORDS, "intent": "retune", "parent": ""}
CODE = {**DRAFT, "text": 'def factor(data):\n    return data["close"].rank()\n' * 4}
REMARK = {
    "weaknesses": [{"code": "turnover", "message": WORDS}],
    "advice": [{"operator": "smooth", "why": ""}],
    "keep": True,
    "alignment": None,
}
SIZES = {"odds": 0.25, "lots": 10, "delay": 4999, "edge": -0.2, "note": "漢"}
REPLIES: dict[str, tuple[list[Any], list[Any]]] = {
    "ideas": (
        [{"hypotheses": [IDEA, IDEA]}],
        [
            {"hypotheses": [IDEA | wrong]}
            for wrong in ({"horizon_days": 251}, {"horizon_days": 0}, {"fields": ["open"]})
        ],
    ),
    "candidates": ([{"candidates": [DRAFT]}], [{"candidates": [CODE]}, {"candidates": []}]),
    "code": ([{"candidates": [DRAFT, CODE]}], [{"candidates": [DRAFT] * 3}]),
    "critique": ([REMARK], [REMARK | {"keep": 1}]),
    "sized": (
        [SIZES, SIZES | {"odds": 1, "lots": 5, "delay": 0, "edge": 7}],
        [SIZES | wrong for wrong in ({"odds": 1.01}, {"odds": -0.1}, {"lots": 4}, {"delay": 5001}, {"edge": -0.25})],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_what_fits_can_be_written_and_nothing_else(name: str) -> None:
    if reason := lacking():
        pytest.skip(reason)
    right, wrong = REPLIES[name]
    texts = [json.dumps(reply, ensure_ascii=False) for reply in (*right, *wrong)]
    assert accepted(build_reply_grammar(SHAPES[name], 4_000), texts) == [True] * len(right) + [False] * len(wrong)
