"""A paper book in the ledger: its name and settings, its steps, and the money that people pay in or take out.

A book is a run of the ledger whose id begins with "book-". Steps, flows and orders are its events. They are recorded
one at a time, under the lock of the book.

**What is taken in when.** A step of a day fills at that day's open, so it may take in only what was given before. The
hour of the open is not known. So a flow or an order is taken in by the first step of a day after the one (UTC) on which
it was given: nobody who has seen a day can still act on it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ..evidence.scoring import Costs
from ..execution import US_PER_SECOND, clear_trips, describe_trip
from ..ledger import Ledger, LedgerConflict, Run, compute_digest, wait_while_locked
from ..portfolio import PaperAccount, TradingTerms
from ..risk import BP, MODES, Mode, Policy, RiskError, RiskLimits, read_policy
from .facts import CENTS

WORKSPACE: Final = Path(".alphaloom")
PREFIX: Final = "book-"
STEP_EVENT: Final = "book.step"
FLOW_EVENT: Final = "book.flow"
MODE_EVENT: Final = "book.mode"
KILL_WORD: Final = "kill: "
"""Begins the reason of an order that the switch gave: a book that was halted for another reason stays halted."""
MOST_MONEY: Final = 1e15
"""Largest amount of money of a book."""


class BookSettings(BaseModel):
    """What is fixed when a book is opened."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = Field(default="", description="only what this run accepted; empty: all that is accepted and live")
    cash: float = Field(default=1_000_000.0, gt=0, le=MOST_MONEY, description="money at the start")
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
class BookRequest:
    """What a person gives to a book: its number as text that sorts, and the ISO time of the record."""

    key: str
    at: str

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all that is on record of it."""
        return compute_digest({name: value for name, value in asdict(self).items() if name != "key"})

    def precedes(self, day: str) -> bool:
        """Return whether it was given on a day (UTC) before an ISO day."""
        return self.at[: len(day)] < day


@dataclass(frozen=True)
class BookFlow(BookRequest):
    """Money that a person pays into a book, negative where it is taken out.

    Attributes
    ----------
    amount
        Money in the prices' currency.
    by
        The person.
    """

    amount: float
    by: str


@dataclass(frozen=True)
class BookOrder(BookRequest):
    """What a person orders: a halt, reductions alone, or that trading is resumed; a step of a later day takes it in.

    Attributes
    ----------
    mode
        What may pass from the next step on.
    reason, by, second
        Why, the person, and who else agrees: nobody where trading is only stopped.
    """

    mode: Mode
    reason: str
    by: str
    second: str

    @property
    def is_signed_twice(self) -> bool:
        """Return whether two persons gave it."""
        return self.second.casefold() not in ("", self.by.casefold())

    def obey(self, mode: Mode) -> Mode:
        """Return the state of trading after the order; one of one person lets no more pass than before."""
        return self.mode if self.is_signed_twice or not is_laxer(self.mode, mode) else mode


def open_book(ledger: Ledger, name: str, settings: BookSettings, now: datetime) -> str:
    """Open a book and return its id; opening the same one again changes nothing."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name):
        allowed = "1 to 60 letters, digits, dots, underlines and hyphens, a letter or digit first"
        raise RiskError("A book needs a name.", field="NAME", got=name, allowed=allowed, code="book_name")
    book = f"{PREFIX}{name}"
    if settings.run and all(row.run != ledger.runs.find(settings.run).id for row in ledger.library.rows()):
        raise RiskError(
            "This run accepted nothing, so a book of it would trade nothing.",
            field="--run",
            got=settings.run,
            allowed="a run that accepted something; none: all that the library has",
            hint="alphaloom library add takes in a formula by hand, which trades by an exception of policy.yaml alone.",
            code="nothing_accepted",
        )
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


