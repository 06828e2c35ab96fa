"""Cases that wait for a person, and what was decided on them: records beside the gate's, which they never change.

With `approve: true` a factor that passed every step of the gate is a *case*: it counts as known and as a part of the
library within its run, but is not accepted. One decision stands for each case. A case and a decision are events of the run:
the second is also written where the agents' journal reads it, without the name and the time of whoever decided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from ..evidence import ReviewRefused
from ..evidence.gate import Reason, Word
from ..ledger import Ledger, LibraryRow, Run, VerdictRow, canonical_json

__all__ = ["AWAITING", "DECISIONS", "PersonDecision", "Reviews"]

AWAITING: Word = "awaiting approval"
ReviewChoice = Literal["approve", "reject", "ask"]
DECISIONS: Mapping[ReviewChoice, str] = {"approve": "approved", "reject": "rejected", "ask": "asked for a change of"}
"""What can be decided, and how it is said."""

CASE_EVENT, CASE_FILE_EVENT, REVIEW_EVENT, AGENT_REVIEW_EVENT = "case", "case-file", "review", "agents.review"
"""Kinds of the events: what waits, what a person is shown of it, what was decided, and what the agents read of that."""

HYPOTHESIS_EVENT, SHOWN_REVIEWS_EVENT, ROUND_PATTERN = "agents.hypothesis", "agents.reviews", re.compile(r"^r(\d+)/")
"""What agents proposed, and which reviews their prompts of a round show."""

MAX_COMMENT_CHARS = 4_000
"""Characters of a comment that are kept."""


@dataclass(frozen=True)
class PersonDecision:
    """What a person decided on a case; `at` is a time of the clock and goes into no result."""

    factor_id: str
    decision: ReviewChoice
    comment: str
    by: str
    at: str

    @property
    def sentence(self) -> str:
        """Say it in a line."""
        said = f": {self.comment}" if self.comment else ""
        return f"{self.by} {DECISIONS[self.decision]} it{said}"

    @property
    def reason(self) -> Reason:
        """Return it as a step after the gate's own."""
        return Reason("review", self.decision == "approve", self.sentence)

    def record(self) -> dict[str, str]:
        """Return it as results say it: without a clock."""
        return {"id": self.factor_id, "decision": self.decision, "comment": self.comment, "by": self.by}


NO_DECISION = Reason("review", False, "nobody had decided when the run was closed")


