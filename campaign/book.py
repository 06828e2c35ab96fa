"""A paper book that lives past its campaigns: each step fills yesterday's targets, values the book, and asks the gate.

A book is a run of the ledger whose id begins with "book-". A step is one event, named by its day, with everything that
it read: so it is done once, a step that was killed is done again with the same result, and `replay_book` computes every
account and decision again from the stored inputs, to the byte. Clocks enter no result; they say only whether a step was
on record before the session that it is for (`late`), and refuse days that are not over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ..evidence.scoring import Costs
from ..ledger import Ledger, Run, canonical_json, compute_digest
from ..market import Panel
from ..portfolio import DayPrices, Fill, PaperAccount, TradingTerms, trade_day
from ..risk import (
    UNITS_PER_EQUITY,
    BookState,
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
from .facts import SymbolFacts, list_sessions, read_facts
from .targets import LiveBooks, find_live_books
from .trade import CENTS, HOLIDAY_DAYS, next_trading_day
from .windows import find_windows, name_window, refuse_unpaid_days

PREFIX: Final = "book-"
STEP_EVENT: Final = "book.step"
CARRIED: Final = ("account", "ungated", "approved", "reducing", "asked")
"""What a step takes over from the one before."""
MIN_HELD_SHARE: Final = 0.5
"""Share of the held symbols that a panel must have to be the book's."""


class BookSettings(BaseModel):
    """What is fixed when a book is opened."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = Field(default="", description="only what this run accepted; empty: all that is accepted and live")
    cash: float = Field(default=1_000_000.0, gt=0, le=1e15, description="money at the start, in the prices' currency")
    bps_per_side: float = Field(default=10.0, ge=0, le=1_000, description="cost of trading, basis points")
    borrow_bps_per_year: float = Field(default=50.0, ge=0, le=10_000, description="cost of being short, basis points")
    max_volume_share: float = Field(
        default=0.05, ge=0, le=1, description="largest share of a day's volume; 0: no limit"
    )

    @property
    def trading(self) -> TradingTerms:
        """Return what trading costs, and its limit."""
        return TradingTerms(Costs(self.bps_per_side, self.borrow_bps_per_year), self.max_volume_share)


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
    window
        The window of a campaign to which the day belongs: search, selection, sealed, or empty.
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
    window: str
    late: bool


def open_book(ledger: Ledger, name: str, settings: BookSettings, now: datetime) -> str:
    """Open a book and return its id; opening the same one again changes nothing."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name):
        allowed = "1 to 60 letters, digits, dots, underlines and hyphens, a letter or digit first"
        raise RiskError("A book needs a name.", field="NAME", got=name, allowed=allowed, code="book_name")
    book = f"{PREFIX}{name}"
    if settings.run:
        ledger.runs.find(settings.run)
    config = {"book": settings.model_dump(mode="json")}
    known = {run.id: run for run in ledger.runs.all()}.get(book)
    if known is not None and known.config != config:
        raise RiskError(
            "A book of this name is open with other settings.",
            field="NAME",
            got=name,
            allowed=f"another name, or the settings {known.config['book']}",
            code="book_exists",
            exit_code=1,
        )
    if known is None:
        ledger.runs.start(Run(book, config, 0, "", now.isoformat()))
    return book


def find_book(ledger: Ledger, name: str) -> tuple[str, BookSettings]:
    """Return the id and the settings of a book, by its name or id."""
    runs = {run.id: run for run in ledger.runs.all() if "book" in run.config}
    found = runs.get(name) or runs.get(f"{PREFIX}{name}")
    if found is None:
        raise RiskError(
            "There is no such book.",
            field="NAME",
            got=name,
            allowed=sorted(run.removeprefix(PREFIX) for run in runs) or "no book is open",
            hint="alphaloom book open NAME opens one.",
            code="unknown_book",
        )
    return found.id, BookSettings.model_validate(found.config["book"])


