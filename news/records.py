"""From a raw record to an item: every field is checked, and all that is wrong with it is noted."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from ..market import MAX_SHOWN_PER_KIND
from .errors import NewsFileError, NewsFinding
from .item import NewsItem, Provenance
from .screening.cleaning import MAX_RECORD_CHARS, TITLE_CHARACTERS, join_clean, sanitise
from .screening.credibility import ITEM_KINDS, ItemKind, weight
from .screening.injection.detector import ScreeningVerdict, judge_text

MAX_VALUE_CHARS_SHOWN = 80
_SYMBOL = re.compile(r"[A-Za-z0-9^][A-Za-z0-9.^=:/_-]{0,19}")
_URL = re.compile(r"https?://[^\s<>\"'`{}|\\^]{1,2000}", re.IGNORECASE)
_SPLIT_SYMBOLS = re.compile(r"[,;\s]+")
_URL_WORDS = re.compile(r"[/?&=_+.%-]+")


@dataclass(frozen=True)
class NewsSource:
    """Says where texts come from.

    Attributes
    ----------
    path : Path
        RSS 2.0 or Atom (.xml, .rss, .atom), JSON lines (.jsonl, .ndjson), a filing (.txt, .sgml, .nc) or a table (.parquet, .csv).
    source : str
        Who published what does not say so itself; by default the title of the feed, or the file's name without extension.
    kind : Kind
        What the records are that do not say so; a filing is always one.
    ingested : datetime, optional
        When the file was fetched: nothing in it was known before. Without it an item is known when it was published.
    weights : Mapping[str, float]
        How much sources are believed, by name; `*` is for all others (`credibility`).
    symbols : tuple[str, ...]
        What every record is about that names no symbol.
    filers : Mapping[str, str]
        Symbols of filers by their number at the regulator (CIK), which filings give in place of a symbol.
    masked : bool
        Whether the names of authors were taken out: then each record that names no source is a voice of its own (`crowd`),
        called by the name of the whole and the begin of its hash.
    """

    path: Path
    source: str = ""
    kind: ItemKind = "news"
    ingested: datetime | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    filers: Mapping[str, str] = field(default_factory=dict)
    masked: bool = False

    def __post_init__(self) -> None:
        """Take a path that was given as text, and names in one spelling."""
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "weights", {name.casefold(): value for name, value in self.weights.items()})
        object.__setattr__(self, "filers", {number.lstrip("0"): symbol for number, symbol in self.filers.items()})


@dataclass(frozen=True)
class RawRecord:
    """A record as its file has it: number from 1, text by field, the instant reader that its format wants, its bytes."""

    number: int
    fields: Mapping[str, str]
    raw: bytes
    instant: Callable[[str], datetime]
    instant_allowed: str
    symbols: tuple[str, ...] = ()


@dataclass
class Findings:
    """Collects what is wrong: at most twenty of a kind in full, and a count of the others."""

    file: str
    findings: list[NewsFinding] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, record: int, name: str, message: str, got: object = "", allowed: str = "", hint: str = "") -> None:
        """Add one finding."""
        kind = (name, message)
        self.counts[kind] += 1
        if self.counts[kind] <= MAX_SHOWN_PER_KIND:
            shown = str(got)
            shown = shown if len(shown) <= MAX_VALUE_CHARS_SHOWN else f"{shown[: MAX_VALUE_CHARS_SHOWN - 3]}..."
            self.findings.append(NewsFinding(self.file, record, name, message, shown, allowed, hint))

    def refuse(self, path: Path) -> None:
        """Raise a NewsFileError with all that was found, if anything was."""
        if not self.findings:
            return
        total = self.counts.total()
        more = [
            f"  {name}: and {count - MAX_SHOWN_PER_KIND:,} more records where {message}"
            for (name, message), count in self.counts.items()
            if count > MAX_SHOWN_PER_KIND
        ]
        said = "1 finding" if total == 1 else f"{total:,} findings"
        lines = [
            f"{path} cannot be used: {said}, and nothing was done with it.",
            *(f"  {each}" for each in self.findings),
            *more,
        ]
        hint = "Records are counted from 1. Correct or drop them at the source, then run again."
        raise NewsFileError("\n".join(lines), findings=tuple(self.findings), field=str(path), hint=hint)


def item_of(raw: RawRecord, source: NewsSource, findings: Findings) -> NewsItem | None:
    """Return the item of a record, or None where something is wrong with it, which is noted."""
    before = findings.counts.total()
    published = _instant(raw, "published", findings)
    known = _read_known(raw, published, source, findings)
    kind = _kind(raw, source, findings)
    symbols = _symbols(raw, source, findings)
    stated = _read_weight(raw, findings)
    _text(raw, findings)
    if findings.counts.total() > before or published is None or known is None or kind is None:
        return None
    title, body = sanitise(raw.fields.get("title", ""), TITLE_CHARACTERS), sanitise(raw.fields.get("body", ""))
    name = sanitise(raw.fields.get("source", "") or source.source or source.path.stem, TITLE_CHARACTERS).text
    place = Provenance(source.path.name, raw.number, hashlib.sha256(raw.raw).hexdigest())
    if source.masked and not raw.fields.get("source"):
        name = f"{name}/masked-{place.sha256[:12]}"
    url = raw.fields.get("url", "").strip()
    url = url if _URL.fullmatch(url) and url.isprintable() else ""
    if not title.text and not body.text and not title.hidden and not body.hidden:
        findings.add(raw.number, "body", "nothing is left of the text once it is clean", raw.fields.get("body", ""))
        return None
    beside = _judge_source_names(name, _URL_WORDS.sub(" ", raw.fields.get("url", "")))
    flags = max(judge_text(join_clean(title, body)), beside, key=lambda verdict: verdict.score).signs
    believed = weight(name, kind, source.weights, stated)
    return NewsItem(name, url, symbols, title.text, body.text, published, known, kind, place, believed, flags)


@lru_cache(maxsize=1024)
def _judge_source_names(source: str, url: str) -> ScreeningVerdict:
    """Judge what stands beside a text: the names of the source and of the place."""
    return judge_text(sanitise(f"{source} {url}"))


def _instant(raw: RawRecord, name: str, findings: Findings) -> datetime | None:
    """Return an instant of a record; one that is missing or none is noted."""
    text = raw.fields.get(name, "").strip()
    if not text:
        findings.add(raw.number, name, "it is missing", allowed=raw.instant_allowed)
        return None
    try:
        return raw.instant(text)
    except (ValueError, OverflowError, TypeError, IndexError) as problem:
        said = str(problem) if str(problem).startswith("it") else "it is not an instant of the calendar"
        findings.add(raw.number, name, said, text, raw.instant_allowed)
        return None


def _read_known(raw: RawRecord, published: datetime | None, source: NewsSource, findings: Findings) -> datetime | None:
    """Return since when a record was known: what it says, not before it was published nor before the file was fetched."""
    known = _instant(raw, "known", findings) if raw.fields.get("known", "").strip() else published
    if known is None or published is None:
        return None
    if known < published:
        hint = "Nothing can be known earlier: leave it empty, or correct either time."
        findings.add(raw.number, "known", "it is before the text was published", raw.fields["known"], hint=hint)
        return None
    return max(known, source.ingested.astimezone(UTC)) if source.ingested else known


def _kind(raw: RawRecord, source: NewsSource, findings: Findings) -> ItemKind | None:
    """Return the kind of a record."""
    said = raw.fields.get("kind", "").strip().lower() or source.kind
    for kind in ITEM_KINDS:
        if kind == said:
            return kind
    findings.add(raw.number, "kind", "there is no such kind", said, ", ".join(ITEM_KINDS))
    return None


def _symbols(raw: RawRecord, source: NewsSource, findings: Findings) -> tuple[str, ...]:
    """Return the symbols of a record, sorted, each once."""
    listed = [*raw.symbols, *(each for each in _SPLIT_SYMBOLS.split(raw.fields.get("symbols", "")) if each)]
    for symbol in listed:
        if not _SYMBOL.fullmatch(symbol):
            allowed = "letters, digits and . ^ = : / _ -, at most 20"
            findings.add(raw.number, "symbols", "this is no symbol", symbol, allowed)
    return tuple(sorted(set(listed or source.symbols)))


def _read_weight(raw: RawRecord, findings: Findings) -> float | None:
    """Return the weight that a record states, or None."""
    text = raw.fields.get("credibility", "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        findings.add(raw.number, "credibility", "it is not a weight", text, "a number from 0 to 1")
        return None
    return value


def _text(raw: RawRecord, findings: Findings) -> None:
    """Note a record without text, or with more than is read."""
    size = sum(len(raw.fields.get(name, "")) for name in ("title", "body"))
    if not any(raw.fields.get(name, "").strip() for name in ("title", "body")):
        findings.add(raw.number, "body", "the record has neither a title nor a text")
    if size > MAX_RECORD_CHARS:
        findings.add(
            raw.number,
            "body",
            "the text is too long",
            f"{size:,} characters",
            f"at most {MAX_RECORD_CHARS:,} characters",
        )
