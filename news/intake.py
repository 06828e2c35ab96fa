"""From files to items: everything that is wrong in a file is said at once, and nothing of it is half-read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..ledger.files import read_given
from .feeds import read_feed
from .filings import read_filings
from .item import NewsItem
from .lines import read_lines
from .records import Findings, NewsSource, RawRecord, item_of

MAX_FILE_BYTES = 2 << 30
FORMAT_BY_SUFFIX = {
    **dict.fromkeys((".xml", ".rss", ".atom"), "feed"),
    **dict.fromkeys((".jsonl", ".ndjson"), "lines"),
    **dict.fromkeys((".txt", ".sgml", ".nc"), "filings"),
    **dict.fromkeys((".parquet", ".csv"), "table"),
}


def read_news(source: NewsSource) -> tuple[NewsItem, ...]:
    """Read a file of texts.

    Parameters
    ----------
    source : NewsSource
        The file, and what is said about it.

    Returns
    -------
    tuple[NewsItem, ...]
        In the order of the file, clean and judged; an item whose signs hold it back is among them.

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
    records, title = _records(source, findings)
    source = replace(source, source=source.source or title)
    items = [item_of(record, source, findings) for record in records]
    findings.refuse(source.path)
    return tuple(item for item in items if item is not None)


def _records(source: NewsSource, findings: Findings) -> tuple[list[RawRecord], str]:
    """Return the raw records of a file, and what the file calls itself."""
    path = source.path
    form = FORMAT_BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        findings.add(0, "path", "there is no such format", path.suffix or "no extension", ", ".join(FORMAT_BY_SUFFIX))
        return [], ""
    if form == "table":
        from .tables import read_rows

        return read_rows(path, findings), ""
    body = _bytes(path, findings)
    if body is None:
        return [], ""
    if form == "feed":
        return read_feed(path, body, findings)
    return (read_lines(body, findings) if form == "lines" else read_filings(path, body, source, findings)), ""


def _bytes(path: Path, findings: Findings) -> bytes | None:
    """Return the bytes of a file, or None where it cannot be read, which is noted."""
    try:
        return read_given(path, MAX_FILE_BYTES)
    except OSError as problem:
        findings.add(0, "path", "the file cannot be read", problem.strerror or problem)
        return None
