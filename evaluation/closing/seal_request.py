"""A campaign's request to open its sealed (hold-out) days, and what people decided on it.

Where the workspace's policy says so, the days are opened only after a person has agreed. The request and the decisions
are events of the run. The last decision of the person who decided first stands when the run goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...evidence import ReviewRefused
from ...ledger import Ledger, compute_digest, is_closing
from ...portfolio import find_own_opening, list_earlier_openings
from ..pending_cases import MAX_COMMENT_CHARS
from ..service import Evaluator
from .closing import CLOSE_REASON

SEAL_REQUEST_EVENT, SEAL_DECISION_EVENT = "seal-request", "seal-decision"
SEAL_REQUEST_KEY = "1"
"""Key of the request: a campaign asks once. Decisions are numbered from 1."""
SEAL_PURPOSE = (
    "RankIC and p-value of the combination and of each accepted factor, and the book after costs, on these days. The "
    "report and the library show them. Nothing is accepted or rejected by them."
)


@dataclass(frozen=True)
class SealRequest:
    """What would be opened, and for what.

    Attributes
    ----------
    dataset
        Name of the data set.
    first_day, last_day, days, symbols
        The sealed window, and the number of its symbols.
    earlier
        Openings of shared days by other runs when the campaign asked: number, reason, first and last day.
    accepted
        The accepted factors that would be examined: id and text.
    """

    dataset: str
    first_day: str
    last_day: str
    days: int
    symbols: int
    earlier: Sequence[Mapping[str, Any]]
    accepted: Sequence[Mapping[str, str]]
    purpose: str

    @property
    def digest(self) -> str:
        """Return the digest of the request, which every decision on it records."""
        return compute_digest(asdict(self))


@dataclass(frozen=True)
class SealDecision:
    """A person's decision on a request; `request` and `shown` are digests of it and of the page on their screen."""

    agrees: bool
    reason: str
    by: str
    at: str
    request: str
    shown: str = ""

    @property
    def sentence(self) -> str:
        """Return the decision in one line."""
        verb = "agreed" if self.agrees else "refused"
        return f"{self.by} {verb} to open the sealed (hold-out) days: {self.reason}"


@dataclass(frozen=True)
class SealRequests:
    """The request of one run, and the decisions on it."""

    ledger: Ledger
    run: str

    def request(self) -> SealRequest | None:
        """Return what the run asked to open; None where it did not ask."""
        event = self.ledger.events.get(self.run, SEAL_REQUEST_EVENT, SEAL_REQUEST_KEY)
        return SealRequest(**event.body) if event else None

    def ask(self, request: SealRequest) -> None:
        """Record the request."""
        self.ledger.events.record(self.run, SEAL_REQUEST_EVENT, SEAL_REQUEST_KEY, asdict(request))

    def decisions(self) -> list[SealDecision]:
        """Return all decisions, the oldest first."""
        events = self.ledger.events.of(self.run, SEAL_DECISION_EVENT)
        return [SealDecision(**event.body) for event in sorted(events, key=lambda event: int(event.key))]

    def decision(self) -> SealDecision | None:
        """Return the decision that stands, or None."""
        decisions = self.decisions()
        return decisions[-1] if decisions else None

    def waits(self) -> bool:
        """Return whether the run asked and nobody has decided."""
        return self.request() is not None and self.decision() is None

    def decide(self, decision: SealDecision) -> None:
        """Record a person's decision on a paused run.

        Raises
        ------
        ReviewRefused
            The run did not ask or is not paused, another person has decided, the request is another one, or the reason
            is missing or too long.
        """
        with self.ledger.runs.lock(self.run):
            self._refuse(decision)
            self.ledger.events.record(self.run, SEAL_DECISION_EVENT, str(len(self.decisions()) + 1), asdict(decision))

    def _refuse(self, decision: SealDecision) -> None:
        request, before, status = self.request(), self.decision(), self.ledger.runs.find(self.run).status
        if request is None:
            raise ReviewRefused("This run does not ask to open its sealed days.", field="run", got=self.run)
        if status != "paused":
            hint = f"alphaloom evidence open {self.run} --reason TEXT opens them by hand." if status == "done" else ""
            raise ReviewRefused(
                "A request is decided while its run is paused.", field="run", got=status, allowed="paused", hint=hint
            )
        if before is not None and before.by.casefold() != decision.by.casefold():
            raise ReviewRefused(f"It was decided already: {before.sentence} ({before.at[:19]}).", field="run")
        if before is not None and (before.agrees, before.reason) == (decision.agrees, decision.reason):
            raise ReviewRefused(f"This was decided already: {before.sentence}.", field="run")
        if decision.request != request.digest:
            raise ReviewRefused("The request has changed.", field="request", got=decision.request)
        if not decision.reason or len(decision.reason) > MAX_COMMENT_CHARS:
            raise ReviewRefused(
                "A decision on sealed days needs a reason.",
                field="--reason",
                got=f"{len(decision.reason):,} characters",
                allowed=f"1 to {MAX_COMMENT_CHARS:,} characters",
            )


@dataclass(frozen=True)
class SealAnswer:
    """Whether a close opens the sealed days; `reason` is recorded with the opening, `refusal` with the results."""

    opens: bool
    reason: str = CLOSE_REASON
    refusal: str = ""


def answer_seal(evaluator: Evaluator, accepted: Sequence[str], *, wanted: bool, must_ask: bool) -> SealAnswer | None:
    """Return whether the close opens the sealed days; None where a person has to decide first, and was asked.

    `wanted` is what the campaign file says, `must_ask` what the policy says. A recorded request is not dropped where
    the policy is loosened afterwards, and an opening that was begun goes on.
    """
    seals = SealRequests(evaluator.ledger, evaluator.run)
    if not wanted or not accepted:
        return SealAnswer(wanted)
    if seals.request() is None and (not must_ask or find_own_opening(evaluator)):
        return SealAnswer(opens=True)
    decision = seals.decision()
    if decision is not None:
        reason = f"{CLOSE_REASON}; {decision.by} agreed: {decision.reason}"
        return SealAnswer(decision.agrees, reason, "" if decision.agrees else decision.sentence)
    if is_closing(evaluator.ledger.events, evaluator.run):
        return SealAnswer(opens=False, refusal="nobody had agreed to open the sealed days when the run was closed")
    if seals.request() is None:
        seals.ask(_build_request(evaluator, accepted))
    return None


def _build_request(evaluator: Evaluator, accepted: Sequence[str]) -> SealRequest:
    windows = evaluator.windows
    window, key = windows.sealed, windows.key(windows.sealed)
    return SealRequest(
        dataset=windows.boundaries.dataset,
        first_day=window.first_day,
        last_day=window.last_day,
        days=window.days,
        symbols=len(windows.boundaries.names),
        earlier=list_earlier_openings(evaluator.ledger, key, evaluator.run),
        accepted=[{"id": name, "text": evaluator.scores[name].text} for name in sorted(accepted)],
        purpose=SEAL_PURPOSE,
    )
