"""The pages with every position of a paper book, and with every refused target and all of its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...facts.book_limits import describe_exposures, list_refused
from ..campaigns import find_page
from ..pages import PageRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS_A_PAGE: Final = 100


@dataclass(frozen=True)
class BookRows:
    """One page of the positions or of the refused targets of a book's last step; `day` is None without one.

    Attributes
    ----------
    day, decided_for
        The close, and the session for which targets were decided.
    words
        Symbols or sectors that were asked for.
    total, matches
        All rows, and those that match.
    """

    book: str
    day: str | None
    decided_for: str | None
    rows: list[dict[str, Any]]
    words: str
    total: int
    matches: int
    number: int
    pages: int


def load_positions(view: PageRequest) -> BookRows:
    """Return the positions, the largest first."""
    book, body = _read_last(view)
    rows = describe_exposures(view.ledger, body)["positions"] if body else []
    return _cut(view, book, body, rows, ("symbol", "sector"))


def load_refusals(view: PageRequest) -> BookRows:
    """Return the refused targets, by symbol."""
    from ....campaign import read_step

    book, body = _read_last(view)
    return _cut(view, book, body, list_refused(read_step(body)) if body else [], ("symbol",))


def _read_last(view: PageRequest) -> tuple[str, Mapping[str, Any] | None]:
    from ....campaign import find_book, read_trading_mode

    book, _ = find_book(view.ledger, view.path["book"])
    return book.removeprefix("book-"), read_trading_mode(view.ledger, book)[0]


def _cut(
    view: PageRequest, book: str, body: Mapping[str, Any] | None, rows: list[dict[str, Any]], columns: tuple[str, ...]
) -> BookRows:
    """Return the page of the rows that hold the words of the query in one of some columns, or in a rule."""
    words = view.query.get("q", "").strip()
    found = [row for row in rows if _matches(row, columns, words.casefold())]
    number, pages = find_page(view, len(found), ROWS_A_PAGE)
    return BookRows(
        book=book,
        day=body["day"] if body else None,
        decided_for=body["decided_for"] if body else None,
        rows=found[(number - 1) * ROWS_A_PAGE : number * ROWS_A_PAGE],
        words=words,
        total=len(rows),
        matches=len(found),
        number=number,
        pages=pages,
    )


def _matches(row: dict[str, Any], columns: tuple[str, ...], words: str) -> bool:
    texts = [str(row[column]) for column in columns]
    texts += [rule["rule"].replace("_", " ") for rule in row.get("rules", ())]
    return any(words in text.casefold() for text in texts)
