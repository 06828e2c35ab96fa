"""A paper book that lives past its campaigns: each step fills yesterday's targets, values the book, and asks the gate.

A step is one event of the book's run, named by its day, with everything that it read: so it is done once, a step that
was killed is done again with the same result, and `replay_book` computes every account and decision again from the
stored inputs, to the byte. Clocks enter no result; they say only whether a step was on record before the session that
it is for (`late`), and refuse days that are not over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

import numpy as np

from ..evidence import EvidenceSettings
from ..ledger import Boundaries, Ledger, canonical_json, compute_digest, find_account
from ..market import Panel
from ..portfolio import Fill, PaperAccount
from ..risk import (
    Mode,
    RiskError,
    RiskLimits,
    Sizing,
    list_ids,
    read_policy,
    read_standings,
)
from ..sandbox import Runner
from .book_log import log_steps
from .book_record import (
    STEP_EVENT,
    BookFlow,
    BookOrder,
    BookSettings,
    find_book,
    hold_book,
    list_flows,
    list_orders,
    list_steps,
    list_waiting_flows,
    list_waiting_orders,
)
from .changes import list_common_versions, record_versions
from .facts import bind_policy, list_sessions, read_facts, read_prices, trace_holdings
from .session.fills import find_executed, find_untaken, list_executed, refuse_skipped
from .session.step import sum_flows, take_step
from .sighting import split_rows, watch_library
from .targets import LiveBooks, find_live_books, open_computing
from .trade import audit_evidence, next_trading_day
from .windows import find_windows, name_window, refuse_unpaid_days

CARRIED: Final = ("account", "ungated", "approved", "reducing", "asked", "mode", "recent_e8")
"""What a step takes over from the one before."""
NOTHING_GIVEN: Final[dict[str, Any]] = {"flows": [], "orders": [], "revised": None}
MIN_HELD_SHARE: Final = 0.5
"""Share of the held symbols that a panel must have to be the book's."""


@dataclass(frozen=True)
class BookStep:
    """One day of a book.

    Attributes
    ----------
    day, decided_for
        The close that is known, and the session for which targets were decided.
    account, ungated
        The book at that close, and what it would be had the gate approved everything.
    fills
        What was traded at the day's opens.
    decision
        The gate's answer, as recorded.
    approved
        Share of equity in 1e-8 of each symbol that was approved.
    flow
        Money that people paid in before the day's open, negative where they took it out.
    library
        What was traded: the share of each run's book with its factors, which factors were decaying, and why other
        books were left out.
    window
        The window of a campaign to which the day belongs: search, selection, sealed, or empty.
    mode
        What may pass: everything ("active"), only what reduces ("reducing"), or nothing ("halted").
    late
        Whether the step was recorded on the day that it is for, or later: then it is no forward evidence.
    renamed
        Each symbol that changed since the step before, with its new one.
    corrections
        What a panel corrected by more than 5 %, which is profit or loss: symbol, price that was, price now.
    held_back
        Symbols whose approved increases were dropped, since too much money came in.
    revised
        Why the panel may lack the day of the step before, and who said so; None where it has it.
    unpaid
        Keys of the withdrawals that wait, since the book may not sell for them.
    """

    day: str
    decided_for: str
    account: PaperAccount
    ungated: PaperAccount
    fills: tuple[Fill, ...]
    decision: Mapping[str, Any]
    approved: Mapping[str, int]
    flow: float
    library: Mapping[str, Any]
    window: str
    late: bool
    mode: Mode
    renamed: Mapping[str, str]
    corrections: Sequence[tuple[str, float, float]]
    held_back: Sequence[str]
    revised: tuple[str, str] | None
    unpaid: Sequence[str] = ()


@dataclass(frozen=True)
class BookData:
    """What a book is stepped on.

    Attributes
    ----------
    panel, dataset
        The newest data; days that the book has seen are not read again, but for the prices of what it holds.
    runner
        Where Python factors run.
    since
        The first day of a new book, whose close is the first that is decided on; the panel's last day by default.
    rules
        How the library is watched on new days.
    limits
        What a campaign file asks of the risk gate: it may tighten the policy.
    revised
        Why the panel lacks the day of the last step, and who says so: the book goes on from the panel's last day
        before it.
    """

    panel: Panel
    dataset: str
    runner: Runner | None = None
    since: date | None = None
    rules: EvidenceSettings = field(default_factory=EvidenceSettings)
    limits: RiskLimits | None = None
    revised: tuple[str, str] | None = None

    def list_new_rows(self, last: str) -> range:
        """Return the rows after a day, or those of a new book."""
        dates = self.panel.dates
        if last:
            return range(int(np.searchsorted(dates, np.datetime64(last, "D"), side="right")), self.panel.days)
        since = dates[-1] if self.since is None else np.datetime64(self.since, "D")
        return range(int(np.searchsorted(dates, since)), self.panel.days)


