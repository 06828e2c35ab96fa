"""The contents of a report: its parts in the order in which an analyst reads, with a link to each section."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...figures import short_id
from .known_days import DAY_HEADS
from .returns import MONTH_NAMES

if TYPE_CHECKING:
    from ..page import ReportPage
    from .factor_section import FactorSection

INDEX_FILE, BOOK_FILE = "index.html", "book.html"
MAX_ANCHOR_CHARS = 44


@dataclass(frozen=True)
class Anchor:
    """A section: its id, its name in the contents, and the file of the folder form that has it."""

    id: str
    label: str
    file: str = INDEX_FILE

    def link(self, here: str) -> str:
        """Return the relative address, from a file of the folder form or, for an empty name, within one file."""
        return f"#{self.id}" if here in ("", self.file) else f"{self.file}#{self.id}"


@dataclass(frozen=True)
class Part:
    """A part of the contents."""

    label: str
    anchors: Sequence[Anchor]


def factor_file(factor: str) -> str:
    """Return the name of a factor's page in the folder form."""
    return f"factor-{re.sub('[^A-Za-z0-9]', '-', factor)}.html"


def list_parts(page: ReportPage) -> list[Part]:
    """Return the contents of a report."""
    first = [Anchor("verdict", "Verdict"), Anchor("hold-out", "Sealed (hold-out) exam")]
    first += [Anchor("doubts", "Notes and doubts on the data")] if page.doubts else []
    power = [Anchor("power", "What could have been proven")]
    factors = _list_section("accepted", "Accepted", page.accepted)
    factors += [] if page.accepted else power
    factors += _list_section("proven", "Proven, not tradable alone", page.proven) if page.proven else []
    factors += _list_section("watchlist", "Watchlist", page.watched)
    tested = bool(page.candidates.failed.lines)
    factors += _list_section("failed", "Tested, not accepted", page.drawn if tested else [])
    factors += (
        [] if tested or not page.drawn else _list_section("candidates", "The strongest on search days", page.drawn)
    )
    book = [Anchor("book", "The book", BOOK_FILE)]
    book += [Anchor("stress", "Under stress", BOOK_FILE)] if page.stress else []
    book.append(Anchor("risk", "Risk gate", BOOK_FILE))
    search = [Anchor("tried", "What was tried"), Anchor("data", "Data, windows and rules")]
    search += [Anchor("published", "Known effects and the baseline")] if page.baseline else []
    search += [Anchor("refused", "Refused before a test")] if page.candidates.refused.lines else []
    search += [Anchor("untested", "Never tested")] if page.candidates.untested.lines else []
    search.append(Anchor("spend", "Spend"))
    statistics = [*(power if page.accepted else []), Anchor("rules", "What other rules would have said")]
    statistics += [Anchor("search-tests", "Tests of the search as a whole")] if page.check_rows else []
    parts = [("Verdict", first), ("Factors", factors), ("Book", book), ("Search", search), ("Statistics", statistics)]
    return [Part(label, anchors) for label, anchors in parts]


def _list_section(name: str, label: str, sections: Sequence[FactorSection]) -> list[Anchor]:
    return [Anchor(name, label), *map(_name_section, sections)]


def _name_section(section: FactorSection) -> Anchor:
    """Return the anchor of a factor: its id and the beginning of its name."""
    name = section.name if len(section.name) <= MAX_ANCHOR_CHARS else f"{section.name[:MAX_ANCHOR_CHARS].rstrip()} …"
    return Anchor(section.id, f"{short_id(section.id)}: {name}", factor_file(section.id))


@dataclass(frozen=True)
class Places:
    """Where the links of a page lead; `here` is its file in the folder form, empty for the one-file form."""

    page: ReportPage
    here: str = ""

    months: ClassVar[Sequence[str]] = MONTH_NAMES
    index: ClassVar[str] = INDEX_FILE
    day_heads: ClassVar[Sequence[str]] = DAY_HEADS

    @property
    def contents(self) -> Sequence[Part]:
        """Return the contents of the report."""
        return list_parts(self.page)

    @property
    def stress(self) -> str:
        """Return the address of the stress tests."""
        return Anchor("stress", "", BOOK_FILE).link(self.here)

    @property
    def factors(self) -> Mapping[str, str]:
        """Return the address of each factor's section by id."""
        return {
            section.id: Anchor(section.id, "", factor_file(section.id)).link(self.here)
            for section in self.page.sections
        }

    @property
    def pages(self) -> Sequence[tuple[str, str]]:
        """Return name and file of the other pages of the folder form."""
        factors = [(short_id(section.id), factor_file(section.id)) for section in self.page.sections]
        return [*factors, ("the book", BOOK_FILE)]