def list_new_steps(ledger: Ledger, book: str, place: int = 0) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield place in the order of arrival, time and record of each step of a book after a place, the oldest first."""
    for entry in ledger.events.entries(book, place):
        if entry.record.kind == STEP_EVENT:
            yield entry.place, entry.at, dict(entry.record.body)


def find_step_time(ledger: Ledger, book: str, day: str) -> str:
    """Return when the step of an ISO day was recorded, ISO; empty where it was not."""
    return ledger.events.find_time(book, STEP_EVENT, day)


def list_flows(ledger: Ledger, book: str) -> list[BookFlow]:
    """Return all money that was paid into a book or taken out of it, the oldest first."""
    return [BookFlow(key=event.key, **event.body) for event in ledger.events.of(book, FLOW_EVENT)]


@contextmanager
def hold_book(ledger: Ledger, book: str) -> Iterator[None]:
    """Hold the lock of a book; another process that holds it is waited for."""
    with ExitStack() as held:
        why = "since another process steps this book"
        wait_while_locked(lambda: held.enter_context(ledger.runs.lock(book)), why)
        yield


def list_waiting_flows(flows: Sequence[BookFlow], steps: Sequence[Mapping[str, Any]]) -> list[BookFlow]:
    """Return the flows that no step has taken in."""
    taken = {row[0] for step in steps for row in step["flows"]}
    return [flow for flow in flows if flow.key not in taken]


def pay_book(ledger: Ledger, name: str, amount: float, by: str, now: datetime) -> BookFlow:
    """Record money that a person pays into a book, negative to take it out; a step of a later day takes it in.

    A withdrawal that the book can pay now may wait later, if it is halted before it is paid: see `find_unpaid`.

    Raises
    ------
    RiskError
        It is no amount, nobody is named, more is taken out than the book was worth at its last close, or a book that
        may not trade would exceed its limits on gross exposure or margin.
    """
    book, settings = find_book(ledger, name)
    if not (math.isfinite(amount) and 0 < abs(amount) <= MOST_MONEY):
        raise _flow_error("An amount is needed.", "AMOUNT", amount, f"a number above 0, at most {MOST_MONEY:g}")
    if not by.strip():
        raise _flow_error("The record needs the person who decides on the money.", "--by", by, "a name")
    body: dict[str, Any] = {"amount": amount, "by": by.strip(), "at": now.astimezone(UTC).isoformat()}
    with hold_book(ledger, book):
        steps, flows = list_steps(ledger, book), list_flows(ledger, book)
        account = PaperAccount.restore(steps[-1]["account"]) if steps else PaperAccount.of_cash(settings.cash)
        worth = account.equity + math.fsum(flow.amount for flow in list_waiting_flows(flows, steps))
        if worth + amount <= 0:
            raise _flow_error(
                "A book cannot pay out all that it is worth.", "AMOUNT", -amount, f"less than {worth:.2f}, its equity"
            )
        if amount < 0 and steps:
            _refuse_leverage(ledger, book, steps, account.with_flow(worth - account.equity), -amount)
        key = _take_number(lambda key: ledger.events.record(book, FLOW_EVENT, key, body), len(flows) + 1)
    return BookFlow(key=key, **body)


def _refuse_leverage(
    ledger: Ledger, book: str, steps: Sequence[Mapping[str, Any]], account: PaperAccount, amount: float
) -> None:
    """Refuse a withdrawal after which a book that cannot sell would exceed its limits."""
    policy = read_policy(ledger.workspace)
    modes = list_modes(list_orders(ledger, book), steps)
    if modes[0] == modes[-1] == "active" and not policy.kill_switch:
        return
    traded = json.loads(ledger.objects.get(steps[-1]["inputs"]))["policy"]
    # What the policy does not set, such as attributes to audit, may be in no record.
    own = json.dumps({name: traded[name] for name in RiskLimits.model_fields if name in traded})
    limits, _ = policy.tightened(RiskLimits.model_validate_json(own))
    most = _measure_spare_money(account, limits)
    if amount > most:
        raise _flow_error(
            "The book may not trade, and a withdrawal would lift its gross exposure or margin over the policy.",
            "AMOUNT",
            amount,
            f"at most {math.floor(most * CENTS) / CENTS:.2f}, or any amount once two people have resumed it",
        )


def _measure_spare_money(account: PaperAccount, limits: RiskLimits) -> float:
    """Return how much can leave a book that sells nothing, within its limits on gross exposure and margin."""
    values = [one.value for one in account.holdings.values()]
    long, short = (math.fsum(max(side * value, 0.0) for value in values) for side in (1, -1))
    gross = (long + short) * BP / limits.gross_cap_bp if limits.gross_cap_bp else math.inf if values else 0.0
    margin = (long * limits.margin_long_bp + short * limits.margin_short_bp) / BP
    return max(account.equity - max(gross, margin), 0.0)


def find_unpaid(account: PaperAccount, flows: Iterable[Sequence[Any]], limits: Policy, mode: Mode) -> list[str]:
    """Return the keys of the withdrawals that a book does not pay yet: they stay on record and wait.

    It never sells past a halt for them. One waits as long as the book may not trade and paying it would lift gross
    exposure or margin over the limits, or the book is worth no more than it. The others are paid, the oldest first.

    Parameters
    ----------
    account
        The book at the close before.
    flows
        Key, amount and digest of each flow that was given before the day.
    limits, mode
        The policy and the state of trading of the day.
    """
    paid, unpaid = list[float](), list[str]()
    for key, amount, _ in flows:
        now = account.with_flow(math.fsum(paid))
        can_sell = mode == "active" and not limits.kill_switch
        if amount < 0 and not (now.equity + amount > 0 and (can_sell or -amount <= _measure_spare_money(now, limits))):
            unpaid.append(key)
        else:
            paid.append(amount)
    return unpaid


def _take_number(record: Callable[[str], bool], first: int) -> str:
    """Record an event under the first free number, and return that; another process may take one in between."""
    while True:
        try:
            if record(f"{first:06d}"):
                return f"{first:06d}"
        except LedgerConflict:
            pass
        first += 1


def list_orders(ledger: Ledger, book: str) -> list[BookOrder]:
    """Return what people ordered of a book's trading, the oldest first."""
    return [BookOrder(key=event.key, **event.body) for event in ledger.events.of(book, MODE_EVENT)]