def step_book(
    ledger: Ledger,
    name: str,
    data: BookData,
    clock: Callable[[], datetime],
    told: Callable[[BookStep], None] = lambda step: None,
    noted: Callable[[str], None] = lambda line: None,
) -> list[BookStep]:
    """Take a book through every day of a panel after its last step, and return the new steps.

    Another process that steps the book is waited for. The library is watched on the panel first, once.

    Parameters
    ----------
    clock
        Returns the present time: it decides whether a step is late, and refuses days that are still to come.
    told
        Is called after each step.
    noted
        Is called with each line on the library (what is decaying or retired now, or why it was not watched), and on
        symbols of the policy that the panel does not have.

    Raises
    ------
    RiskError
        Nothing can be traded, the panel is not the book's, or a day belongs to a window that no trial or opening has
        paid for.
    """
    book, settings = find_book(ledger, name)
    with hold_book(ledger, book):
        done = list_steps(ledger, book)
        _refuse_since(data, done)
        rows = data.list_new_rows(done[-1]["day"] if done else "")
        if not rows:
            log_steps(ledger, book, done, clock)
            return []
        known_windows = _check_data(ledger, data, done, rows, clock().date())
        watch_library(ledger, data.panel, data.dataset, data.rules, data.runner, noted)
        revised = data.revised if done and _lacks_last_day(data, rows, done[-1]) else None
        waiting, steps = _Waiting.read(ledger, book, done, revised), list[BookStep]()
        policy = read_policy(ledger.workspace)
        record_versions(ledger, book, list_common_versions(policy), find_account())
        for line in bind_policy(policy, data.panel)[1]:
            noted(line)
        for part in split_rows(ledger, data.panel, rows):
            live = _find_live(ledger, data, settings, done, part[0])
            refuse_unpaid_days(ledger, data.panel, data.dataset, part, live.sizing.evidence, known_windows)
            _audit_live(ledger, data, live, part[0], book)
            terms = _read_terms(ledger, live, settings, data.panel, data.limits)
            for row in part:
                last = done[-1] if done else begin(settings)
                given = waiting.take(str(data.panel.dates[row]))
                read = _read_day(data.panel, row, live.parts(row), last, terms["policy"], given.get("executed"))
                inputs = {**terms, **read, **given}
                done.append(_record_step(ledger, book, inputs, last, known_windows, clock()))
                waiting.keep(done[-1])
                steps.append(read_step(done[-1]))
                told(steps[-1])
            log_steps(ledger, book, done, clock)
        return steps


@dataclass
class _Waiting:
    """What people gave a book and no step has taken in, and the fills of sessions that were executed."""

    flows: list[BookFlow]
    orders: list[BookOrder]
    revised: tuple[str, str] | None
    read_fills: Callable[[str], dict[str, Any] | None]
    untaken: list[str]
    taken: list[BookFlow] = field(default_factory=list)

    @classmethod
    def read(
        cls, ledger: Ledger, book: str, done: Sequence[Mapping[str, Any]], revised: tuple[str, str] | None
    ) -> _Waiting:
        """Return what waits; nobody gives more while the book is held."""
        flows = list_waiting_flows(list_flows(ledger, book), done)
        orders = list_waiting_orders(list_orders(ledger, book), done)
        untaken = find_untaken(ledger, book, done[-1]["day"] if done else "")
        return cls(flows, orders, revised, find_executed(ledger, book), untaken)

    def take(self, day: str) -> dict[str, Any]:
        """Take out what was given before a day, each with the digest of its record, as a JSON-able object.

        Raises
        ------
        RiskError
            The book traded in another session that no step has taken in, or its orders of the day have not ended.
        """
        refuse_skipped(self.untaken, day)
        self.untaken = []
        flows = [one for one in self.flows if one.precedes(day)]
        orders = [one for one in self.orders if one.precedes(day)]
        taken = {
            "flows": [[one.key, one.amount, one.digest] for one in flows],
            "orders": [[one.key, one.mode, one.is_signed_twice, one.digest] for one in orders],
            "revised": list(self.revised) if self.revised else None,
        }
        self.flows, self.taken = [one for one in self.flows if one not in flows], flows
        self.orders = [one for one in self.orders if one not in orders]
        self.revised = None
        executed = self.read_fills(day)
        return {**taken, "executed": executed} if executed else taken

    def keep(self, step: Mapping[str, Any]) -> None:
        """Put back the withdrawals that a step could not pay."""
        self.flows = [*(one for one in self.taken if one.key in step.get("unpaid", ())), *self.flows]


