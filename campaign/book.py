"""A paper book that lives past its campaigns: each step fills yesterday's targets, values the book, and asks the gate.

A step is one event of the book's run, named by its day, with everything that it read: so it is done once, a step that
was killed is done again with the same result, and `replay_book` computes every account and decision again from the
stored inputs, to the byte. Clocks enter no result; they say only whether a step was on record before the session that
it is for (`late`), and refuse days that are not over.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

import numpy as np

from ..evidence import EvidenceSettings
from ..ledger import Boundaries, Ledger, canonical_json, compute_digest, wait_while_locked
from ..market import Panel
from ..portfolio import DayPrices, Fill, PaperAccount, TradingTerms, trade_day
from ..risk import (
    BP,
    DAYS_OF_TURNOVER,
    UNITS_PER_EQUITY,
    Mode,
    Policy,
    RiskError,
    SignalChange,
    Sizing,
    Standing,
    decide,
    read_policy,
    read_standings,
    size_book,
)
from ..sandbox import Runner
from .book_log import log_steps
from .book_record import (
    STEP_EVENT,
    BookSettings,
    find_book,
    list_flows,
    list_orders,
    list_steps,
    list_waiting_flows,
    list_waiting_orders,
)
from .facts import SymbolFacts, list_sessions, make_state, read_facts
from .sighting import split_rows, watch_library
from .targets import LiveBooks, add_weights, find_live_books
from .trade import HOLIDAY_DAYS, next_trading_day
from .windows import find_windows, name_window, refuse_unpaid_days

CARRIED: Final = ("account", "ungated", "approved", "reducing", "asked", "mode", "recent_e8")
"""What a step takes over from the one before."""
NOTHING_WAITS: Final[dict[str, Any]] = {"flows": [], "orders": []}
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
    mode: Mode = "active"


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
    """

    panel: Panel
    dataset: str
    runner: Runner | None = None
    since: date | None = None
    rules: EvidenceSettings = field(default_factory=EvidenceSettings)

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
        Is called with each line on the library: what is decaying or retired now, or why it was not watched.

    Raises
    ------
    RiskError
        Nothing can be traded, the panel is not the book's, or a day belongs to a window that no trial or opening has
        paid for.
    """
    book, settings = find_book(ledger, name)
    with ExitStack() as held:
        why = "since another process steps this book"
        wait_while_locked(lambda: held.enter_context(ledger.runs.lock(book)), why)
        done = list_steps(ledger, book)
        _refuse_since(data, done)
        rows = data.list_new_rows(done[-1]["day"] if done else "")
        if not rows:
            log_steps(ledger, book, done, clock)
            return []
        known_windows = _check_data(ledger, data, done, rows, clock().date())
        watch_library(ledger, data.panel, data.dataset, data.rules, data.runner, noted)
        waiting, steps = _list_waiting(ledger, book, done), list[BookStep]()
        for part in split_rows(ledger, data.panel, rows):
            live = _find_live(ledger, data, settings, done, part[0])
            refuse_unpaid_days(ledger, data.panel, data.dataset, part, live.sizing.evidence, known_windows)
            terms = _read_terms(ledger, live, settings)
            for row in part:
                last = done[-1] if done else begin(settings)
                inputs = {**terms, **_read_day(data.panel, row, live.parts(row), last, terms["policy"]), **waiting}
                done.append(_record_step(ledger, book, inputs, last, known_windows, clock()))
                waiting = NOTHING_WAITS
                steps.append(read_step(done[-1]))
                told(steps[-1])
            log_steps(ledger, book, done, clock)
        return steps


def _list_waiting(ledger: Ledger, book: str, done: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the flows of money and the orders that no step has taken in, by number."""
    flows = list_waiting_flows(list_flows(ledger, book), done)
    orders = list_waiting_orders(list_orders(ledger, book), done)
    return {"flows": [[one.key, one.amount] for one in flows], "orders": [[one.key, one.mode] for one in orders]}


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
    _refuse_data(data, rows, done[-1] if done else None, today)
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


def _refuse_data(data: BookData, rows: Sequence[int], last: Mapping[str, Any] | None, today: date) -> None:
    """Refuse a panel that is not the book's, and days that are not over."""
    if (newest := str(data.panel.dates[rows[-1]])) > today.isoformat():
        raise _data_error("The panel has days that are still to come.", newest, f"days up to {today.isoformat()}")
    if last is None:
        return
    if last["day"] not in {str(day) for day in data.panel.dates[max(rows[0] - 1, 0) : rows[0]]}:
        raise _data_error(
            "The panel lacks the day of the last step.", str(data.panel.dates[0]), f"a row for {last['day']}"
        )
    held = last["account"]["holdings"]
    there = len({*held} & {*data.panel.symbols})
    if there < MIN_HELD_SHARE * len(held):
        raise _data_error(
            "The panel is of other symbols.", f"{there} of {len(held)} held", "the symbols that the book holds"
        )