def list_steps(ledger: Ledger, book: str) -> list[dict[str, Any]]:
    """Return the records of a book's steps, the oldest first."""
    return [dict(event.body) for event in ledger.events.of(book, STEP_EVENT)]


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
    """

    panel: Panel
    dataset: str
    runner: Runner | None = None
    since: date | None = None

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
) -> list[BookStep]:
    """Take a book through every day of a panel after its last step, and return the new steps.

    Parameters
    ----------
    clock
        Returns the present time: it decides whether a step is late, and refuses days that are still to come.
    told
        Is called after each step.

    Raises
    ------
    RiskError
        Nothing can be traded, the panel is not the book's, or a day belongs to a window that no trial or opening has
        paid for.
    RunLocked
        Another process steps this book.
    """
    book, settings = find_book(ledger, name)
    with ledger.runs.lock(book):
        done = list_steps(ledger, book)
        rows = data.list_new_rows(done[-1]["day"] if done else "")
        if not rows:
            return []
        _refuse_data(data, rows, done[-1] if done else None, clock().date())
        live = _find_live(ledger, data, settings, done)
        known_windows = find_windows(ledger, data.panel, data.dataset)
        if not done and not known_windows and len(rows) > 1:
            raise _data_error(
                "No campaign has fixed windows on this data, so earlier days may still become sealed ones.",
                f"{len(rows)} days",
                "a new book that begins on the panel's last day, or data on which a campaign has run",
            )
        refuse_unpaid_days(ledger, data.panel, data.dataset, rows, live.sizing.evidence, known_windows)
        terms = _read_terms(ledger, live, settings)
        steps = []
        for row in rows:
            last = done[-1] if done else begin(settings)
            styled = terms["policy"]["style_cap_bp"] is not None
            inputs = {**terms, **_read_day(data.panel, row, live.weights(row), last, styled)}
            body = take_step(inputs)
            body |= {
                "late": clock().date().isoformat() >= body["decided_for"],
                "window": name_window(known_windows, body["day"]),
                "inputs": ledger.objects.put(canonical_json(inputs).encode()),
                "after": compute_digest(last),
            }
            ledger.events.record(book, STEP_EVENT, body["day"], body)
            done.append(body)
            steps.append(read_step(body))
            told(steps[-1])
        return steps


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


def _find_live(ledger: Ledger, data: BookData, settings: BookSettings, done: Sequence[Mapping[str, Any]]) -> LiveBooks:
    """Return what is traded; where that is nothing any more, what is held is closed under its last evidence."""
    try:
        return find_live_books(ledger, data.panel, data.runner, settings.run)
    except RiskError as error:
        if error.code != "no_targets" or not done or not done[-1]["account"]["holdings"]:
            raise
        last = json.loads(ledger.objects.get(done[-1]["inputs"]))["sizing"]
        return LiveBooks({}, {}, [], data.panel.symbols, Sizing(*last))


def _read_terms(ledger: Ledger, live: LiveBooks, settings: BookSettings) -> dict[str, Any]:
    """Return what every step of one call rests on, as a JSON-able object."""
    sizing, known = live.sizing, read_standings(ledger, live.sizing.evidence)
    return {
        "sizing": [sizing.horizon_days, sizing.doubt_e8, sizing.reason, sizing.evidence],
        "policy": live.tighten(read_policy(ledger.workspace)).model_dump(mode="json"),
        "standings": {name: standing.record() for name, standing in known.items()},
        "settings": settings.model_dump(mode="json"),
    }


def begin(settings: BookSettings) -> dict[str, Any]:
    """Return what stands before a book's first step."""
    account = PaperAccount.of_cash(settings.cash).record()
    return {"account": account, "ungated": account, "approved": {}, "reducing": [], "asked": {}, "decided_for": ""}