def _record_step(
    ledger: Ledger,
    book: str,
    inputs: Mapping[str, Any],
    last: Mapping[str, Any],
    known_windows: Sequence[Boundaries],
    now: datetime,
) -> dict[str, Any]:
    """Compute a step from its inputs, record both, and return its record."""
    body = take_step(inputs)
    body |= {
        "late": now.date().isoformat() >= body["decided_for"],
        "window": name_window(known_windows, body["day"]),
        "inputs": ledger.objects.put(canonical_json(inputs).encode()),
        "after": compute_digest(last),
    }
    ledger.events.record(book, STEP_EVENT, body["day"], body)
    return body


def _check_data(
    ledger: Ledger, data: BookData, done: Sequence[Mapping[str, Any]], rows: Sequence[int], today: date
) -> list[Boundaries]:
    """Return the windows that campaigns fixed on the data of a step; refuse data that is not the book's."""
    refuse_data(data, rows, done[-1] if done else None, today)
    known_windows = find_windows(ledger, data.panel, data.dataset)
    if not done and not known_windows and len(rows) > 1:
        raise _data_error(
            "No campaign has fixed windows on this data, so earlier days may still become sealed ones.",
            f"{len(rows)} days",
            "a new book that begins on the panel's last day, or data on which a campaign has run",
        )
    return known_windows


