"""EDGAR filings: an SGML header, and the documents as HTML or plain text.

A filing is known when it was accepted. One accepted after 17:30 is dated the next business day and published that
morning: where the header's filing date is later than the day of acceptance, the filing is known from six in New York.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .errors import Findings
from .instants import convert_new_york, format_instant, parse_edgar, parse_iso
from .item import NewsSource, RawRecord

OPENS_HOUR = 6
STAMP_FORMAT = "fourteen digits, such as 20150130163005, in the time of New York"
_FILING_START = re.compile(rb"^<(?:SEC-DOCUMENT|IMS-DOCUMENT)>", re.MULTILINE)
_DOCUMENT = re.compile(r"<DOCUMENT>", re.IGNORECASE)
_HEADER_LABEL = re.compile(r"^\s{0,20}([A-Z][A-Z /&-]{2,60}):[ \t]+([^\n]{1,300})$", re.MULTILINE)
_TAG = re.compile(r"^<([A-Z-]{2,40})>([^\n<]{1,300})$", re.MULTILINE)
_READABLE_NAME = re.compile(r"\.(?:txt|html?|xhtml)$", re.IGNORECASE)
_SKIPPED_TYPES = ("GRAPHIC", "ZIP", "EXCEL", "XML", "JSON", "PDF", "COVER")


def read_filings(path: Path, body: bytes, source: NewsSource, findings: Findings) -> list[RawRecord]:
    """Return the filings of a file; mistakes in one are findings."""
    starts = [match.start() for match in _FILING_START.finditer(body)]
    if not starts:
        findings.add(0, "", "there is no filing in it", allowed="a file that begins with <SEC-DOCUMENT>")
        return []
    ends = [*starts[1:], len(body)]
    return [
        _read_filing(number, body[start:end], source, findings)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]


def _read_filing(number: int, raw: bytes, source: NewsSource, findings: Findings) -> RawRecord:
    """Return the record of one filing."""
    text = raw.decode("utf-8") if _is_utf8(raw) else raw.decode("cp1252", errors="replace")
    text = text.replace("\r\n", "\n")
    head = text[: match.start()] if (match := _DOCUMENT.search(text)) else text
    header: dict[str, str] = {}
    for name, value in [*_HEADER_LABEL.findall(head), *_TAG.findall(head)]:
        header.setdefault(name.strip(), value.strip())
    for name in ("ACCEPTANCE-DATETIME", "CONFORMED SUBMISSION TYPE"):
        if name not in header:
            findings.add(
                number,
                name,
                "the header does not have it",
                allowed=STAMP_FORMAT if name == "ACCEPTANCE-DATETIME" else "such as 10-K",
            )
    cik = header.get("CENTRAL INDEX KEY", "").lstrip("0")
    fields = {
        "source": source.source or "EDGAR",
        "kind": "filing",
        "title": " ".join(
            filter(None, (header.get("CONFORMED SUBMISSION TYPE", ""), header.get("COMPANY CONFORMED NAME", "")))
        ),
        "body": "\n".join(_iterate_documents(text)),
        "symbols": source.filers.get(cik, ""),
    }
    accepted = _read_acceptance(number, header, findings)
    if accepted is not None:
        fields |= {
            "published": format_instant(accepted),
            "known": format_instant(_compute_public_instant(number, accepted, header, findings)),
        }
    return RawRecord(number, fields, raw, lambda text: parse_iso(text, zoned=True), STAMP_FORMAT)


def _read_acceptance(number: int, header: dict[str, str], findings: Findings) -> datetime | None:
    """Return when a filing was accepted, or None."""
    stamp = header.get("ACCEPTANCE-DATETIME")
    if stamp is None:
        return None
    try:
        return parse_edgar(stamp)
    except ValueError:
        findings.add(number, "ACCEPTANCE-DATETIME", "it is not an instant", stamp, STAMP_FORMAT)
        return None


def _compute_public_instant(number: int, accepted: datetime, header: dict[str, str], findings: Findings) -> datetime:
    """Return when a filing became public."""
    day = header.get("FILED AS OF DATE", "")
    if not day:
        return accepted
    try:
        opens = convert_new_york(datetime.strptime(day, "%Y%m%d").replace(hour=OPENS_HOUR))
    except ValueError:
        findings.add(number, "FILED AS OF DATE", "it is not a day", day, "eight digits, such as 20150130")
        return accepted
    return max(accepted, opens.astimezone(UTC))


def _iterate_documents(text: str) -> Iterator[str]:
    """Yield the text of each document that is text."""
    for piece in _DOCUMENT.split(text)[1:]:
        head, _, rest = piece.partition("<TEXT>")
        header = {name: value.strip() for name, value in _TAG.findall(head)}
        name = header.get("FILENAME", "a.txt")
        if header.get("TYPE", "").upper() in _SKIPPED_TYPES or not _READABLE_NAME.search(name):
            continue
        yield rest.partition("</TEXT>")[0]


def _is_utf8(raw: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
