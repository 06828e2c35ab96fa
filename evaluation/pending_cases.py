"""Cases that wait for a person, and the decisions on them: records beside the gate's verdicts, which they never change.

With `approve: true` a factor that passed every step of the gate is a *case*: within its run it counts as known and as a
part of the library, but it is not accepted. Cases and decisions are events of the run.

The decisions on a case are a sequence: of each person the last one stands, and who took theirs back has none. A
rejection or a request for a change decides the case; approvals decide it once they are as many as the workspace's
policy asked for when they were made. When the run goes on, what was decided is settled: it is written where the
agents' journal reads it, without the people's names and the time, and the library takes in what was approved. From then
on nothing is decided anew; a factor leaves the library by its retirement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from ..evidence import ReviewRefused
from ..evidence.gate import Reason, Word
from ..ledger import Ledger, LibraryRow, Run, VerdictRow, canonical_json

AWAITING: Word = "awaiting approval"
ReviewChoice = Literal["approve", "reject", "ask", "undo"]
DECISIONS: Mapping[ReviewChoice, str] = {
    "approve": "approved",
    "reject": "rejected",
    "ask": "asked for a change of",
    "undo": "took back the decision on",
}
"""The possible decisions, with their words."""

CASE_EVENT, CASE_FILE_EVENT, REVIEW_EVENT, AGENT_REVIEW_EVENT = "case", "case-file", "review", "agents.review"
"""Kinds of events: a case, the file on it for a person, a decision, and the decision as the agents read it."""
CASE_MEMBERS_EVENT = "case-members"
"""Kind of the event with the library rows of the members of a case that is a combination."""

HYPOTHESIS_EVENT, SHOWN_REVIEWS_EVENT, ROUND_PATTERN = "agents.hypothesis", "agents.reviews", re.compile(r"^r(\d+)/")
"""Kinds of events: a proposed hypothesis, and the reviews in the prompts of a round; and the keys of rounds."""

MAX_COMMENT_CHARS = 4_000
"""Longest comment."""


@dataclass(frozen=True)
class PersonDecision:
    """A person's decision on a case.

    Attributes
    ----------
    factor_id, decision, comment, by
        The case, what was decided on it, why, and by whom.
    at
        The time of the clock, which no result contains.
    case, shown
        Digests of the file on the case, and of the page on the person's screen; empty where none was recorded.
    needs
        How many people must approve, by the policy of that time.
    """

    factor_id: str
    decision: ReviewChoice
    comment: str
    by: str
    at: str
    case: str = ""
    shown: str = ""
    needs: int = 1

    @property
    def verb(self) -> str:
        """Return what was done to the case."""
        return DECISIONS[self.decision]

    @property
    def sentence(self) -> str:
        """Return the decision in one line."""
        comment = f": {self.comment}" if self.comment else ""
        return f"{self.by} {self.verb} it{comment}"

    @property
    def reason(self) -> Reason:
        """Return the decision as a step after the gate's own."""
        return Reason("review", self.decision == "approve", self.sentence)

    def record(self) -> dict[str, str]:
        """Return the JSON form for results, without the time."""
        return {"id": self.factor_id, "decision": self.decision, "comment": self.comment, "by": self.by}


NO_DECISION = Reason("review", False, "nobody had decided when the run was closed")