@dataclass(frozen=True)
class Reviews:
    """The cases of one run; nothing waits where the campaign does not ask for approval."""

    ledger: Ledger
    run: str
    required: bool

    @classmethod
    def of(cls, ledger: Ledger, run: Run) -> Reviews:
        """Return those of a run in the ledger."""
        return cls(ledger, run.id, bool((run.config.get("settings") or {}).get("approve")))

    def word(self, row: VerdictRow) -> Word:
        """Return what a factor is to a person: the gate's word, or what was decided where that was accepted."""
        if not self.required or row.verdict != "accepted":
            return cast("Word", row.verdict)
        decision = self.decision(row.factor_id)
        if decision is None:
            return AWAITING
        return "accepted" if decision.decision == "approve" else "rejected"

    def reasons(self, row: VerdictRow) -> list[dict[str, Any]]:
        """Return every reason of a verdict, the person's last."""
        reasons = [dict(reason) for reason in row.reasons]
        if not self.required or row.verdict != "accepted":
            return reasons
        decision = self.decision(row.factor_id)
        return [*reasons, (decision.reason if decision else NO_DECISION).record()]

    def wait(self, row: LibraryRow) -> None:
        """Note that a factor passed the gate and waits; it enters the library when somebody approves."""
        self.ledger.record_event(self.run, CASE_EVENT, row.factor_id, asdict(row))

    def keep_file(self, factor_id: str, case: Mapping[str, Any]) -> None:
        """Keep what a person who has to decide is shown; the first time it is kept for good."""
        if self.ledger.event(self.run, CASE_FILE_EVENT, factor_id) is None:
            body = self.ledger.put(canonical_json(dict(case)).encode())
            self.ledger.record_event(self.run, CASE_FILE_EVENT, factor_id, {"file": body})

    def file(self, factor_id: str) -> dict[str, Any]:
        """Return what was kept for a person who has to decide.

        Raises
        ------
        ReviewRefused
            There is no such case, or the run was cut short before it paused.
        """
        event = self.ledger.event(self.run, CASE_FILE_EVENT, factor_id)
        if event is None:
            hint = "A run that was cut short pauses when it is resumed: alphaloom resume RUN."
            raise ReviewRefused(
                "No such case waits for approval.", field="ID", got=factor_id, allowed=self.waiting(), hint=hint
            )
        found: dict[str, Any] = json.loads(self.ledger.get(event.body["file"]))
        return found

    def cases(self) -> dict[str, LibraryRow]:
        """Return all cases, decided ones too, by factor."""
        return {event.key: LibraryRow(**event.body) for event in self.ledger.events(self.run, CASE_EVENT)}

    def waiting(self) -> list[str]:
        """Return the factors on which nobody has decided yet."""
        if not self.required:
            return []
        decided = {event.key for event in self.ledger.events(self.run, REVIEW_EVENT)}
        return [event.key for event in self.ledger.events(self.run, CASE_EVENT) if event.key not in decided]

    def undecided(self) -> list[LibraryRow]:
        """Return the rows that waiting factors would have in the library."""
        cases = self.cases() if self.required else {}
        return [cases[name] for name in self.waiting()]

    def decision(self, factor_id: str) -> PersonDecision | None:
        """Return what was decided on a factor, or None."""
        event = self.ledger.event(self.run, REVIEW_EVENT, factor_id)
        return PersonDecision(factor_id, **event.body) if event else None

    def decisions(self) -> list[PersonDecision]:
        """Return every decision, by factor."""
        return [PersonDecision(event.key, **event.body) for event in self.ledger.events(self.run, REVIEW_EVENT)]

    def heard(self) -> list[PersonDecision]:
        """Return the decisions whose words stood in the prompts of a later round."""
        named = (ROUND_PATTERN.match(event.key) for event in self.ledger.events(self.run, HYPOTHESIS_EVENT))
        last = max((int(found[1]) for found in named if found), default=0)
        shown = [event for event in self.ledger.events(self.run, SHOWN_REVIEWS_EVENT) if int(event.key[1:]) <= last]
        names = {told["factor"] for event in shown for told in event.body["reviews"]}
        return [each for each in self.decisions() if each.factor_id in names and each.comment]

    def decide(self, decision: PersonDecision) -> None:
        """Record what a person decided; the caller holds the run, so that nobody works on it meanwhile.

        Raises
        ------
        ReviewRefused
            Nothing of that name waits, it was decided already, or the comment is missing or too long.
        """
        name = decision.factor_id
        if name not in self.cases():
            raise ReviewRefused("No such case waits for approval.", field="ID", got=name, allowed=self.waiting())
        earlier = self.decision(name)
        if earlier is not None:
            raise ReviewRefused(
                f"It was decided already, and one decision stands: {earlier.sentence} ({earlier.at[:19]}).",
                field="ID", got=name, allowed=self.waiting(),
            )  # fmt: skip
        _refuse_comment(decision)
        body = {key: value for key, value in asdict(decision).items() if key != "factor_id"}
        self.ledger.record_event(self.run, REVIEW_EVENT, name, body)
        self.settle()

    def settle(self) -> None:
        """Let every decision have its effect: the agents may read it, and what was approved is in the library."""
        cases = self.cases() if self.required else {}
        for decision in self.decisions():
            row = cases[decision.factor_id]
            self.ledger.record_event(self.run, AGENT_REVIEW_EVENT, row.factor_id, self._told(row, decision))
            if decision.decision == "approve":
                self.ledger.add_to_library(row)

    def _told(self, row: LibraryRow, decision: PersonDecision) -> dict[str, Any]:
        """Return what the agents are told: search facts and the person's words, no name and no time."""
        noted = self.ledger.event(self.run, "set", row.factor_id)
        members = list(noted.body) if noted else []
        claims = {one.factor_id: one.hypothesis for one in self.ledger.evaluations(self.run)} if members else {}
        hypotheses = [claims[name] for name in members] if members else [row.hypothesis]
        said = {"decision": decision.decision, "comment": decision.comment, "text": row.canonical}
        return {**said, "members": members, "hypotheses": list(dict.fromkeys(hypotheses))}


def _refuse_comment(decision: PersonDecision) -> None:
    """Refuse a question without words, and words without end."""
    if decision.decision == "ask" and not decision.comment:
        hint = 'Say what is to change: --ask "slower, without the turnover".'
        raise ReviewRefused("A change needs a comment that says which.", field="--ask", got="", hint=hint)
    if len(decision.comment) > MAX_COMMENT_CHARS:
        raise ReviewRefused(
            "The comment is too long.", field="--comment", got=f"{len(decision.comment):,} characters",
            allowed=f"at most {MAX_COMMENT_CHARS:,}",
        )  # fmt: skip
