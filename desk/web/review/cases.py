"""The pages on which a person decides: a factor that passed the gate, and a leak alarm."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import RedirectResponse, Response

from ....ledger import compute_digest
from ...blind import must_judge
from ...decisions import CaseRequest, decide_case, find_case, find_own_decision, list_cases
from ...errors import DeskError
from ...report.case_page import CasePage, load_case_page
from ...users import PersonScope
from ..pages import PageRequest
from .inbox import read_waiting

if TYPE_CHECKING:
    from ....evaluation import ReviewChoice, Reviews
    from ....risk import LeakAlarm

CASE_CHOICES = ("approve", "reject", "ask", "undo")
CASE_WORDS = {"approve": "approved", "reject": "rejected", "ask": "sent back"}


@dataclass(frozen=True)
class CaseLink:
    """A case of the same campaign: its formula, where it stands for the person who asks, and whether it is this one."""

    id: str
    text: str
    word: str
    is_here: bool


@dataclass(frozen=True)
class DecidableCase:
    """A case with its page; `shown` is the digest of the record that this page shows.

    `own` is the decision of the person who asks, while they may change it or take it back. `cases` has all of the
    campaign. `is_scored`: it has a page of its own with all evidence.
    """

    case: CasePage
    digest: str
    shown: str
    waits: bool
    paused: bool
    own: str
    cases: list[CaseLink]
    is_scored: bool


def load_case(view: PageRequest) -> DecidableCase | Response:
    """Return the case of a run; whoever must judge it blind and may is sent to the page for that."""
    reviews, name = find_reviewed(view)
    if is_blind_for(view, reviews, name):
        return send_to_judge(reviews.run, name)
    return _load_whole_case(view, reviews, name)


def find_reviewed(view: PageRequest) -> tuple[Reviews, str]:
    """Return the cases of the run in the address, and the id of the one in it."""
    from ....evaluation import Reviews, find_campaign

    reviews = Reviews.of(view.ledger, find_campaign(view.ledger, view.path["run"]))
    return reviews, find_case(reviews, view.path["case"])


def is_blind_for(view: PageRequest, reviews: Reviews, factor: str) -> bool:
    """Tell whether nothing that the gate found on a factor may be shown to who asks, before they judged it blind."""
    if view.ledger.events.get(reviews.run, "case", factor) is None:
        return False
    # Who may not decide has no judgement to spoil, so they read on.
    return view.signer.may(PersonScope.REVIEW_DECIDE) and must_judge(reviews, factor, view.person)


def send_to_judge(run: str, case: str) -> Response:
    """Return the way to the page on which a case is judged blind."""
    return RedirectResponse(f"/runs/{run}/cases/{case}/blind", 303)


def _load_whole_case(view: PageRequest, reviews: Reviews, name: str) -> DecidableCase:
    record, page = load_case_page(reviews, name)
    own = find_own_decision(reviews, name, view.person)
    return DecidableCase(
        case=page,
        digest=compute_digest(record),
        shown=compute_digest(asdict(page)),
        waits=reviews.decision(name) is None or own is not None,
        paused=view.ledger.runs.find(reviews.run).status == "paused",
        own=own.sentence if own else "",
        cases=_list_links(view, reviews, name),
        is_scored=view.ledger.evaluations.get(reviews.run, name) is not None,
    )


def _list_links(view: PageRequest, reviews: Reviews, here: str) -> list[CaseLink]:
    """Return the cases of a campaign in the order of the inbox, without what others think of one to be judged blind."""
    links = []
    for one in sorted(list_cases(reviews), key=lambda case: case.id):
        decision = find_own_decision(reviews, one.id, view.person) or reviews.decision(one.id)
        if decision is None or is_blind_for(view, reviews, one.id):
            word = "waits" if one.waits else "decided"
        else:
            word = f"{CASE_WORDS[decision.decision]} by {'you' if decision.by == view.person else decision.by}"
        links.append(CaseLink(one.id, one.text, word, one.id == here))
    return links


def decide(view: PageRequest, form: dict[str, str]) -> str:
    """Record a person's decision on a case, and return the page of what waits next."""
    (reviews, name), before = find_reviewed(view), read_waiting(view)
    shown = _load_whole_case(view, reviews, name).shown
    refuse_changed(form, shown, name)
    choice = form.get("choice", "")
    if choice not in CASE_CHOICES:
        raise DeskError("No decision was chosen.", field="choice", got=choice, allowed=CASE_CHOICES, code="decision")
    comment = form.get("comment", "").strip()
    request = CaseRequest(name, cast("ReviewChoice", choice), comment, view.person, view.signed_at, shown)
    decide_case(view.ledger, view.ledger.runs.find(reviews.run), request)
    following = before.next_after(f"/runs/{reviews.run}/cases/{name}", read_waiting(view))
    return f"{following}?recorded={choice}"


def refuse_changed(form: dict[str, str], shown: str, case: str) -> None:
    """Refuse a form whose page showed something else than the record has now."""
    if form.get("shown") != shown:
        raise DeskError(
            "What this page showed has changed since it was opened; nothing was recorded.",
            field="case",
            got=case,
            hint="Read the page again, then decide.",
            code="case_changed",
        )


@dataclass(frozen=True)
class AlarmPage:
    """A leak alarm, with the formula and the gate's reasons."""

    run: str
    factor_id: str
    text: str
    rank_ic: float
    limit: float
    reasons: list[dict[str, Any]]


def load_alarm(view: PageRequest) -> AlarmPage:
    """Return the page of a leak alarm."""
    alarm = _find_alarm(view)
    text = next(row.canonical for row in view.ledger.library.rows() if row.factor_id == alarm.factor_id)
    verdict = view.ledger.verdicts.get(alarm.run, alarm.factor_id)
    reasons = [dict(reason) for reason in verdict.reasons] if verdict else []
    return AlarmPage(alarm.run, alarm.factor_id, text, alarm.rank_ic, alarm.limit, reasons)


def acknowledge(view: PageRequest, form: dict[str, str]) -> str:
    """Record that a person acknowledges an alarm, and return the page of what waits next."""
    from ....risk import acknowledge_alarm

    alarm, before = _find_alarm(view), read_waiting(view)
    acknowledge_alarm(view.ledger, alarm, form.get("reason", ""), view.person, view.now)
    return before.next_after(f"/runs/{alarm.run}/alarms/{alarm.factor_id}", read_waiting(view))


def _find_alarm(view: PageRequest) -> LeakAlarm:
    from ....risk import list_alarms

    run, factor = view.path["run"], view.path["factor"]
    alarm = next((one for one in list_alarms(view.ledger) if (one.run, one.factor_id) == (run, factor)), None)
    if alarm is None:
        raise DeskError("No such alarm waits.", field="factor", got=factor, code="unknown_factor")
    return alarm