@dataclass(frozen=True)
class Reviews:
    """The cases of one run; `required` is False where the campaign does not ask for approval, and no case waits."""

    ledger: Ledger
    run: str
    required: bool

    @classmethod
    def of(cls, ledger: Ledger, run: Run) -> Reviews:
        """Return the cases of a run in the ledger."""
        return cls(ledger, run.id, bool((run.config.get("settings") or {}).get("approve")))

    def word(self, row: VerdictRow) -> Word:
        """Return a factor's final verdict: the gate's, or for an accepted factor that of the person's decision."""
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

    def wait(self, row: LibraryRow, members: Sequence[LibraryRow] = ()) -> None:
        """Record that a factor passed the gate and waits; it and its members enter the library when approved."""
        self.ledger.events.record(self.run, CASE_EVENT, row.factor_id, asdict(row))
        if members:
            bodies = [asdict(member) for member in members]
            self.ledger.events.record(self.run, CASE_MEMBERS_EVENT, row.factor_id, bodies)

    def _read_members(self, factor_id: str) -> list[LibraryRow]:
        """Return the library rows of the members of a case that is a combination."""
        event = self.ledger.events.get(self.run, CASE_MEMBERS_EVENT, factor_id)
        return [LibraryRow(**body) for body in event.body] if event else []

    def keep_file(self, factor_id: str, case: Mapping[str, Any]) -> None:
        """Store the file on a case for the person who decides; the first one stands."""
        if self.ledger.events.get(self.run, CASE_FILE_EVENT, factor_id) is None:
            body = self.ledger.objects.put(canonical_json(dict(case)).encode())
            self.ledger.events.record(self.run, CASE_FILE_EVENT, factor_id, {"file": body})

    def file(self, factor_id: str) -> dict[str, Any]:
        """Return the stored file on a case.

        Raises
        ------
        ReviewRefused
            There is no such case, or the run was cut short before it paused.
        """
        event = self.ledger.events.get(self.run, CASE_FILE_EVENT, factor_id)
        if event is None:
            hint = "A run that was cut short pauses when it is resumed: alphaloom resume RUN."
            raise ReviewRefused(
                "No such case waits for approval.", field="ID", got=factor_id, allowed=self.waiting(), hint=hint
            )
        case: dict[str, Any] = json.loads(self.ledger.objects.get(event.body["file"]))
        return case

    def cases(self) -> dict[str, LibraryRow]:
        """Return all cases by factor, decided ones included."""
        return {event.key: LibraryRow(**event.body) for event in self.ledger.events.of(self.run, CASE_EVENT)}

    def waiting(self) -> list[str]:
        """Return the factors that are not decided."""
        if not self.required:
            return []
        decided = {decision.factor_id for decision in self.decisions()}
        return [event.key for event in self.ledger.events.of(self.run, CASE_EVENT) if event.key not in decided]

    def undecided(self) -> list[LibraryRow]:
        """Return the library rows that the waiting factors would have."""
        cases = self.cases() if self.required else {}
        return [row for name in self.waiting() for row in (cases[name], *self._read_members(name))]

    def votes(self, factor_id: str) -> list[PersonDecision]:
        """Return everything that people decided on a factor, the oldest first, also what no longer stands."""
        return self._read_votes().get(factor_id, [])

    def _read_votes(self) -> dict[str, list[PersonDecision]]:
        """Return the decisions on each factor in their order; the keys are FACTOR/NUMBER, of older runs FACTOR."""
        numbered: dict[str, list[tuple[int, PersonDecision]]] = {}
        for event in self.ledger.events.of(self.run, REVIEW_EVENT):
            name, _, number = event.key.partition("/")
            numbered.setdefault(name, []).append((int(number or 1), PersonDecision(name, **event.body)))
        return {name: [vote for _, vote in sorted(votes, key=lambda one: one[0])] for name, votes in numbered.items()}

    def decision(self, factor_id: str) -> PersonDecision | None:
        """Return the decision that stands on a factor, of several people as one; None while it is not decided."""
        return find_outcome(self.votes(factor_id))

    def decisions(self) -> list[PersonDecision]:
        """Return the decision that stands on each decided factor, by factor."""
        outcomes = {name: find_outcome(votes) for name, votes in self._read_votes().items()}
        return [outcome for _, outcome in sorted(outcomes.items()) if outcome is not None]

    def is_settled(self, factor_id: str) -> bool:
        """Return whether the run has gone on with the decision on a factor, so that it can no longer be changed."""
        return self.ledger.events.get(self.run, AGENT_REVIEW_EVENT, factor_id) is not None

    def shown_decisions(self) -> list[PersonDecision]:
        """Return the decisions whose comments were in the prompts of a later round."""
        matches = (ROUND_PATTERN.match(event.key) for event in self.ledger.events.of(self.run, HYPOTHESIS_EVENT))
        last = max((int(match[1]) for match in matches if match), default=0)
        shown = [event for event in self.ledger.events.of(self.run, SHOWN_REVIEWS_EVENT) if int(event.key[1:]) <= last]
        names = {review["factor"] for event in shown for review in event.body["reviews"]}
        return [decision for decision in self.decisions() if decision.factor_id in names and decision.comment]

    def decide(self, decision: PersonDecision) -> None:
        """Record a person's decision; the caller holds the lock of the run, so that no process works on it meanwhile.

        Raises
        ------
        ReviewRefused
            There is no such case, others have decided it, the run has gone on with the decision, there is nothing to
            take back, or the comment is missing or too long.
        """
        name = decision.factor_id
        if name not in self.cases():
            raise ReviewRefused("No such case waits for approval.", field="ID", got=name, allowed=self.waiting())
        votes = self.votes(name)
        self._refuse_late(decision, votes)
        _refuse_comment(decision)
        body = {key: value for key, value in asdict(decision).items() if key != "factor_id"}
        self.ledger.events.record(self.run, REVIEW_EVENT, f"{name}/{len(votes) + 1}", body)

    def _refuse_late(self, decision: PersonDecision, votes: Sequence[PersonDecision]) -> None:
        """Refuse what changes nothing, or what others have decided, or what the run has gone on with."""
        name, outcome = decision.factor_id, find_outcome(votes)
        own = next((vote for vote in list_standing(votes) if vote.by.casefold() == decision.by.casefold()), None)
        settled = self.is_settled(name)
        same = own is not None and (own.decision, own.comment) == (decision.decision, decision.comment)
        if outcome is not None and (settled or own is None or same):
            hint = f"The run has gone on with it: alphaloom library retire {name} --reason TEXT." if settled else ""
            raise ReviewRefused(
                f"It was decided already, and one decision stands: {outcome.sentence} ({outcome.at[:19]}).",
                field="ID",
                got=name,
                allowed=self.waiting(),
                hint=hint,
            )
        if same:
            raise ReviewRefused(f"This was decided already: {decision.sentence}.", field="ID", got=name)
        if decision.decision == "undo" and own is None:
            raise ReviewRefused(f"No decision of {decision.by} stands that could be taken back.", field="ID", got=name)

    def settle(self) -> None:
        """Apply every decision as the run goes on: write it for the agents, add approved factors to the library."""
        cases = self.cases() if self.required else {}
        for decision in self.decisions():
            row = cases[decision.factor_id]
            self.ledger.events.record(
                self.run, AGENT_REVIEW_EVENT, row.factor_id, self._record_for_agents(row, decision)
            )
            if decision.decision == "approve":
                for accepted in (row, *self._read_members(row.factor_id)):
                    self.ledger.library.add(accepted)

    def _record_for_agents(self, row: LibraryRow, decision: PersonDecision) -> dict[str, Any]:
        """Return the record for agents: search facts and the person's comment, without name and time."""
        event = self.ledger.events.get(self.run, "set", row.factor_id)
        members = list(event.body) if event else []
        claims = (
            {score.factor_id: score.hypothesis for score in self.ledger.evaluations.of(self.run)} if members else {}
        )
        hypotheses = [claims[name] for name in members] if members else [row.hypothesis]
        words = {"decision": decision.decision, "comment": decision.comment, "text": row.canonical}
        return {**words, "members": members, "hypotheses": list(dict.fromkeys(hypotheses))}