def list_waiting_orders(orders: Sequence[BookOrder], steps: Sequence[Mapping[str, Any]]) -> list[BookOrder]:
    """Return the orders that no step has taken in."""
    taken = {row[0] for step in steps for row in step["orders"]}
    return [order for order in orders if order.key not in taken]


def list_modes(orders: Sequence[BookOrder], steps: Sequence[Mapping[str, Any]]) -> tuple[Mode, ...]:
    """Return the state of trading after the last step, and then after each order that waits."""
    modes: list[Mode] = [steps[-1]["mode"] if steps else "active"]
    for order in list_waiting_orders(orders, steps):
        modes.append(order.obey(modes[-1]))
    return tuple(modes)


def read_trading_mode(ledger: Ledger, book: str) -> tuple[dict[str, Any] | None, Mode, list[BookOrder]]:
    """Return the last step of a book, its state of trading, and the orders that wait, without its earlier steps.

    An order was taken in if it was on record before the last step and was given before that step's day.
    """
    last, orders = ledger.events.last(book, STEP_EVENT), list_orders(ledger, book)
    if last is not None:
        at = datetime.fromisoformat(ledger.events.find_time(book, STEP_EVENT, last.key))
        orders = [one for one in orders if not (one.precedes(last.key) and datetime.fromisoformat(one.at) <= at)]
    step = dict(last.body) if last else None
    return step, list_modes(orders, [step] if step else [])[-1], orders


def is_laxer(mode: Mode, other: Mode) -> bool:
    """Return whether more may pass in one state of trading than in another."""
    return MODES.index(mode) < MODES.index(other)


def order_mode(ledger: Ledger, name: str, mode: Mode, signed: tuple[str, str, str], now: datetime) -> BookOrder:
    """Record that a book is halted, held to reductions, or resumed.

    Parameters
    ----------
    signed
        The reason, the person, and a second person: to resume takes two, and so does what lets more pass than the last
        order does.

    Raises
    ------
    RiskError
        A reason or a person is missing, or the second person is nobody or the first where two are needed.
    """
    book, _ = find_book(ledger, name)
    reason, by, second = (" ".join(text.split()) for text in signed)
    if not (reason and by):
        field = "--by" if reason else "--reason"
        raise _order_error("An order needs a reason and the person who gives it.", field, "", "a text")
    at = now.astimezone(UTC).isoformat()
    body: dict[str, Any] = {"mode": mode, "reason": reason, "by": by, "second": second, "at": at}
    with hold_book(ledger, book):
        orders = list_orders(ledger, book)
        order = BookOrder(key="", **body)
        held = list_modes(orders, list_steps(ledger, book))[-1]
        if not order.is_signed_twice and (mode == "active" or is_laxer(mode, held)):
            what = "To resume takes a second person." if mode == "active" else f"The book is {held}: less takes two."
            raise _order_error(what, "--second", second, f"a person who is not {by}")
        key = _take_number(lambda key: ledger.events.record(book, MODE_EVENT, key, body), len(orders) + 1)
    return BookOrder(key=key, **body)


def halt_books(ledger: Ledger, reason: str, by: str, now: datetime) -> list[str]:
    """Halt every open book that is not halted, and return their names; the next step of a later day takes it in."""
    names = [name for name in list_books(ledger) if read_trading_mode(ledger, f"{PREFIX}{name}")[1] != "halted"]
    for name in names:
        order_mode(ledger, name, "halted", (f"{KILL_WORD}{reason}", by, ""), now)
    return names


def resume_books(ledger: Ledger, reason: str, people: tuple[str, str], now: datetime) -> list[str]:
    """Resume the books whose last order is the switch's, and return their names; `people` are two persons."""
    names = [name for name in list_books(ledger) if _is_killed(list_orders(ledger, f"{PREFIX}{name}"))]
    for name in names:
        order_mode(ledger, name, "active", (reason, *people), now)
    return names


def clear_books(ledger: Ledger, reason: str, people: tuple[str, str], now: datetime) -> list[str]:
    """Clear the tripped breakers of every book, and return what they were, by book."""
    at_us = round(now.timestamp() * US_PER_SECOND)
    return [
        f"{name}: {describe_trip(trip)}"
        for name in list_books(ledger)
        for trip in clear_trips(ledger, f"{PREFIX}{name}", people, reason, at_us)
    ]


def list_books(ledger: Ledger) -> list[str]:
    """Return the names of the books that were opened, by age."""
    return [run.id.removeprefix(PREFIX) for run in ledger.runs.all() if "book" in run.config]


def _is_killed(orders: list[BookOrder]) -> bool:
    return bool(orders) and orders[-1].mode == "halted" and orders[-1].reason.startswith(KILL_WORD)


def _order_error(message: str, field: str, got: object, allowed: str) -> RiskError:
    hint = "Nothing was recorded."
    return RiskError(message, field=field, got=got, allowed=allowed, hint=hint, code="book_order")


def _flow_error(message: str, field: str, got: object, allowed: str) -> RiskError:
    hint = "Nothing was recorded."
    return RiskError(message, field=field, got=got, allowed=allowed, hint=hint, code="book_flow")
