"""The inbox: everything in a workspace that waits for a person, in one list, the most pressing first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ...blind import must_judge
from ...decisions import describe_approvals, find_own_decision
from ...figures import number, percent, plural
from ...revalidation import read_revalidation_dates

if TYPE_CHECKING:
    from ....ledger import Ledger
    from ..pages import PageRequest

KINDS = {
    "halt": "book halted",
    "alarm": "leak alarm",
    "seal": "sealed days to open",
    "case": "factor to decide",
    "resume": "campaign to resume",
    "decay": "decaying factor",
    "revalidate": "factor to look at again",
    "text": "text held back",
    "refusals": "refused by the risk gate",
}
"""Kinds of what waits, the most pressing first, with their words."""


@dataclass(frozen=True)
class Waiting:
    """One thing that waits.

    Attributes
    ----------
    kind
        One of `KINDS`.
    title, detail
        What it is, and what is known of it, in words.
    since
        The day or instant since which it waits, ISO; empty where the record does not say.
    href
        The page on which a person decides.
    """

    kind: str
    title: str
    detail: str
    since: str
    href: str

    @property
    def word(self) -> str:
        """Return the words for its kind."""
        return KINDS[self.kind]


@dataclass(frozen=True)
class Inbox:
    """What waits, the most pressing first; and whether the workspace asks for a first judgement before the verdict."""

    waiting: tuple[Waiting, ...]
    asks_blind: bool = False

    def next_after(self, href: str, now: Inbox) -> str:
        """Return the page of what follows a thing in this inbox and still waits `now`, the first after the last.

        Where nothing of it waits, it is the first of what waits now, or the inbox.
        """
        places, left = [one.href for one in self.waiting], [one.href for one in now.waiting if one.href != href]
        at = places.index(href) + 1 if href in places else 0
        return next((one for one in (*places[at:], *places[:at], *left) if one in left), "/inbox")


def read_inbox(ledger: Ledger, person: str, now: datetime) -> Inbox:
    """Return what waits in a workspace for a person: not what they have approved and another person is to approve.

    `now` decides which accepted factors are due to be looked at again.
    """
    from ....risk import read_policy

    found = [*_list_books(ledger), *_list_alarms(ledger), *_list_cases(ledger, person), *_list_decay(ledger)]
    found += [*_list_seals(ledger), *_list_reviewed(ledger), *_list_due(ledger, now), *_list_texts(ledger)]
    order = {kind: place for place, kind in enumerate(KINDS)}
    waiting = tuple(sorted(found, key=lambda one: (order[one.kind], one.since, one.href)))
    return Inbox(waiting, read_policy(ledger.workspace).judge_blind)


def read_waiting(view: PageRequest) -> Inbox:
    """Return what waits for the person who asks."""
    return read_inbox(view.ledger, view.person, view.now)


def _list_cases(ledger: Ledger, person: str) -> Iterator[Waiting]:
    from ....evaluation import Reviews
    from ....risk import read_policy

    asks_blind = read_policy(ledger.workspace).judge_blind
    for run in ledger.runs.all():
        reviews = Reviews.of(ledger, run)
        if not reviews.required or run.status == "done":
            continue
        cases = reviews.cases()
        for name in reviews.waiting():
            if find_own_decision(reviews, name, person) is not None:
                continue
            row, approvals = cases[name], describe_approvals(reviews, name)
            if asks_blind and must_judge(reviews, name, person):
                approvals = "To be judged blind first"  # what others think would be no blind judgement
            idea = ledger.events.get(run.id, "agents.hypothesis", row.hypothesis)
            statement = str(idea.body.get("statement", "")) if idea else ""
            words = f"{statement or 'No hypothesis stated.'} {_describe_sheet(row.sheet)}"
            words = f"{approvals[:1].upper()}{approvals[1:]}. {words}" if approvals else words
            yield Waiting("case", row.canonical, words, run.started_at, f"/runs/{run.id}/cases/{name}")


def _describe_sheet(sheet: Mapping[str, Any]) -> str:
    """Return the figures of search days by which one case differs from another; nothing that the gate found."""
    rank_ic, t = number(sheet.get("rank_ic"), 3, sign=True), number(sheet.get("t"), 1, sign=True)
    parts = [f"On search days RankIC {rank_ic} (t {t})"]
    if sheet.get("net_sharpe") is not None:
        parts.append(f"Sharpe ratio after costs {number(sheet['net_sharpe'], 2, sign=True)}")
    if sheet.get("turnover") is not None:
        parts.append(f"turnover {percent(sheet['turnover'])} a day")
    return ", ".join(parts) + "."


def _list_reviewed(ledger: Ledger) -> Iterator[Waiting]:
    """Yield each campaign that is paused although all its cases are decided: a person has to let it go on."""
    from ....evaluation import Reviews
    from ....evaluation.closing import SealRequests

    for run in ledger.runs.all():
        if run.status != "paused" or Reviews.of(ledger, run).waiting() or ledger.runs.is_held(run.id):
            continue
        if SealRequests(ledger, run.id).waits():
            continue
        words = "All its cases are decided: open it and press Resume. Until then you may change a decision of yours."
        yield Waiting("resume", run.id, words, run.started_at, f"/runs/{run.id}")


def _list_seals(ledger: Ledger) -> Iterator[Waiting]:
    from ....evaluation.closing import SealRequests

    for run in ledger.runs.all():
        seals = SealRequests(ledger, run.id)
        request = seals.request() if run.status == "paused" and seals.waits() else None
        if request is None:
            continue
        before = f"opened {len(request.earlier)} times before" if request.earlier else "never opened before"
        days = f"{request.days:,} days, {request.first_day} to {request.last_day}, {before}"
        detail = f"Of {request.dataset}: {days}. {plural(len(request.accepted), 'accepted factor')} to examine."
        yield Waiting("seal", run.id, detail, run.started_at, f"/runs/{run.id}/seal")


def _list_alarms(ledger: Ledger) -> Iterator[Waiting]:
    from ....risk import list_alarms

    texts = {row.factor_id: row.canonical for row in ledger.library.rows()}
    for alarm in list_alarms(ledger):
        size = f"RankIC {number(alarm.rank_ic, 3, sign=True)} on selection days, alarm above {number(alarm.limit, 3)}"
        yield Waiting("alarm", texts[alarm.factor_id], size, "", f"/runs/{alarm.run}/alarms/{alarm.factor_id}")


def _list_decay(ledger: Ledger) -> Iterator[Waiting]:
    texts = {row.factor_id: row.canonical for row in ledger.library.rows()}
    last = {change.factor_id: change for change in ledger.library.standings()}
    for name, change in last.items():
        if change.status == "decaying" and name in texts:
            yield Waiting("decay", texts[name], change.reason, change.day, f"/library/{name}")


def _list_due(ledger: Ledger, now: datetime) -> Iterator[Waiting]:
    """Yield the accepted factors whose day has come; the day is when the page began to wait."""
    due = {name: one for name, one in read_revalidation_dates(ledger).items() if one.is_past(now)}
    texts = {row.factor_id: row.canonical for row in ledger.library.rows()} if due else {}
    for name, one in due.items():
        who = f"looked at by {one.last.by}" if one.last else "taken in"
        yield Waiting("revalidate", texts[name], f"{who} on {one.since}", one.due or "", f"/library/{name}")


def _list_texts(ledger: Ledger) -> Iterator[Waiting]:
    from ....news import NEWS_FOLDER, NewsStore

    folder = ledger.workspace / NEWS_FOLDER
    if not folder.is_dir():
        return
    with NewsStore(folder) as store:
        for held in store.list_quarantine(datetime.max.replace(tzinfo=UTC)):
            signs = ", ".join(dict.fromkeys(sign.name for sign in held.signs))
            yield Waiting("text", held.item.title, signs, held.since.isoformat(), f"/texts/{held.item.id}")


def _list_books(ledger: Ledger) -> Iterator[Waiting]:
    from ....campaign import read_step, read_trading_mode

    for run in ledger.runs.all():
        if "book" not in run.config:
            continue
        name = run.id.removeprefix("book-")
        step, mode, ordered = read_trading_mode(ledger, run.id)
        last = read_step(step) if step else None
        if mode != "active":
            word = "nothing passes" if mode == "halted" else "only reductions pass"
            reason = ordered[-1].reason if ordered else "by its own limit"
            yield Waiting("halt", name, f"{word}: {reason}", last.day if last else "", f"/books/{name}")
        refused = sum(not ruling["approved"] for ruling in last.decision["rulings"]) if last else 0
        if last and refused:
            detail = f"{plural(refused, 'target')} refused for {last.decided_for}"
            yield Waiting("refusals", name, detail, last.day, f"/books/{name}")
