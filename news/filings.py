"""Filings as the regulator stores them: an SGML header, and the documents as HTML or plain text.

A filing is known when it was accepted. One that was accepted after half past five is dated the next business day and comes out
that morning: where the header's filing date is later than the day of acceptance, the filing is known from six in New York.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .instants import format_instant, from_edgar, from_iso, from_new_york
from .records import Findings, NewsSource, RawRecord

OPENS_HOUR = 6
STAMP_FORMAT = "fourteen digits, such as 20150130163005, in the time of New York"
_FILING_START = re.compile(rb"^<(?:SEC-DOCUMENT|IMS-DOCUMENT)>", re.MULTILINE)
_DOCUMENT = re.compile(r"<DOCUMENT>", re.IGNORECASE)
_HEADER_LABEL = re.compile(r"^\s{0,20}([A-Z][A-Z /&-]{2,60}):[ \t]+([^\n]{1,300})$", re.MULTILINE)
_TAG = re.compile(r"^<([A-Z-]{2,40})>([^\n<]{1,300})$", re.MULTILINE)
_READABLE_NAME = re.compile(r"\.(?:txt|html?|xhtml)$", re.IGNORECASE)
_SKIPPED_TYPES = ("GRAPHIC", "ZIP", "EXCEL", "XML", "JSON", "PDF", "COVER")


def read_filings(path: Path, body: bytes, source: NewsSource, findings: Findings) -> list[RawRecord]:
    """Return the filings of a file; what is wrong with one is noted."""
    starts = [match.start() for match in _FILING_START.finditer(body)]
    if not starts:
        findings.add(0, "", "there is no filing in it", allowed="a file that begins with <SEC-DOCUMENT>")
        return []
    ends = [*starts[1:], len(body)]
    return [
        _filing(number, body[start:end], source, findings)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def _filing(number: int, raw: bytes, source: NewsSource, findings: Findings) -> RawRecord:
    """Return the record of one filing."""
    text = raw.decode("utf-8") if _is_utf8(raw) else raw.decode("cp1252", errors="replace")
    text = text.replace("\r\n", "\n")
    head = text[: match.start()] if (match := _DOCUMENT.search(text)) else text
    said: dict[str, str] = {}
    for name, value in [*_HEADER_LABEL.findall(head), *_TAG.findall(head)]:
        said.setdefault(name.strip(), value.strip())
    for name in ("ACCEPTANCE-DATETIME", "CONFORMED SUBMISSION TYPE"):
        if name not in said:
            findings.add(
                number,
                name,
                "the header does not have it",
                allowed=STAMP_FORMAT if name == "ACCEPTANCE-DATETIME" else "such as 10-K",
            )
    cik = said.get("CENTRAL INDEX KEY", "").lstrip("0")
    fields = {
        "source": source.source or "EDGAR",
        "kind": "filing",
        "title": " ".join(
            filter(None, (said.get("CONFORMED SUBMISSION TYPE", ""), said.get("COMPANY CONFORMED NAME", "")))
        ),
        "body": "\n".join(_documents(text)),
        "symbols": source.filers.get(cik, ""),
    }
    accepted = _acceptance_instant(number, said, findings)
    if accepted is not None:
        fields |= {
            "published": format_instant(accepted),
            "known": format_instant(_public_instant(number, accepted, said, findings)),
        }
    return RawRecord(number, fields, raw, lambda text: from_iso(text, zoned=True), STAMP_FORMAT)


def _acceptance_instant(number: int, said: dict[str, str], findings: Findings) -> datetime | None:
    """Return when a filing was accepted, or None."""
    stamp = said.get("ACCEPTANCE-DATETIME")
    if stamp is None:
        return None
    try:
        return from_edgar(stamp)
    except ValueError:
        findings.add(number, "ACCEPTANCE-DATETIME", "it is not an instant", stamp, STAMP_FORMAT)
        return None


def _public_instant(number: int, accepted: datetime, said: dict[str, str], findings: Findings) -> datetime:
    """Return since when a filing could be read."""
    day = said.get("FILED AS OF DATE", "")
    if not day:
        return accepted
    try:
        opens = from_new_york(datetime.strptime(day, "%Y%m%d").replace(hour=OPENS_HOUR))
    except ValueError:
        findings.add(number, "FILED AS OF DATE", "it is not a day", day, "eight digits, such as 20150130")
        return accepted
    return max(accepted, opens.astimezone(UTC))


def _documents(text: str) -> Iterator[str]:
    """Yield the text of each document that is text."""
    for piece in _DOCUMENT.split(text)[1:]:
        head, _, rest = piece.partition("<TEXT>")
        said = {name: value.strip() for name, value in _TAG.findall(head)}
        name = said.get("FILENAME", "a.txt")
        if said.get("TYPE", "").upper() in _SKIPPED_TYPES or not _READABLE_NAME.search(name):
            continue
        yield rest.partition("</TEXT>")[0]


def _is_utf8(raw: bytes) -> bool:
    """Tell whether bytes are UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
