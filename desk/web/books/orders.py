"""The blotter of a paper book: the orders of a session, live while they are sent, and the form that cancels them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...facts.orders import read_session
from ..campaigns import find_page
from ..live import LiveRequest, stream_page
from ..pages import PageRequest, render
from .details import ROWS_A_PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.responses import Response

    from ....execution import SessionOrders
    from ....ledger import Ledger

FIRST_STATES: Final = ("unknown", "working", "partly filled", "accepted", "sent", "waiting", "rejected", "refused")
"""States of orders of which somebody may have to take care; these come first."""
MOST_KNOWN: Final = 8
_known = dict[tuple["Path", str, str], "SessionOrders"]()
"""Orders that live pages show, so that each second only what is new is read; one page is written at a time."""


@dataclass(frozen=True)
class OrderPage:
    """The orders of one session of a book.

    Attributes
    ----------
    facts
        The session as `alphaloom orders --json` gives it; None where nothing was ordered yet. Its orders are those of
        this page.
    days
        The sessions that have orders, the newest first.
    words
        Symbol, side, state or rule that was asked for.
    """

    book: str
    facts: dict[str, Any] | None
    days: list[str]
    words: str
    matches: int
    number: int
    pages: int


def load_orders(view: PageRequest) -> OrderPage:
    """Return the orders of a session, the last one by default: those that may need somebody first."""
    from ....campaign import find_book

    book = find_book(view.ledger, view.path["book"])[0].removeprefix("book-")
    days = _list_days(view.ledger, book)
    words = view.query.get("q", "").strip()
    if not days:
        return OrderPage(book, None, [], words, 0, 1, 1)
    shown = read_session(view.ledger, book, view.query.get("session", ""))
    found = [row for row in shown.facts["orders"] if words.casefold() in _describe(row).casefold()]
    found.sort(key=_rank_state)
    number, pages = find_page(view, len(found), ROWS_A_PAGE)
    rows = found[(number - 1) * ROWS_A_PAGE : number * ROWS_A_PAGE]
    return OrderPage(book, shown.facts | {"orders": rows}, days, words, len(found), number, pages)


def _rank_state(row: Mapping[str, Any]) -> int:
    return FIRST_STATES.index(row["status"]) if row["status"] in FIRST_STATES else len(FIRST_STATES)


def _list_days(ledger: Ledger, book: str) -> list[str]:
    from ....campaign import find_book
    from ....execution import list_planned

    return list_planned(ledger, find_book(ledger, book)[0])[::-1]


def _describe(row: Mapping[str, Any]) -> str:
    rules = " ".join(one["rule"].replace("_", " ") for one in row["refusals"])
    return f"{row['id']} {row['asset']} {row['side']} {row['status']} {rules}"


def stream_orders(live: LiveRequest) -> Response:
    """Return a stream of how far a session's orders are, as HTML."""
    return stream_page(live, render_progress)


def render_progress(live: LiveRequest) -> str:
    """Return how far a session's orders are as HTML; empty where there is none."""
    from ....ledger import AlphaloomError

    book, day = live.request.path_params["book"], live.request.query_params.get("session", "")
    known = _known.pop((live.workspace, book, day), None) if day else None
    try:
        with live.opened() as ledger:
            session = read_session(ledger, book, day, known)
    except AlphaloomError:
        return ""
    _known[live.workspace, book, day] = session.orders
    while len(_known) > MOST_KNOWN:
        _known.pop(next(iter(_known)))
    return render("order_progress.html.j2", {"facts": session.facts}, None)


def cancel(view: PageRequest, form: dict[str, str]) -> str:
    """Record that a person asks for the end of an order, or of all, and return the blotter."""
    session = read_session(view.ledger, view.path["book"], form.get("session", ""))
    session.cancel(form.get("cancel", "").strip(), view.person, view.signed_at)
    return f"/books/{session.facts['book']}/orders?session={session.facts['session']}"
