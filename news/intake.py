"""Read items from files; all mistakes of a file are reported at once, and a file is read whole or not at all."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..ledger import compute_digest
from ..ledger.files import read_given
from .errors import Findings
from .feeds import read_feed
from .filings import read_filings
from .instants import PLAIN_FORMAT, parse_iso
from .item import NewsItem, NewsSource, Provenance, RawRecord
from .json_lines import FIELD_SYNONYMS, RECORD_FIELDS, read_lines
from .screening.cleaning import MAX_RECORD_CHARS, TITLE_CHARACTERS, join_clean, sanitise
from .screening.credibility import ITEM_KINDS, ItemKind, weigh_source
from .screening.injection.detector import ScreeningVerdict, judge_text

if TYPE_CHECKING:
    import pyarrow as pa

    from ..market import Table

MAX_FILE_BYTES = 2 << 30
FORMAT_BY_SUFFIX = {
    **dict.fromkeys((".xml", ".rss", ".atom"), "feed"),
    **dict.fromkeys((".jsonl", ".ndjson"), "lines"),
    **dict.fromkeys((".txt", ".sgml", ".nc"), "filings"),
    **dict.fromkeys((".parquet", ".csv"), "table"),
}
_SYMBOL = re.compile(r"[A-Za-z0-9^][A-Za-z0-9.^=:/_-]{0,19}")
_URL = re.compile(r"https?://[^\s<>\"'`{}|\\^]{1,2000}", re.IGNORECASE)
_SPLIT_SYMBOLS = re.compile(r"[,;\s]+")
_URL_WORDS = re.compile(r"[/?&=_+.%-]+")
NEEDED_COLUMNS = ("published", "body")


def read_news(source: NewsSource) -> tuple[NewsItem, ...]:
    """Read a file of texts.

    Parameters
    ----------
    source : NewsSource
        The file, and the facts stated about it.

    Returns
    -------
    tuple[NewsItem, ...]
        In the order of the file, cleaned and judged; items held back are included.

    Raises
    ------
    NewsFileError
        With every finding in the file (`.findings`, at most 20 of a kind and a count).
    """
    findings = Findings(source.path.name)
    if source.ingested is not None and source.ingested.tzinfo is None:
        findings.add(0, "ingested", "its zone is missing", source.ingested, "an instant with its zone")
    for name, weight in source.weights.items():
        if not 0.0 <= weight <= 1.0:
            findings.add(0, "weights", f"the weight of {name!r} is out of range", weight, "0 to 1")
    findings.refuse(source.path)
    records, title = _read_records(source, findings)
    source = replace(source, source=source.source or title)
    items = [build_item(record, source, findings) for record in records]
    findings.refuse(source.path)
    return tuple(item for item in items if item is not None)


def _read_records(source: NewsSource, findings: Findings) -> tuple[list[RawRecord], str]:
    """Return the raw records of a file, and its own title."""
    path = source.path
    file_format = FORMAT_BY_SUFFIX.get(path.suffix.lower())
    if file_format is None:
        findings.add(0, "path", "there is no such format", path.suffix or "no extension", ", ".join(FORMAT_BY_SUFFIX))
        return [], ""
    if file_format == "table":
        return _read_rows(path, findings), ""
    body = _read_bytes(path, findings)
    if body is None:
        return [], ""
    if file_format == "feed":
        return read_feed(path, body, findings)
    return (read_lines(body, findings) if file_format == "lines" else read_filings(path, body, source, findings)), ""


def _read_bytes(path: Path, findings: Findings) -> bytes | None:
    """Return the bytes of a file; None, and a finding, where it cannot be read."""
    try:
        return read_given(path, MAX_FILE_BYTES)
    except OSError as problem:
        findings.add(0, "path", "the file cannot be read", problem.strerror or problem)
        return None


def build_item(raw: RawRecord, source: NewsSource, findings: Findings) -> NewsItem | None:
    """Return the item of a record; None, and findings, where something is wrong with it."""
    before = findings.counts.total()
    published = _read_instant(raw, "published", findings)
    known = _read_known(raw, published, source, findings)
    kind = _read_kind(raw, source, findings)
    symbols = _read_symbols(raw, source, findings)
    stated = _read_weight(raw, findings)
    _check_text(raw, findings)
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
    source_verdict = _judge_source_names(name, _URL_WORDS.sub(" ", raw.fields.get("url", "")))
    flags = max(judge_text(join_clean(title, body)), source_verdict, key=lambda verdict: verdict.score).signs
    credibility = weigh_source(name, kind, source.weights, stated)
    return NewsItem(name, url, symbols, title.text, body.text, published, known, kind, place, credibility, flags)


@lru_cache(maxsize=1024)
def _judge_source_names(source: str, url: str) -> ScreeningVerdict:
    """Judge the name of the source and the words of its address, which are served with the text."""
    return judge_text(sanitise(f"{source} {url}"))


def _read_instant(raw: RawRecord, name: str, findings: Findings) -> datetime | None:
    """Return an instant of a record; None, and a finding, where it is missing or invalid."""
    text = raw.fields.get(name, "").strip()
    if not text:
        findings.add(raw.number, name, "it is missing", allowed=raw.instant_allowed)
        return None
    try:
        return raw.instant(text)
    except (ValueError, OverflowError, TypeError, IndexError) as problem:
        message = str(problem) if str(problem).startswith("it") else "it is not an instant of the calendar"
        findings.add(raw.number, name, message, text, raw.instant_allowed)
        return None


def _read_known(raw: RawRecord, published: datetime | None, source: NewsSource, findings: Findings) -> datetime | None:
    """Return since when a record was known: as stated, but not before it was published or its file was fetched."""
    known = _read_instant(raw, "known", findings) if raw.fields.get("known", "").strip() else published
    if known is None or published is None:
        return None
    if known < published:
        hint = "Nothing can be known earlier: leave it empty, or correct either time."
        findings.add(raw.number, "known", "it is before the text was published", raw.fields["known"], hint=hint)
        return None
    return max(known, source.ingested.astimezone(UTC)) if source.ingested else known


def _read_kind(raw: RawRecord, source: NewsSource, findings: Findings) -> ItemKind | None:
    stated = raw.fields.get("kind", "").strip().lower() or source.kind
    for kind in ITEM_KINDS:
        if kind == stated:
            return kind
    findings.add(raw.number, "kind", "there is no such kind", stated, ", ".join(ITEM_KINDS))
    return None


def _read_symbols(raw: RawRecord, source: NewsSource, findings: Findings) -> tuple[str, ...]:
    """Return the symbols of a record, sorted, each once."""
    listed = [*raw.symbols, *(symbol for symbol in _SPLIT_SYMBOLS.split(raw.fields.get("symbols", "")) if symbol)]
    for symbol in listed:
        if not _SYMBOL.fullmatch(symbol):
            allowed = "letters, digits and . ^ = : / _ -, at most 20"
            findings.add(raw.number, "symbols", "this is no symbol", symbol, allowed)
    return tuple(sorted(set(listed or source.symbols)))


def _read_weight(raw: RawRecord, findings: Findings) -> float | None:
    """Return the credibility that a record states, or None."""
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


def _check_text(raw: RawRecord, findings: Findings) -> None:
    """Find a record without text, or with too long a text."""
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


def _read_rows(path: Path, findings: Findings) -> list[RawRecord]:
    """Return the rows of a table; a missing column, or one without text, is a finding."""
    from ..market import PanelError, read_table

    try:
        table = read_table(path)
    except PanelError as problem:
        findings.add(0, "", problem.findings[0].message if problem.findings else str(problem), hint=problem.hint)
        return []
    for broken in (*table.clashes, *table.broken):
        findings.add(broken.row, broken.column, broken.message)
    columns = _read_columns(table, findings)
    for name in NEEDED_COLUMNS:
        if name not in columns and not (name == "body" and "title" in columns):
            findings.add(0, name, "the column is missing", ", ".join(table.columns), "time_utc, symbol, text")
    if findings.findings:
        return []
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    numbers = table.row_numbers.tolist()
    return [_make_record(number, dict(zip(names, row, strict=True))) for number, row in zip(numbers, rows, strict=True)]


def _read_columns(table: Table, findings: Findings) -> dict[str, list[str]]:
    """Return the known columns as text, by field."""
    fields: dict[str, list[str]] = {}
    for column, values in table.columns.items():
        name = FIELD_SYNONYMS.get(column, column)
        if name not in RECORD_FIELDS:
            continue
        if name in fields:
            findings.add(0, column, f"{name} is there twice, under two names")
        fields[name] = _read_column(column, values, findings)
    return fields


def _read_column(column: str, values: pa.ChunkedArray, findings: Findings) -> list[str]:
    """Return a column as text, empty where a cell is missing; instants without a zone are UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_timestamp(kind):
        zoned = values.cast(pa.timestamp("us", tz="UTC"), safe=False)
        return [cell or "" for cell in pc.strftime(zoned, format="%Y-%m-%dT%H:%M:%SZ").to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [",".join(cell or ()) for cell in values.to_pylist()]
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_date(kind):
        findings.add(0, column, "the column holds neither text nor instants", kind, PLAIN_FORMAT)
        return [""] * len(values)
    return [cell or "" for cell in values.cast(pa.string()).to_pylist()]


def _make_record(number: int, fields: dict[str, str]) -> RawRecord:
    """Return the record of a row; its bytes are the digest of the row."""
    return RawRecord(
        number, fields, compute_digest(fields).encode(), lambda text: parse_iso(text, zoned=False), PLAIN_FORMAT
    )
