"""The jump box: campaigns, books, factors, library entries, texts, hypotheses and formulas by their words.

The work is bounded: hypotheses and formulas are searched from the newest backwards until the time is up, and the page
says how far that went. It shows names, texts and hypotheses, and nothing that the gate found: what a person has yet to
judge blind is not told here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from .campaigns import is_campaign
from .pages import PLACES, PageRequest

if TYPE_CHECKING:
    from ...ledger import Ledger

HITS_SHOWN: Final = 8
"""Of each kind."""
MAX_WORDS, MAX_QUERY_CHARS = 8, 200
HYPOTHESIS_SECONDS, JUMP_SECONDS = 0.06, 0.16
"""Seconds since the question after which hypotheses, and then formulas, are searched no further."""
ATTEMPTS_READ, MAX_MATCHES = 10_000, 32
"""Proposals that one query reads, and matches that it returns; the time is looked at between two queries."""
MIN_ID_CHARS: Final = 3
TEXT_FIELD: Final = '"text":"'
"""JSON before the text of an attempt, which is the last of its fields."""


@dataclass(frozen=True)
class JumpHit:
    """Where to go: its title, what else is known of it, and its page."""

    title: str
    detail: str
    href: str


@dataclass(frozen=True)
class JumpGroup:
    """Hits of one kind; `more` says that there are others."""

    kind: str
    hits: list[JumpHit]
    more: bool


@dataclass(frozen=True)
class JumpPage:
    """What was found for the words, by kind, and what was not searched."""

    words: str
    groups: list[JumpGroup]
    notes: list[str]


@dataclass
class JumpSearch:
    """One question: its words in small letters, when it began, and what could not be searched."""

    ledger: Ledger
    words: Sequence[str]
    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin, with all runs, the newest first."""
        self._begin = self.clock()
        self.runs = self.ledger.runs.all()[::-1]
        self.campaigns = [run for run in self.runs if is_campaign(run)]

    def holds(self, *texts: str) -> bool:
        """Tell whether all words occur in some texts."""
        text = " ".join(texts).casefold()
        return all(word in text for word in self.words)

    def is_late(self, seconds: float) -> bool:
        """Tell whether the question is older than so many seconds."""
        return self.clock() - self._begin > seconds

    def find_places(self) -> Iterator[JumpHit]:
        """Yield pages of the desk."""
        named = [*PLACES, ("/compare", "Compare"), ("/calibration", "Calibration")]
        yield from (JumpHit(word, "page", href) for href, word in named if self.holds(word))

    def find_campaigns(self) -> Iterator[JumpHit]:
        """Yield campaigns by their id."""
        found = (run for run in self.campaigns if self.holds(run.id))
        yield from (JumpHit(run.id, f"begun {run.started_at[:10]}", f"/runs/{quote(run.id)}") for run in found)

    def find_books(self) -> Iterator[JumpHit]:
        """Yield books by their name."""
        names = (run.id.removeprefix("book-") for run in self.runs if "book" in run.config)
        yield from (JumpHit(name, "book", f"/books/{quote(name)}") for name in names if self.holds(name))

    def find_library(self) -> Iterator[JumpHit]:
        """Yield entries of the library by id and formula."""
        for row in self.ledger.library.rows():
            if self.holds(row.factor_id, row.canonical):
                yield JumpHit(row.canonical, row.factor_id, f"/library/{quote(row.factor_id)}")

    def find_ids(self) -> Iterator[JumpHit]:
        """Yield scored factors whose id begins with the only word, run by run."""
        start = self.words[0]
        if len(self.words) > 1 or len(start) < MIN_ID_CHARS or not start.isascii() or not start.isalnum():
            return
        for place, run in enumerate(self.runs):
            if self.is_late(HYPOTHESIS_SECONDS):
                self._note("ids", place, len(self.runs), "runs")
                return
            condition, order = "run = ? AND factor_id >= ? AND factor_id < ?", f"factor_id LIMIT {HITS_SHOWN + 1}"
            for score in self.ledger.evaluations.find(condition, run.id, start, f"{start}~", order=order):
                yield _hit_factor(run.id, score.factor_id, score.text)

    def find_texts(self) -> Iterator[JumpHit]:
        """Yield news and filings by their words, those that are held back too."""
        from ...news import NEWS_FOLDER, NewsStore

        folder = self.ledger.workspace / NEWS_FOLDER
        if not folder.is_dir() or not any(word.isalnum() for word in self.words):
            return
        end = datetime.max.replace(tzinfo=UTC)
        with NewsStore(folder) as store:
            items = [*store.search(end, " ".join(self.words), limit=HITS_SHOWN + 1).items]
            items += [held.item for held in store.list_quarantine(end) if self.holds(held.item.title, held.item.body)]
        for item in items:
            yield JumpHit(item.title or item.id[:12], f"{item.kind} from {item.source}", f"/texts/{quote(item.id)}")

    def find_hypotheses(self) -> Iterator[JumpHit]:
        """Yield hypotheses by statement and mechanism, the newest campaign first."""
        for place, run in enumerate(self.campaigns):
            if self.is_late(HYPOTHESIS_SECONDS):
                self._note("hypotheses", place, len(self.campaigns), "campaigns")
                return
            for event in self.ledger.events.search(run.id, "agents.hypothesis", self.words, HITS_SHOWN + 1):
                statement, mechanism = (str(event.body.get(name, "")) for name in ("statement", "mechanism"))
                if self.holds(statement, mechanism):
                    yield JumpHit(statement, f"{event.key} of {run.id}", f"/runs/{quote(run.id)}?q={quote(statement)}")

    def find_formulas(self) -> Iterator[JumpHit]:
        """Yield scored formulas by their text, the newest first, each once in a campaign."""
        known, seen = {run.id for run in self.campaigns}, set[tuple[str, str]]()
        place = end = self.ledger.attempts.end()
        while place > 1:
            found, place = self.ledger.attempts.search_back(self.words, TEXT_FIELD, place, ATTEMPTS_READ, MAX_MATCHES)
            for row in (entry.record for entry in found):
                key = (row.run, row.factor_id or "")
                if row.stage == "scored" and row.run in known and key not in seen and self.holds(row.text):
                    seen.add(key)
                    yield _hit_factor(*key, row.text)
            if place > 1 and self.is_late(JUMP_SECONDS):
                self._note("formulas", end - place, end - 1, "proposals")
                return

    def _note(self, what: str, searched: int, of: int, unit: str) -> None:
        self.notes.append(f"Not all {what} were searched: only those of the newest {searched:,} of {of:,} {unit}.")


def _hit_factor(run: str, factor: str, text: str) -> JumpHit:
    return JumpHit(text, f"{factor} of {run}", f"/runs/{quote(run)}/factors/{quote(factor)}")


def load_jump(view: PageRequest) -> JumpPage:
    """Return what the words of the query lead to; for a query without words the pages of the desk."""
    asked = " ".join(view.query.get("q", "").split())[:MAX_QUERY_CHARS]
    search = JumpSearch(view.ledger, asked.casefold().split()[:MAX_WORDS])
    kinds: list[tuple[str, Callable[[], Iterator[JumpHit]]]] = [("Pages", search.find_places)]
    if search.words:
        kinds += [
            ("Campaigns", search.find_campaigns), ("Books", search.find_books), ("Factors by id", search.find_ids),
            ("Library", search.find_library), ("Texts", search.find_texts), ("Hypotheses", search.find_hypotheses),
            ("Formulas", search.find_formulas),
        ]  # fmt: skip  # a table
    groups = []
    for kind, find in kinds:
        hits = list(islice(find(), HITS_SHOWN + 1))
        if hits:
            groups.append(JumpGroup(kind, hits[:HITS_SHOWN], len(hits) > HITS_SHOWN))
    return JumpPage(asked, groups, search.notes)
