"""A person's decisions on a run, for the command line and the web app: on its cases, and on its sealed days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import DeskError
from .figures import plural

if TYPE_CHECKING:
    from ..evaluation import PersonDecision, ReviewChoice, Reviews
    from ..evaluation.closing import SealRequest, SealRequests
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
    approved_by: list[str]


def list_cases(reviews: Reviews) -> list[CaseLine]:
    """Return every case with its decision; waiting ones first."""
    from ..evaluation import list_standing

    waiting, rows = set(reviews.waiting()), []
    for name, row in reviews.cases().items():
        decision = reviews.decision(name)
        told = decision.record() | {"at": decision.at} if decision else None
        figures = (row.sheet.get("t"), row.sheet.get("rank_ic"))
        standing = [vote.by for vote in list_standing(reviews.votes(name))] if name in waiting else []
        rows.append(CaseLine(name, row.canonical, row.hypothesis, *figures, name in waiting, told, standing))
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
        The run is not paused, others have decided the case, or the comment is missing or too long.
    """
    from ..evaluation import PersonDecision, Reviews
    from ..evidence import ReviewRefused
    from ..ledger import compute_digest
    from ..risk import read_policy
    from .blind import refuse_unjudged

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
        refuse_unjudged(reviews, request.case, request.by)
        seen = compute_digest(reviews.file(request.case))
        needs = read_policy(ledger.workspace).approvals
        decision = PersonDecision(
            request.case, request.choice, request.comment, request.by, request.at, seen, request.shown, needs
        )
        reviews.decide(decision)
        return decision


def tell_decision(reviews: Reviews, decision: PersonDecision) -> dict[str, Any]:
    """Return a decision as JSON, with the cases that still wait, and what this one still needs."""
    facts = {"run": reviews.run, **decision.record(), "at": decision.at, "waiting": reviews.waiting()}
    return facts | {"approvals": describe_approvals(reviews, decision.factor_id)}


COUNT_WORDS = ("none", "one", "two", "three", "four", "five")


def describe_approvals(reviews: Reviews, case: str) -> str:
    """Return how many of the approvals that a case needs it has, in words; empty where it has none or is decided."""
    from ..evaluation import list_standing

    votes = reviews.votes(case)
    standing = list_standing(votes)
    if not standing or reviews.decision(case) is not None:
        return ""
    needs = max(vote.needs for vote in standing)
    return f"{COUNT_WORDS[len(standing)]} of {COUNT_WORDS[needs]} approvals"


def describe_stand(reviews: Reviews, case: str) -> str:
    """Return who approved a case that needs more people, in a sentence; empty where nobody did or it is decided."""
    from ..evaluation import list_standing

    approvals = describe_approvals(reviews, case)
    names = " and ".join(vote.by for vote in list_standing(reviews.votes(case)))
    return f"It passed every step of the gate; {names} approved it: {approvals}." if approvals else ""


def find_own_decision(reviews: Reviews, case: str, person: str) -> PersonDecision | None:
    """Return a person's decision that stands on a case and may still be changed, or None."""
    from ..evaluation import list_standing

    standing = [] if reviews.is_settled(case) else list_standing(reviews.votes(case))
    return next((vote for vote in standing if vote.by.casefold() == person.casefold()), None)


def find_seal_request(ledger: Ledger, run: str) -> tuple[SealRequests, SealRequest]:
    """Return what a run asks to open, with the decisions on it.

    Raises
    ------
    DeskError
        The run does not ask.
    """
    from ..evaluation.closing import SealRequests

    seals = SealRequests(ledger, run)
    request = seals.request()
    if request is None:
        raise DeskError(
            "This run does not ask to open its sealed (hold-out) days.",
            field="run",
            got=run,
            hint="A campaign asks at its close where policy.yaml of the workspace sets approve_seal: true.",
            code="unknown_request",
            exit_code=1,
        )
    return seals, request


def decide_seal(seals: SealRequests, choice: tuple[bool, str], signed: tuple[str, str], shown: str = "") -> None:
    """Record a decision on a request: whether the person agrees and why, who and when, and what they were shown."""
    from ..evaluation.closing import SealDecision

    request = seals.request()
    seals.decide(SealDecision(*choice, *signed, request.digest if request else "", shown))


def list_seal_facts(request: SealRequest) -> list[tuple[str, str]]:
    """Return what would be opened, line by line, each with its label."""
    count = len(request.earlier)
    before = "none: this would be their first opening in this workspace" if not count else plural(count, "opening")
    before += "".join(f"; no. {one['number']}: {one['reason']}" for one in request.earlier)
    return [
        ("data set", f"{request.dataset}, {plural(request.symbols, 'symbol')}"),
        ("days", f"{request.days:,}, {request.first_day} to {request.last_day}"),
        ("opened before", before),
        ("for", request.purpose),
        *(("accepted", f"{one['id']}  {one['text']}") for one in request.accepted),
    ]