def list_standing(votes: Sequence[PersonDecision]) -> list[PersonDecision]:
    """Return the last decision of each person, the oldest first, without those that were taken back."""
    last: dict[str, PersonDecision] = {}
    for vote in votes:
        last.pop(vote.by.casefold(), None)
        last[vote.by.casefold()] = vote
    return [vote for vote in last.values() if vote.decision != "undo"]


def find_outcome(votes: Sequence[PersonDecision]) -> PersonDecision | None:
    """Return what was decided: the last refusal, or approvals of as many people as each of them needed; else None."""
    standing = list_standing(votes)
    refusals = [vote for vote in standing if vote.decision != "approve"]
    if refusals:
        return refusals[-1]
    if not standing or len(standing) < max(vote.needs for vote in standing):
        return None
    names = " and ".join(vote.by for vote in standing)
    comment = "\n".join(vote.comment for vote in standing if vote.comment)
    return replace(standing[-1], by=names, comment=comment)


def _refuse_comment(decision: PersonDecision) -> None:
    """Refuse a request for a change without a comment, and a comment that is too long."""
    if decision.decision == "ask" and not decision.comment:
        hint = 'Say what is to change: --ask "slower, without the turnover".'
        raise ReviewRefused("A change needs a comment that says which.", field="--ask", got="", hint=hint)
    if len(decision.comment) > MAX_COMMENT_CHARS:
        raise ReviewRefused(
            "The comment is too long.",
            field="--comment",
            got=f"{len(decision.comment):,} characters",
            allowed=f"at most {MAX_COMMENT_CHARS:,}",
        )
