"""What a page is: a template, and a function that reads its record from the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..facts.book_limits import format_limit, format_value
from ..figures import count, money, number, p_value_text, percent, plural, short_id
from ..report.report import TEMPLATE_FOLDER

if TYPE_CHECKING:
    from jinja2 import Environment

    from ...ledger import Ledger
    from ..users import Signer

WEB_TEMPLATES = Path(__file__).parent / "templates"
PLACES = (
    ("/inbox", "Inbox"),
    ("/runs", "Campaigns"),
    ("/library", "Library"),
    ("/books", "Books"),
    ("/record", "Record"),
)
"""The places of the app, in the order in which every page names them."""
RECORDED = {
    "approve": "Your approval is recorded.",
    "reject": "Your rejection is recorded.",
    "ask": "Your request for a change is recorded.",
    "undo": "Your decision is taken back.",
}
"""What the page says that follows a decision on a case."""


@dataclass(frozen=True)
class PageRequest:
    """What a page is loaded from: the open record, who asks, the parts of its address, the query, and the time."""

    ledger: Ledger
    signer: Signer
    path: Mapping[str, str]
    query: Mapping[str, str]
    now: datetime

    @property
    def person(self) -> str:
        """Return the name that signs."""
        return self.signer.name

    @property
    def signed_at(self) -> str:
        """Return the time as a decision records it, ISO, to the second."""
        return self.now.isoformat(timespec="seconds")


@dataclass(frozen=True)
class Page:
    """A template, and what loads its record: a dataclass whose fields are JSON."""

    template: str
    load: Callable[[PageRequest], Any]


@dataclass(frozen=True)
class Problem:
    """Why a page is not shown, what to do, and links on from there: address and words."""

    message: str
    hint: str
    ways: Sequence[tuple[str, str]] = ()


def render(
    template: str, facts: object, person: Signer | None, place: str = "", option: str = "", recorded: str = ""
) -> str:
    """Return a page's HTML.

    `option` ends each command that the page names, so that it works on this workspace. `recorded` is the word for the
    decision that led to the page; a word that means nothing here is left out.
    """
    words = RECORDED.get(recorded, "")
    names = {
        "page": facts, "person": person, "place": place, "option": option, "places": PLACES, "recorded": words,
    }  # fmt: skip  # a table
    page: str = _environment().get_template(template).render(names)
    return page.strip() + "\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Any text may come from a model, so all text is escaped; templates mark only our own drawings as safe.
    made = Environment(
        loader=FileSystemLoader([WEB_TEMPLATES, TEMPLATE_FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "number": number, "percent": percent, "count": count, "plural": plural, "p_value": p_value_text,
        "short_id": short_id, "money": money, "rule_value": format_value, "rule_limit": format_limit,
    }  # fmt: skip  # a table
    return made
