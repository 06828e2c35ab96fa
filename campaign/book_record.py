"""A paper book in the ledger: its name and settings, its steps, and the money that people pay in or take out.

A book is a run of the ledger whose id begins with "book-". Steps and flows are its events.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ..evidence.scoring import Costs
from ..ledger import Ledger, LedgerConflict, Run
from ..portfolio import PaperAccount, TradingTerms
from ..risk import Mode, RiskError

WORKSPACE: Final = Path(".alphaloom")
PREFIX: Final = "book-"
STEP_EVENT: Final = "book.step"
FLOW_EVENT: Final = "book.flow"
MODE_EVENT: Final = "book.mode"
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
class BookFlow:
    """Money that a person pays into a book, negative where it is taken out.

    Attributes
    ----------
    key
        Number of the flow, as text that sorts.
    amount
        Money in the prices' currency.
    by, at
        The person, and the ISO time of the record.
    """

    key: str
    amount: float
    by: str
    at: str


@dataclass(frozen=True)
class BookOrder:
    """What a person orders: a halt, reductions alone, or that trading is resumed; the next step takes it in.

    Attributes
    ----------
    key
        Number of the order, as text that sorts.
    mode
        What may pass from the next step on.
    reason, by, second
        Why, the person, and who else agrees: nobody where trading is only stopped.
    at
        ISO time of the record.
    """

    key: str
    mode: Mode
    reason: str
    by: str
    second: str
    at: str


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


def list_flows(ledger: Ledger, book: str) -> list[BookFlow]:
    """Return all money that was paid into a book or taken out of it, the oldest first."""
    return [BookFlow(event.key, **event.body) for event in ledger.events.of(book, FLOW_EVENT)]


def list_waiting_flows(flows: Sequence[BookFlow], steps: Sequence[Mapping[str, Any]]) -> list[BookFlow]:
    """Return the flows that no step has taken in."""
    taken = {key for step in steps for key, _ in step["flows"]}
    return [flow for flow in flows if flow.key not in taken]


def pay_book(ledger: Ledger, name: str, amount: float, by: str, now: datetime) -> BookFlow:
    """Record money that a person pays into a book, negative to take it out; the next step takes it in.

    Raises
    ------
    RiskError
        It is no amount, nobody is named, or more is taken out than the book was worth at its last close.
    """
    book, settings = find_book(ledger, name)
    if not (math.isfinite(amount) and 0 < abs(amount) <= MOST_MONEY):
        raise _flow_error("An amount is needed.", "AMOUNT", amount, f"a number above 0, at most {MOST_MONEY:g}")
    if not by.strip():
        raise _flow_error("The record needs the person who decides on the money.", "--by", by, "a name")
    steps, flows = list_steps(ledger, book), list_flows(ledger, book)
    account = PaperAccount.restore(steps[-1]["account"]) if steps else PaperAccount.of_cash(settings.cash)
    worth = account.equity + math.fsum(flow.amount for flow in list_waiting_flows(flows, steps))
    if worth + amount <= 0:
        raise _flow_error(
            "A book cannot pay out all that it is worth.", "AMOUNT", -amount, f"less than {worth:.2f}, its equity"
        )
    body: dict[str, Any] = {"amount": amount, "by": by.strip(), "at": now.isoformat()}
    key = _take_number(lambda key: ledger.events.record(book, FLOW_EVENT, key, body), len(flows) + 1)
    return BookFlow(key, **body)


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
    return [BookOrder(event.key, **event.body) for event in ledger.events.of(book, MODE_EVENT)]


def list_waiting_orders(orders: Sequence[BookOrder], steps: Sequence[Mapping[str, Any]]) -> list[BookOrder]:
    """Return the orders that no step has taken in."""
    taken = {key for step in steps for key, _ in step["orders"]}
    return [order for order in orders if order.key not in taken]


def order_mode(ledger: Ledger, name: str, mode: Mode, signed: tuple[str, str, str], now: datetime) -> BookOrder:
    """Record that a book is halted, held to reductions, or resumed.

    Parameters
    ----------
    signed
        The reason, the person, and a second person: to resume takes two.

    Raises
    ------
    RiskError
        A reason or a person is missing, or the second person of a resumption is nobody or the first.
    """
    book, _ = find_book(ledger, name)
    reason, by, second = (" ".join(text.split()) for text in signed)
    if not (reason and by):
        field = "--by" if reason else "--reason"
        raise _order_error("An order needs a reason and the person who gives it.", field, "", "a text")
    if mode == "active" and second.casefold() in ("", by.casefold()):
        raise _order_error("To resume takes a second person.", "--second", second, f"a person who is not {by}")
    body: dict[str, Any] = {"mode": mode, "reason": reason, "by": by, "second": second, "at": now.isoformat()}
    first = len(list_orders(ledger, book)) + 1
    key = _take_number(lambda key: ledger.events.record(book, MODE_EVENT, key, body), first)
    return BookOrder(key, **body)


def _order_error(message: str, field: str, got: object, allowed: str) -> RiskError:
    hint = "Nothing was recorded."
    return RiskError(message, field=field, got=got, allowed=allowed, hint=hint, code="book_order")


def _flow_error(message: str, field: str, got: object, allowed: str) -> RiskError:
    hint = "Nothing was recorded."
    return RiskError(message, field=field, got=got, allowed=allowed, hint=hint, code="book_flow")
