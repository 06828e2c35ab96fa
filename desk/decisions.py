"""A person's decision on a case of a run, and the list of its cases, for the command line and the web app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import DeskError

if TYPE_CHECKING:
    from ..evaluation import PersonDecision, ReviewChoice, Reviews
    from ..ledger import Ledger, Run


@dataclass(frozen=True)
class CaseLine:
    """One case of a run; figures are those of search days."""

    id: str
    text: str
    hypothesis: str
    t: float | None
    rank_ic: float | None
    waits: bool
    decision: dict[str, str] | None


def list_cases(reviews: Reviews) -> list[CaseLine]:
    """Return every case with its decision; waiting ones first."""
    waiting, rows = set(reviews.waiting()), []
    for name, row in reviews.cases().items():
        decision = reviews.decision(name)
        told = decision.record() | {"at": decision.at} if decision else None
        figures = (row.sheet.get("t"), row.sheet.get("rank_ic"))
        rows.append(CaseLine(name, row.canonical, row.hypothesis, *figures, name in waiting, told))
    return sorted(rows, key=lambda case: (not case.waits, case.id))


def find_case(reviews: Reviews, start: str) -> str:
    """Return the full id of a case from its beginning.

    Raises
    ------
    DeskError
        No case, or several, have an id that begins so.
    """
    cases = reviews.cases()
    matches = [name for name in cases if start and name.startswith(start)]
    if start in cases or len(matches) == 1:
        return start if start in cases else matches[0]
    message = f"{start!r} begins several cases" if matches else f"no case {start!r} in this run"
    raise DeskError(message, field="ID", allowed=matches or list(cases), code="decision")


@dataclass(frozen=True)
class CaseRequest:
    """What a person decides on a case, and the digest of the page that they saw; empty on the command line."""

    case: str
    choice: ReviewChoice
    comment: str
    by: str
    at: str
    shown: str = ""


def decide_case(ledger: Ledger, run: Run, request: CaseRequest) -> PersonDecision:
    """Record a decision while no process works on the run, with the digest of the case that was decided.

    Raises
    ------
    ReviewRefused
        The run is not paused, the case was decided already, or the comment is missing or too long.
    """
    from ..evaluation import PersonDecision, Reviews
    from ..evidence import ReviewRefused
    from ..ledger import compute_digest

    with ledger.runs.lock(run.id):
        now = ledger.runs.find(run.id)
        reviews = Reviews.of(ledger, now)
        if now.status != "paused" and reviews.decision(request.case) is None:
            raise ReviewRefused(
                "Decisions are made while a run is paused.",
                field="run",
                got=now.status,
                allowed="paused",
                hint="A run that is done decides no more." if now.status == "done" else f"alphaloom resume {run.id}",
            )
        seen = compute_digest(reviews.file(request.case))
        decision = PersonDecision(
            request.case, request.choice, request.comment, request.by, request.at, seen, request.shown
        )
        reviews.decide(decision)
        return decision


def tell_decision(reviews: Reviews, decision: PersonDecision) -> dict[str, Any]:
    """Return a decision as JSON, with the cases that still wait."""
    return {"run": reviews.run, **decision.record(), "at": decision.at, "waiting": reviews.waiting()}