def _read_day(
    panel: Panel, row: int, weights: Mapping[str, float], last: Mapping[str, Any], with_styles: bool
) -> dict[str, Any]:
    """Return what a step reads of a day and of the step before, as a JSON-able object."""
    held = {**last["ungated"]["holdings"], **last["account"]["holdings"]}
    names = sorted({*held, *last["approved"], *last["asked"]})
    past, priced = panel.rows(0, row + 1), {*weights, *names}
    return {
        **{part: last[part] for part in CARRIED},
        "approved_for": last["decided_for"],
        "prices": _read_prices(panel, row, names, {name: holding[2] for name, holding in held.items()}),
        "weights": dict(weights),
        "facts": {name: one.record() for name, one in read_facts(past, priced, with_styles).items()},
        "sessions": [day.isoformat() for day in list_sessions(past)],
        "decided_for": next_trading_day(past.dates).isoformat(),
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
    return {
        "day": str(panel.dates[row]),
        "opens": at("open", today),
        "closes": at("close", today),
        "volumes": at("volume", today),
        "last": at("close", last),
        "before": at("close", {name: place - 1 for name, place in last.items()}),
        "previous": at("close", dict.fromkeys(names, row - 1)),
    }


def take_step(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a step from its inputs alone, as a JSON-able object: the same bytes for the same inputs."""
    settings = BookSettings.model_validate(inputs["settings"])
    prices = DayPrices(**inputs["prices"])
    policy = Policy.model_validate_json(json.dumps(inputs["policy"]))
    stands = not policy.kill_switch and _is_current(inputs["approved_for"], prices.day)
    approved = inputs["approved"] if stands else {}
    account, fills = _trade(inputs["account"], approved, prices, settings.trading, inputs["reducing"])
    ungated, _ = _trade(inputs["ungated"], inputs["asked"], prices, settings.trading)
    horizon, doubt, reason, evidence = inputs["sizing"]
    held = {name: round(weight * UNITS_PER_EQUITY) for name, weight in account.weights().items()}
    weights = inputs["weights"] if account.equity > 0 else {}  # a ruined book is closed
    day, state = date.fromisoformat(inputs["decided_for"]), _state(account, held, inputs)
    until = day + timedelta(days=HOLIDAY_DAYS)
    sized = size_book(weights, Sizing(horizon, doubt, reason, evidence), policy, until, held)
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
            if SignalChange(one.signal, held.get(one.signal.asset, 0)).reduces
        ),
        "asked": {signal.asset: signal.target_e8 for signal in sized.signals},
    }


def _is_current(decided_for: str, day: str) -> bool:
    """Return whether an approval still holds: its session may have been moved by a holiday, and by no more."""
    return not decided_for or (date.fromisoformat(day) - date.fromisoformat(decided_for)).days <= HOLIDAY_DAYS


def _trade(
    record: Mapping[str, Any],
    targets: Mapping[str, int],
    prices: DayPrices,
    trading: TradingTerms,
    reducing: Collection[str] = (),
) -> tuple[PaperAccount, tuple[Fill, ...]]:
    shares = {name: target / UNITS_PER_EQUITY for name, target in targets.items()}
    return trade_day(PaperAccount.restore(record), shares, prices, trading, reducing)


def _state(account: PaperAccount, held: Mapping[str, int], inputs: Mapping[str, Any]) -> BookState:
    """Return the book as the gate reads it: whole numbers."""
    facts = {name: SymbolFacts(*row).at(account.equity) for name, row in inputs["facts"].items()}
    sessions = tuple(date.fromisoformat(day) for day in inputs["sessions"])
    equity, pnl = round(account.equity * CENTS), round(account.pnl * CENTS)
    high = max(round(account.high_water * CENTS), equity, 1)
    return BookState(held, facts, equity, high, pnl, sessions=sessions)


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
        body["window"],
        body["late"],
    )


def replay_book(ledger: Ledger, name: str) -> Iterator[tuple[str, list[str]]]:
    """Compute every step of a book again from its stored inputs.

    Yields
    ------
    tuple
        The day, and the parts of its record that differ; empty where every byte is the same.
    """
    book, settings = find_book(ledger, name)
    before: Mapping[str, Any] | None = None
    for body in list_steps(ledger, book):
        inputs = json.loads(ledger.objects.get(body["inputs"]))
        again = take_step(inputs)
        differing = [part for part, value in again.items() if canonical_json(value) != canonical_json(body[part])]
        start = before or begin(settings)
        differing += ["the step before it"] if body["after"] != compute_digest(start) else []
        differing += ["settings"] if inputs["settings"] != settings.model_dump(mode="json") else []
        differing += [
            f"{part} at its beginning"
            for part in CARRIED
            if canonical_json(inputs[part]) != canonical_json(start[part])
        ]
        yield body["day"], differing
        before = body
