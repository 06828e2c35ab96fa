"""A person's reviews of factors that passed the gate: shown to the agents as data; requested changes become branches.

A decision is a record of the journal, `review` under the factor's id, that another process writes while the run is
paused: `{decision, comment, text, members, hypotheses}`. It holds search facts and the person's own words, no name and
no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..records import DATA_MINED, Mark
from ..search_context import Json, SearchContext

if TYPE_CHECKING:
    from collections.abc import Sequence

AWAITING = "awaiting approval"
"""Verdict of a factor that passed every step of the gate and waits for a person."""

REVIEW_PAGE = "review"
MAX_REVIEWS_SHOWN = 10
MAX_COMMENT_CHARS_SHOWN = 1_000
"""Reviews that a prompt shows, the newest ones; characters of a comment."""

DECISION_WORDS = {"approve": "approved", "reject": "rejected", "ask": "asked for a change"}


@dataclass(frozen=True)
class ReviewDecision:
    """A person's decision on a factor that passed the gate.

    Attributes
    ----------
    factor_id : str
        The factor or the set.
    decision : str
        "approve", "reject" or "ask" (for a change).
    comment, text : str
        The person's words; the formula.
    members : tuple of str
        Factors of a set, by id.
    hypotheses : tuple of str
        Branches whose hypotheses it tests.
    """

    factor_id: str
    decision: str
    comment: str
    text: str
    members: tuple[str, ...]
    hypotheses: tuple[str, ...]

    @classmethod
    def parse(cls, factor_id: str, body: Json) -> ReviewDecision:
        """Return the decision from its record."""
        return cls(
            factor_id,
            decision=str(body.get("decision", "")),
            comment=str(body.get("comment", "")),
            text=str(body.get("text", "")),
            members=tuple(body.get("members", ())),
            hypotheses=tuple(body.get("hypotheses", ())),
        )

    @property
    def has_message(self) -> bool:
        """Whether it says more than an approval."""
        return self.decision != "approve" or bool(self.comment)

    def record(self) -> Json:
        """Return it as prompts show it."""
        return {
            "factor": self.factor_id,
            "text": self.text,
            "hypotheses": list(self.hypotheses),
            "decision": DECISION_WORDS.get(self.decision, ""),
            "comment": self.comment[:MAX_COMMENT_CHARS_SHOWN],
        }


def list_waiting(search: SearchContext, gate_key: str, turns: int) -> list[str]:
    """Return the ids of the factors that one gate passed and that wait for a person, sorted."""
    keys = [f"{gate_key}/set", *(f"{gate_key}/t{turn}" for turn in range(turns))]
    answers = [search.journal.read("submission", key) or {} for key in keys]
    verdicts = [row for answer in answers for row in (*answer.get("verdicts", []), *_read_old_set_verdict(answer))]
    return sorted({row["id"] for row in verdicts if row.get("verdict") == AWAITING})


def _read_old_set_verdict(answer: Json) -> list[Json]:
    """Return the verdict on a set from records of older runs, where sets had a tool of their own."""
    return [answer["verdict"]] if answer.get("verdict") else []


def read_decision(search: SearchContext, factor_id: str) -> ReviewDecision | None:
    """Return a person's decision on a factor, or None."""
    body = search.journal.read("review", factor_id)
    return ReviewDecision.parse(factor_id, body) if body else None


def is_asked(search: SearchContext, factor_id: str) -> bool:
    """Return whether a person asked for a change of a factor: formulas like it are then allowed."""
    decision = read_decision(search, factor_id)
    return decision is not None and decision.decision == "ask"


def take_decisions(search: SearchContext, factors: Sequence[str], round_number: int) -> list[str]:
    """Record the reviews for prompts from a round on, the newest first; return the factors to be changed.

    An approval without a comment is left out: the record already says that the factor was accepted.
    """
    decisions = [read_decision(search, factor_id) for factor_id in sorted(factors)]
    newest = [decision.record() for decision in decisions if decision is not None and decision.has_message]
    if newest:
        earlier = read_reviews(search, round_number - 1).get("reviews", [])
        search.journal.record("reviews", f"r{round_number:02d}", {"reviews": [*newest, *earlier][:MAX_REVIEWS_SHOWN]})
    return [factor_id for factor_id in sorted(factors) if is_asked(search, factor_id)]


def read_reviews(search: SearchContext, round_number: int) -> Json:
    """Return `{reviews}` as the prompts of a round show them; empty if there are none yet."""
    for number in range(round_number, 0, -1):
        body = search.journal.read("reviews", f"r{number:02d}")
        if body is not None:
            return body
    return {}


def list_review_pages(search: SearchContext, round_key: str) -> tuple[str, ...]:
    """Return the prompt page that explains reviews, if there are any."""
    return (REVIEW_PAGE,) if read_reviews(search, parse_round(round_key)) else ()


def parse_round(round_key: str) -> int:
    """Return the number of a round from its key, such as `r03`."""
    return int(round_key.removeprefix("r"))


def open_branches(search: SearchContext, factors: Sequence[str], round_key: str) -> dict[str, str]:
    """Give each returned hypothesis a branch in this round; return the hypotheses by branch."""
    opened: dict[str, str] = {}
    for decision in filter(None, (read_decision(search, factor_id) for factor_id in factors)):
        for hypothesis in decision.hypotheses:
            branch = f"{round_key}/a{len(opened):02d}"
            old = search.journal.read("hypothesis", hypothesis.removesuffix(f"/{DATA_MINED}")) or {}
            request = {"factor": decision.factor_id, "text": decision.text, "comment": decision.comment}
            search.journal.record("hypothesis", branch, {**old, "id": branch, "asked": request})
            opened[branch] = hypothesis
    return opened


def find_parents(search: SearchContext, factors: Sequence[str], marks: Sequence[Mark], hypothesis: str) -> list[Mark]:
    """Return the marks that a branch starts from: the returned factor, or members of the set, of its hypothesis."""
    ids = {*factors}
    for decision in filter(None, (read_decision(search, factor_id) for factor_id in factors)):
        ids |= {*decision.members}
    return [mark for mark in marks if mark.id in ids and mark.branch == hypothesis.removesuffix(f"/{DATA_MINED}")]
