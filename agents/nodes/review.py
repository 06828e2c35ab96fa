"""What a person said of factors that passed the gate: shown to the agents as data, and what was asked for as new branches.

A decision is a record of the journal, `review` under the factor's id, that somebody else writes while the run rests:
`{decision, comment, text, members, hypotheses}`. It holds search facts and the person's own words, no name and no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import Mark
from ..search_context import Json, SearchContext

if TYPE_CHECKING:
    from collections.abc import Sequence

AWAITING = "awaiting approval"
"""The word of a factor that passed every step of the gate and waits for a person."""

REVIEW_PAGE = "review"
MAX_REVIEWS_SHOWN = 10
MAX_COMMENT_CHARS_SHOWN = 1_000
"""Reviews that a prompt shows, the newest ones; characters of a comment."""

DECISION_WORDS = {"approve": "approved", "reject": "rejected", "ask": "asked for a change"}


def list_waiting(desk: SearchContext, gate_key: str, turns: int) -> list[str]:
    """Return the ids of what one gate let pass and a person has to decide on, by id."""
    keys = [f"{gate_key}/set", *(f"{gate_key}/t{turn}" for turn in range(turns))]
    kept = [desk.journal.read("submission", key) or {} for key in keys]
    told = [verdict for one in kept for verdict in (*one.get("verdicts", []), *_old_set_verdict(one))]
    return sorted({verdict["id"] for verdict in told if verdict.get("verdict") == AWAITING})


def _old_set_verdict(kept: Json) -> list[Json]:
    """Return the verdict on a set as runs kept it when sets had a tool of their own."""
    return [kept["verdict"]] if kept.get("verdict") else []


def read_decision(desk: SearchContext, factor_id: str) -> Json:
    """Return what a person decided on a factor, nothing where nobody did."""
    return desk.journal.read("review", factor_id) or {}


def is_asked(desk: SearchContext, factor_id: str) -> bool:
    """Tell whether a person asked for a change of a factor: what resembles it is then welcome."""
    return bool(read_decision(desk, factor_id).get("decision") == "ask")


def take_decisions(desk: SearchContext, factors: Sequence[str], round_number: int) -> list[str]:
    """Keep what the prompts from a round on are to show, the newest decisions first; return the factors to be changed.

    An approval without a word says no more than that the factor was accepted, which the record tells anyway.
    """
    newest = [
        _describe_decision(name, read_decision(desk, name))
        for name in sorted(factors)
        if _has_message(read_decision(desk, name))
    ]
    if newest:
        earlier = read_reviews(desk, round_number - 1).get("reviews", [])
        desk.journal.record("reviews", f"r{round_number:02d}", {"reviews": [*newest, *earlier][:MAX_REVIEWS_SHOWN]})
    return [factor_id for factor_id in sorted(factors) if is_asked(desk, factor_id)]


def _has_message(said: Json) -> bool:
    return bool(said) and (said.get("decision") != "approve" or bool(said.get("comment")))


def read_reviews(desk: SearchContext, round_number: int) -> Json:
    """Return `{reviews}` as the prompts of a round show them, nothing where no person has said anything yet."""
    for number in range(round_number, 0, -1):
        kept = desk.journal.read("reviews", f"r{number:02d}")
        if kept is not None:
            return kept
    return {}


def review_pages(desk: SearchContext, round_key: str) -> tuple[str, ...]:
    """Return the further page that says what reviews are, where there are any."""
    return (REVIEW_PAGE,) if read_reviews(desk, parse_round(round_key)) else ()


def parse_round(round_key: str) -> int:
    """Return the number of a round from its key, such as `r03`."""
    return int(round_key.removeprefix("r"))


def open_branches(desk: SearchContext, factors: Sequence[str], round_key: str) -> dict[str, str]:
    """Give each hypothesis that a person sent back a branch in this round; return the hypotheses by branch."""
    found: dict[str, str] = {}
    for factor_id in factors:
        said = read_decision(desk, factor_id)
        for hypothesis in said.get("hypotheses", []):
            branch = f"{round_key}/a{len(found):02d}"
            old = desk.journal.read("hypothesis", hypothesis) or {}
            asked = {"factor": factor_id, "text": said.get("text", ""), "comment": said.get("comment", "")}
            desk.journal.record("hypothesis", branch, {**old, "id": branch, "asked": asked})
            found[branch] = hypothesis
    return found


def parents(desk: SearchContext, factors: Sequence[str], known: Sequence[Mark], hypothesis: str) -> list[Mark]:
    """Return the marks that a branch starts from: of what was asked about, or of a set's members, those of its hypothesis."""
    wanted = {name for factor_id in factors for name in (factor_id, *read_decision(desk, factor_id).get("members", []))}
    return [mark for mark in known if mark.id in wanted and mark.branch == hypothesis]


def _describe_decision(factor_id: str, said: Json) -> Json:
    return {
        "factor": factor_id,
        "text": str(said.get("text", "")),
        "hypotheses": list(said.get("hypotheses", [])),
        "decision": DECISION_WORDS.get(str(said.get("decision")), ""),
        "comment": str(said.get("comment", ""))[:MAX_COMMENT_CHARS_SHOWN],
    }
