"""The list of paper books, and the page of one: what it may do, earns and holds, and how far it is from each limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...facts.books import read_book_facts
from ..pages import PageRequest
from .drawings import draw_meter, draw_returns, draw_sides
from .shelf import SHELF

if TYPE_CHECKING:
    from ....ledger import Ledger

STATE_WORDS: Final = {
    "active": "active",
    "reducing": "reductions only",
    "halted": "halted",
}


@dataclass(frozen=True)
class BookLine:
    """One book at its last step; None without one. `state` is what may pass once waiting orders are taken in."""

    book: str
    day: str | None
    equity: float | None
    ungated_equity: float | None
    approved: int | None
    refused: int | None
    state: str
    waiting_orders: int


@dataclass(frozen=True)
class BookList:
    """All books."""

    books: list[BookLine]


def load_books(view: PageRequest) -> BookList:
    """Return all books of a workspace, of which only the last steps are read."""
    return BookList([_read_line(view.ledger, run.id) for run in view.ledger.runs.all() if "book" in run.config])


def _read_line(ledger: Ledger, book: str) -> BookLine:
    from ....campaign import read_step, read_trading_mode

    body, mode, ordered = read_trading_mode(ledger, book)
    name, words = book.removeprefix("book-"), STATE_WORDS[mode]
    if body is None:
        return BookLine(name, None, None, None, None, None, words, len(ordered))
    last = read_step(body)
    approved = sum(bool(ruling["approved"]) for ruling in last.decision["rulings"])
    refused = len(last.decision["rulings"]) - approved
    return BookLine(name, last.day, last.account.equity, last.ungated.equity, approved, refused, words, len(ordered))


@dataclass(frozen=True)
class BookPage:
    """One book.

    Attributes
    ----------
    facts
        The book as `alphaloom book show --json` gives it.
    state
        What may pass once all orders are taken in, in words.
    returns, drawdown
        Drawings of both accounts; empty without two steps.
    meters, sides
        A drawing of each limit of the facts, and of each sector's exposure.
    asks_password
        Whether the second person of an order gives a password.
    """

    facts: dict[str, Any]
    state: str
    returns: str
    drawdown: str
    meters: list[str]
    sides: dict[str, str]
    asks_password: bool


def load_book(view: PageRequest) -> BookPage:
    """Return one book."""
    from ....campaign import find_book
    from ...users import Users

    book, _ = find_book(view.ledger, view.path["book"])
    lines = SHELF.read(view.ledger, book)
    facts = read_book_facts(view.ledger, book.removeprefix("book-"), lines)
    growth, falls = draw_returns(lines)
    sectors = facts["exposures"]["by_sector"] if facts["exposures"] else {}
    reach = max((max(one["long"], one["short"]) for one in sectors.values()), default=0.0)
    return BookPage(
        facts=facts,
        state=STATE_WORDS[facts["state"]["mode"]],
        returns=growth,
        drawdown=falls,
        meters=[draw_meter(row["used"], row["passed"]) for row in facts["limits"]],
        sides={name: draw_sides(one["long"], one["short"], reach) for name, one in sectors.items()},
        asks_password=bool(Users(view.ledger.workspace).all()),
    )
