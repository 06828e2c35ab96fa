"""The pages on paper books: all of a workspace, and one with its curve, holdings, limits and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from ..cli.book.facts import read_book_facts
from ..figures import number
from ..report.plots import Curve, LineChart, line_chart
from .pages import PageRequest


@dataclass(frozen=True)
class BookPage:
    """One book, as `alphaloom book show --json` gives it; `equity` is a drawing."""

    facts: dict[str, Any]
    equity: str


@dataclass(frozen=True)
class BookList:
    """All books."""

    books: list[dict[str, Any]]


def load_books(view: PageRequest) -> BookList:
    """Return all books of a workspace."""
    names = [run.id.removeprefix("book-") for run in view.ledger.runs.all() if "book" in run.config]
    return BookList([_read_book(view, name).facts for name in names])


def load_book(view: PageRequest) -> BookPage:
    """Return one book."""
    return _read_book(view, view.path["book"])


def _read_book(view: PageRequest, name: str) -> BookPage:
    facts, steps = read_book_facts(view.ledger, name)
    days = [date.fromisoformat(step.day) for step in steps]
    lines = [
        Curve("book", days, [step.account.equity for step in steps]),
        Curve("selection", days, [step.ungated.equity for step in steps]),
    ]
    start = steps[0].account.equity if steps else 0.0
    chart = LineChart("Equity, gated and ungated", lines, lambda value: number(value, 0), base=start)
    return BookPage(facts, line_chart(chart) if len(steps) > 1 else "")