def _data_error(message: str, got: str, allowed: str) -> RiskError:
    return RiskError(message, field="--panel", got=got, allowed=allowed, hint="Nothing was stepped.", code="book_data")


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


def _read_terms(ledger: Ledger, live: LiveBooks, settings: BookSettings) -> dict[str, Any]:
    """Return what every step of one call rests on, as a JSON-able object."""
    sizing, known = live.sizing, read_standings(ledger, live.sizing.evidence)
    return {
        "sizing": [sizing.horizon_days, sizing.doubt_e8, sizing.reason, sizing.evidence],
        "policy": live.tighten(read_policy(ledger.workspace)).model_dump(mode="json"),
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
    panel: Panel, row: int, parts: Mapping[str, Mapping[str, float]], last: Mapping[str, Any], limits: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a step reads of a day and of the step before, as a JSON-able object."""
    held = {**last["ungated"]["holdings"], **last["account"]["holdings"]}
    names = sorted({*held, *last["approved"], *last["asked"]})
    past, priced = panel.rows(0, row + 1), {*names}.union(*parts.values())
    facts = read_facts(past, priced, with_styles=limits["style_cap_bp"] is not None)
    return {
        **{part: last[part] for part in CARRIED},
        "approved_for": last["decided_for"],
        "prices": _read_prices(panel, row, names, {name: holding[2] for name, holding in held.items()}),
        "parts": parts,
        "facts": {name: one.record() for name, one in facts.items()},
        "sessions": [day.isoformat() for day in list_sessions(past)],
        "decided_for": next_trading_day(past.dates, past.calendar).isoformat(),
    }


def _read_prices(panel: Panel, row: int, names: list[str], seen: Mapping[str, str]) -> dict[str, Any]:
    """Return the day's prices of some symbols, and each holding's close on the day of its last value.

    `seen` is the day of the last value of each holding.
    """
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    valued = {day: int(np.searchsorted(panel.dates, np.datetime64(day, "D"))) for day in {*seen.values()}}
    rows = {day: place for day, place in valued.items() if place < panel.days and str(panel.dates[place]) == day}

    def at(field: str, places: Mapping[str, int]) -> dict[str, float]:
        """Return the cells that have a price, by symbol; row -1 is before the panel."""
        values = panel.fields[field]
        cells = {
            name: float(values[place, column[name]]) for name, place in places.items() if name in column and place >= 0
        }
        return {name: cell for name, cell in cells.items() if np.isfinite(cell) and (cell > 0 or field == "volume")}

    today, last = dict.fromkeys(names, row), {name: rows[day] for name, day in seen.items() if day in rows}
    opens, closes, volumes = (at(field, today) for field in ("open", "close", "volume"))
    if panel.volumes == "quoted" and "close_raw" in panel.fields:  # in shares of the closes, as the book holds them
        quotes = at("close_raw", today)
        volumes |= {name: volumes[name] * quotes[name] / closes[name] for name in {*volumes} & {*quotes} & {*closes}}
    return {
        "day": str(panel.dates[row]),
        "opens": opens,
        "closes": closes,
        "volumes": volumes,
        "last": at("close", last),
        "before": at("close", {name: place - 1 for name, place in last.items()}),
        "previous": at("close", dict.fromkeys(names, row - 1)),
    }


def take_step(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a step from its inputs alone, as a JSON-able object: the same bytes for the same inputs."""
    settings = BookSettings.model_validate(inputs["settings"])
    prices = DayPrices(**inputs["prices"])
    policy = Policy.model_validate_json(json.dumps(inputs["policy"]))
    flow = sum_flows(inputs["flows"])
    before, plain = (PaperAccount.restore(inputs[part]).with_flow(flow) for part in ("account", "ungated"))
    before, mode = _obey(before, inputs["mode"], [mode for _, mode in inputs["orders"]])
    approved = _choose_orders(inputs, policy, mode, prices.day)
    account, fills = _trade(before, approved, prices, settings.trading, inputs["reducing"])
    ungated, _ = _trade(plain, inputs["asked"], prices, settings.trading)
    horizon, doubt, reason, evidence = inputs["sizing"]
    weights = add_weights(inputs["parts"]) if account.equity > 0 else {}  # a ruined book is closed
    mode = _halt(mode, account, policy)
    recent = [*inputs["recent_e8"], _measure_turnover(fills, account)][1 - DAYS_OF_TURNOVER :]
    day = date.fromisoformat(inputs["decided_for"])
    facts = {name: SymbolFacts(*row) for name, row in inputs["facts"].items()}
    sessions = tuple(date.fromisoformat(session) for session in inputs["sessions"])
    state = replace(make_state(account, facts, sessions), mode=mode, recent_e8=tuple(recent))
    until = day + timedelta(days=HOLIDAY_DAYS)
    sized = size_book(weights, Sizing(horizon, doubt, reason, evidence), policy, until, state.positions)
    decision = decide(sized.signals, state, policy, day, _standings(inputs))
    return {
        "day": prices.day,
        "decided_for": inputs["decided_for"],
        "account": account.record(),
        "ungated": ungated.record(),
        "fills": [[fill.symbol, fill.shares, fill.price, fill.cost, fill.short_of] for fill in fills],
        "decision": decision.record(),
        "approved": {one.signal.asset: one.signal.target_e8 for one in decision.approved},
        "reducing": sorted(
            one.signal.asset
            for one in decision.approved
            if SignalChange(one.signal, state.positions.get(one.signal.asset, 0)).reduces
        ),
        "asked": {signal.asset: signal.target_e8 for signal in sized.signals},
        "flows": inputs["flows"],
        "orders": inputs["orders"],
        "mode": mode,
        "recent_e8": recent,
        "library": inputs["library"],
    }


def _obey(account: PaperAccount, mode: Mode, orders: Sequence[Mode]) -> tuple[PaperAccount, Mode]:
    """Return the account and the state of trading after people's orders.

    A resumed book counts its falls from where it stands, also one that only its trailing drawdown held to reductions.
    """
    for order in orders:
        if order == "active":
            account = replace(account, high_water=account.equity)
        mode = order
    return account, mode


def _choose_orders(inputs: Mapping[str, Any], policy: Policy, mode: Mode, day: str) -> Mapping[str, int]:
    """Return the approved targets that are still to be filled."""
    if policy.kill_switch or mode == "halted" or not _is_current(inputs["approved_for"], day):
        return {}
    approved: Mapping[str, int] = inputs["approved"]
    return approved if mode == "active" else {name: approved[name] for name in inputs["reducing"]}


def _halt(mode: Mode, account: PaperAccount, policy: Policy) -> Mode:
    """Return the state of trading at a close: a book that has fallen too far is halted until people resume it."""
    fall = account.high_water - account.equity
    return "halted" if fall * BP > policy.max_drawdown_cap_bp * account.high_water else mode


def _measure_turnover(fills: Sequence[Fill], account: PaperAccount) -> int:
    """Return what was bought and sold, in 1e-8 of equity."""
    traded = math.fsum(abs(fill.shares * fill.price) for fill in fills)
    return round(traded / account.equity * UNITS_PER_EQUITY) if account.equity > 0 else 0


def sum_flows(flows: Iterable[tuple[str, float]]) -> float:
    """Return the money of a step's flows."""
    return math.fsum(amount for _, amount in flows)


def gate_days(
    ledger: Ledger, panel: Panel, live: LiveBooks, settings: BookSettings, rows: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the steps of a book that nobody keeps: nothing is recorded."""
    terms, last = _read_terms(ledger, live, settings), begin(settings)
    for row in rows:
        day = _read_day(panel, row, live.parts(row), last, terms["policy"])
        last = take_step({**terms, **day, **NOTHING_WAITS})
        yield last


def _is_current(decided_for: str, day: str) -> bool:
    """Return whether an approval still holds: its session may have been moved by a holiday, and by no more."""
    return not decided_for or (date.fromisoformat(day) - date.fromisoformat(decided_for)).days <= HOLIDAY_DAYS


def _trade(
    account: PaperAccount,
    targets: Mapping[str, int],
    prices: DayPrices,
    trading: TradingTerms,
    reducing: Collection[str] = (),
) -> tuple[PaperAccount, tuple[Fill, ...]]:
    shares = {name: target / UNITS_PER_EQUITY for name, target in targets.items()}
    return trade_day(account, shares, prices, trading, reducing)


def _standings(inputs: Mapping[str, Any]) -> dict[str, Standing]:
    return {
        name: Standing(**{**record, "members": tuple(record["members"])})
        for name, record in inputs["standings"].items()
    }


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
    )