def _refuse_since(data: BookData, done: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a first day for a book that has begun on another one; the same command again goes on."""
    if not done or data.since is None:
        return
    rows = data.list_new_rows("")
    first = str(data.panel.dates[rows.start]) if rows else data.since.isoformat()
    if first != done[0]["day"]:
        raise RiskError(
            "A first day is for a book without steps, and this one has begun.",
            field="--since",
            got=data.since.isoformat(),
            allowed=f"no --since: the book goes on after its last step, {done[-1]['day']}",
            hint="Open another book to begin on another day.",
            code="book_since",
        )


def refuse_data(data: BookData, rows: Sequence[int], last: Mapping[str, Any] | None, today: date) -> None:
    """Refuse a panel that is not the book's, and days that are not over."""
    if (newest := str(data.panel.dates[rows[-1]])) > today.isoformat():
        raise _data_error("The panel has days that are still to come.", newest, f"days up to {today.isoformat()}")
    if last is None:
        return
    if not _lacks_last_day(data, rows, last) or (data.revised and rows[0]):
        held = {symbol: holding[2] for symbol, holding in last["account"]["holdings"].items()}
        there = len({data.panel.trace(symbol, day) for symbol, day in held.items()} & {*data.panel.symbols})
        if there < MIN_HELD_SHARE * len(held):
            hint = (
                "If they were renamed, list date, symbol and new_symbol in a file, and name it in a campaign file "
                "(market.symbol_changes) for --campaign."
            )
            got, allowed = f"{there} of {len(held)} held", "the symbols that the book holds, or their changes"
            raise _data_error("The panel is of other symbols.", got, allowed, hint)
        return
    hint = (
        "If the day was a mistake of an earlier panel, add --revised REASON --by WHO: the book goes on from the last "
        "day before it, and what was filled stays."
    )
    got = f"{data.panel.dates[0]} to {data.panel.dates[-1]}"
    raise _data_error("The panel lacks the day of the last step.", got, f"a row for {last['day']}", hint)


def _lacks_last_day(data: BookData, rows: Sequence[int], last: Mapping[str, Any]) -> bool:
    return last["day"] not in {str(day) for day in data.panel.dates[max(rows[0] - 1, 0) : rows[0]]}


def _data_error(message: str, got: str, allowed: str, hint: str = "") -> RiskError:
    hint = f"Nothing was stepped. {hint}".strip()
    return RiskError(message, field="--panel", got=got, allowed=allowed, hint=hint, code="book_data")


def _find_live(
    ledger: Ledger, data: BookData, settings: BookSettings, done: Sequence[Mapping[str, Any]], row: int
) -> LiveBooks:
    """Return what is traded, as the library was known at a row.

    Where that is nothing any more, what is held is closed under its last evidence.
    """
    try:
        return find_live_books(ledger, data.panel, data.runner, settings.run, row)
    except RiskError as error:
        if error.code != "no_targets" or not done or not done[-1]["account"]["holdings"]:
            raise
        last = json.loads(ledger.objects.get(done[-1]["inputs"]))["sizing"]
        return LiveBooks({}, {}, [], data.panel.symbols, closing=Sizing(*last))


def _audit_live(ledger: Ledger, data: BookData, live: LiveBooks, row: int, book: str) -> None:
    """Audit what is traded for the attributes of the policy, once, on the days up to a row."""
    policy = live.tighten(read_policy(ledger.workspace), data.limits)
    if policy.audited:
        computing = open_computing(ledger, data.panel.rows(0, row + 1), data.runner)
        audit_evidence(ledger, computing, policy, list_ids(live.sizing.evidence), book)


def _read_terms(
    ledger: Ledger, live: LiveBooks, settings: BookSettings, panel: Panel, limits: RiskLimits | None = None
) -> dict[str, Any]:
    """Return what every step of one call rests on, as a JSON-able object."""
    sizing, known = live.sizing, read_standings(ledger, live.sizing.evidence)
    policy, _ = bind_policy(live.tighten(read_policy(ledger.workspace), limits), panel)
    return {
        "sizing": [sizing.horizon_days, sizing.doubt_e8, sizing.reason, sizing.evidence],
        "policy": policy.model_dump(mode="json"),
        "standings": {
            name: {**standing.record(), "status": live.statuses.get(name, standing.status)}
            for name, standing in known.items()
        },
        "settings": settings.model_dump(mode="json"),
        "library": {
            "books": {
                run: {"share": share, "factors": dict(book.weights)} for run, (book, share) in live.books.items()
            },
            "decaying": [name for name, status in live.statuses.items() if status == "decaying"],
            "left_out": dict(live.left_out),
        },
    }


def begin(settings: BookSettings) -> dict[str, Any]:
    """Return what stands before a book's first step."""
    account = PaperAccount.of_cash(settings.cash).record()
    plain: dict[str, Any] = {"approved": {}, "reducing": [], "asked": {}, "mode": "active", "recent_e8": []}
    return {"account": account, "ungated": account, "decided_for": "", **plain}


def _read_day(
    panel: Panel,
    row: int,
    parts: Mapping[str, Mapping[str, float]],
    last: Mapping[str, Any],
    limits: Mapping[str, Any],
    executed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what a step reads of a day and of the step before, as a JSON-able object."""
    held = {**last["ungated"]["holdings"], **last["account"]["holdings"]}
    days = dict.fromkeys({*last["approved"], *last["asked"]}, last.get("day", ""))
    renamed = trace_holdings(panel, {**days, **{name: holding[2] for name, holding in held.items()}})
    names = sorted({renamed.get(name, name) for name in (*held, *days)})
    kept_days = list_kept_days(last)
    for fill in list_executed(executed):
        kept_days.setdefault(fill.symbol, set()).update(filter(None, (fill.day, fill.before_day)))
    past, priced = panel.rows(0, row + 1), {*names}.union(*parts.values())
    facts = read_facts(past, priced, with_styles=limits["style_cap_bp"] is not None)
    return {
        **{part: last[part] for part in CARRIED},
        "approved_for": last["decided_for"],
        "prices": read_prices(panel, row, names, kept_days, renamed),
        "parts": parts,
        "facts": {name: one.record() for name, one in facts.items()},
        "sessions": [day.isoformat() for day in list_sessions(past)],
        "decided_for": next_trading_day(past.dates, past.calendar).isoformat(),
    }


def list_kept_days(last: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the days whose closes the two accounts keep of each holding."""
    kept: dict[str, set[str]] = {}
    for part in ("account", "ungated"):
        for name, one in PaperAccount.restore(last[part]).holdings.items():
            kept.setdefault(name, set()).update(day for day in (one.day, one.before_day) if day)
    return kept


def gate_days(
    ledger: Ledger, panel: Panel, live: LiveBooks, settings: BookSettings, rows: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the steps of a book that nobody keeps: nothing is recorded."""
    terms, last = _read_terms(ledger, live, settings, panel), begin(settings)
    for row in rows:
        day = _read_day(panel, row, live.parts(row), last, terms["policy"])
        last = take_step({**terms, **day, **NOTHING_GIVEN})
        yield last


def read_step(body: Mapping[str, Any]) -> BookStep:
    """Return a recorded step."""
    return BookStep(
        body["day"],
        body["decided_for"],
        PaperAccount.restore(body["account"]),
        PaperAccount.restore(body["ungated"]),
        tuple(Fill(*fill) for fill in body["fills"]),
        body["decision"],
        body["approved"],
        sum_flows(body["flows"]),
        body["library"],
        body["window"],
        body["late"],
        body["mode"],
        body["renamed"],
        tuple(tuple(row) for row in body["corrections"]),
        tuple(body["held_back"]),
        tuple(body["revised"]) if body["revised"] else None,
        tuple(body.get("unpaid", ())),
    )
