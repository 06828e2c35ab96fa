"""The schemas of the models' replies, one per agent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..factors.describe import replace_invisible

Operator = Literal[
    "smooth", "neutralise", "shorten", "lengthen", "retime", "condition", "swap_field", "combine", "invert", "simplify"
]
"""Directed changes: those that a critique may request and a formula's intent may name."""
UNDIRECTED_CHANGES = ("nudge_window", "retune", "swap_field", "swap_operator", "wrap", "hoist", "graft", "attach")
"""Random changes, requested by no agent; an intent puts `mutate: ` before them."""


def _make_visible(text: str) -> str:
    return replace_invisible(text)


def _mark_invisible(text: str) -> str:
    return replace_invisible(text.replace("\r\n", "\n"), instead="\ufffd")


ReplyWords = Annotated[str, AfterValidator(_make_visible)]
"""Words of a model: invisible characters become blanks, so that none steers a terminal or hides from a reader."""
FormulaSource = Annotated[str, AfterValidator(_mark_invisible)]
"""A formula or code: invisible characters become a mark that no parser accepts, and are never silently dropped."""


class Record(BaseModel):
    """A part of a reply; unknown keys are refused so that a model is told of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Hypothesis(Record):
    """A market mechanism in words, with what would refute it."""

    mechanism: ReplyWords = Field(min_length=1, max_length=80)
    statement: ReplyWords = Field(min_length=1, max_length=2_000)
    who_is_on_the_other_side: ReplyWords = Field(max_length=1_000)
    why_it_persists: ReplyWords = Field(max_length=1_000)
    direction: Literal[1, -1]
    horizon_days: int = Field(ge=1, le=250)
    fields: list[Annotated[ReplyWords, Field(max_length=100)]] = Field(min_length=1, max_length=20)
    regime: ReplyWords = Field(max_length=500)
    refuted_by: ReplyWords = Field(min_length=1, max_length=1_000)
    succeeds: ReplyWords = Field(default="", max_length=40)
    either_way: bool = False


class StatedMechanism(Record):
    """The mechanism of a scored candidate that came without one, and the rival formula that would refute it."""

    id: ReplyWords = Field(min_length=1, max_length=40)
    mechanism: ReplyWords = Field(min_length=1, max_length=80)
    statement: ReplyWords = Field(min_length=1, max_length=2_000)
    who_is_on_the_other_side: ReplyWords = Field(min_length=1, max_length=1_000)
    why_it_persists: ReplyWords = Field(min_length=1, max_length=1_000)
    direction: Literal[1, -1]
    horizon_days: int = Field(ge=1, le=250)
    fields: list[Annotated[ReplyWords, Field(max_length=100)]] = Field(min_length=1, max_length=20)
    refuted_by: ReplyWords = Field(min_length=1, max_length=1_000)
    refuter: FormulaSource = Field(min_length=1, max_length=2_000)


class Mechanisms(Record):
    """The Idea agent's reply about candidates that came without a mechanism; those it leaves out stay without one."""

    mechanisms: list[StatedMechanism] = Field(max_length=64)


class ShortText(Record):
    """A summary."""

    summary: ReplyWords = Field(min_length=1, max_length=2_000)


class Ideas(Record):
    """The Idea agent's reply."""

    hypotheses: list[Hypothesis] = Field(min_length=1, max_length=64)


class Candidate(Record):
    """One formula, or the code of a Python factor, what it is meant to do, and the id of the factor that it changes."""

    text: FormulaSource = Field(min_length=1, max_length=8_000)
    rationale: ReplyWords = Field(max_length=1_000)
    intent: ReplyWords = Field(max_length=80)
    parent: ReplyWords = Field(default="", max_length=40)


class Candidates(Record):
    """The Factor agent's reply."""

    candidates: list[Candidate] = Field(min_length=1, max_length=512)


class Weakness(Record):
    """One named weakness."""

    code: ReplyWords = Field(min_length=1, max_length=60)
    message: ReplyWords = Field(max_length=500)


class Advice(Record):
    """One change that addresses a weakness."""

    operator: Operator
    why: ReplyWords = Field(max_length=500)


class Opinion(Record):
    """Whether formulas say what their hypothesis says, as a model sees it: kept as a warning, heard by no program."""

    verdict: Literal["agrees", "doubts"]
    why: ReplyWords = Field(max_length=500)


class Critique(Record):
    """The Eval agent's reply."""

    weaknesses: list[Weakness] = Field(max_length=20)
    advice: list[Advice] = Field(max_length=10)
    keep: bool
    alignment: Opinion | None = None
