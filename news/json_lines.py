"""JSON lines: one object a line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from .errors import Findings
from .instants import ZONED_FORMAT, parse_iso
from .item import RawRecord

FIELD_SYNONYMS = {
    "text": "body", "content": "body", "summary": "body", "headline": "title", "time": "published", "date": "published",
    "datetime": "published", "timestamp": "published", "time_utc": "published", "published_at": "published",
    "symbol": "symbols", "ticker": "symbols", "tickers": "symbols", "link": "url", "ingested": "known",
    "known_at": "known", "publisher": "source", "author": "source",
}  # fmt: skip  # a table
"""Other common names of fields."""
RECORD_FIELDS = ("source", "url", "symbols", "title", "body", "published", "known", "kind", "credibility")


def read_lines(body: bytes, findings: Findings) -> list[RawRecord]:
    """Return the records of a file; lines that are no object are findings."""
    records = []
    for number, line in enumerate(body.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if line.strip():
            fields = _parse_object(number, line, findings)
            if fields is not None:
                records.append(
                    RawRecord(number, _read_fields(number, fields, findings), line, _parse_zoned, ZONED_FORMAT)
                )
    if not records and not findings.findings:
        findings.add(0, "", "there is no record in it")
    return records


def _parse_zoned(text: str) -> Any:
    """Return the instant of a field; its zone must be written."""
    return parse_iso(text, zoned=True)


def _parse_object(number: int, line: bytes, findings: Findings) -> Mapping[str, object] | None:
    """Return the object of a line; None, and a finding, where there is none."""
    try:
        content = json.loads(line, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)
    except UnicodeDecodeError:
        findings.add(number, "", "the line is not UTF-8")
    except RecursionError:
        findings.add(number, "", "the line is nested too deeply")
    except ValueError as problem:
        findings.add(number, "", "the line is not JSON", str(problem))
    else:
        if isinstance(content, dict):
            return content
        findings.add(
            number, "", "the line is not an object", type(content).__name__, '{"published": ..., "title": ..., ...}'
        )
    return None


def _read_fields(number: int, content: Mapping[str, object], findings: Findings) -> dict[str, str]:
    """Return the known fields as text; a probable misspelling is a finding, any other field is ignored."""
    fields: dict[str, str] = {}
    for key, value in content.items():
        name = FIELD_SYNONYMS.get(key.lower(), key.lower())
        if name not in RECORD_FIELDS:
            matches = difflib.get_close_matches(key.lower(), [*RECORD_FIELDS, *FIELD_SYNONYMS], n=1, cutoff=0.8)
            if matches:
                findings.add(
                    number,
                    key,
                    "this name is not known",
                    allowed=", ".join(RECORD_FIELDS),
                    hint=f"Rename it to {matches[0]!r} if that is it.",
                )
            continue
        if name in fields:
            findings.add(number, key, f"{name} is there twice, under two names")
        fields[name] = _read_text(number, name, value, findings)
    return fields


def _read_text(number: int, name: str, value: object, findings: Findings) -> str:
    """Return a value as text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if name == "symbols" and isinstance(value, list) and all(isinstance(symbol, str) for symbol in value):
        return ",".join(value)
    if name == "credibility" and isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    findings.add(number, name, "it is not text", f"{type(value).__name__} {value!r}", "text, or a list of symbols")
    return ""


def _refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which are no JSON."""
    raise ValueError(f"{name} is no JSON")


def _refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys differ."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name is there twice")
    return fields
