"""Writes the register of changes: which versions differ from the last ones on record, and in what."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...ledger import CHANGE_EVENT, AlphaloomError, ChangeWord, Event, Ledger, list_changes
from ...risk import Policy, compare_policies
from ...router import mask_keys
from .versions import UsedVersion

MAX_DIFF_CHARS: Final = 4_000
"""Characters of a diff that a row holds; both versions are stored whole under their digests."""


def record_versions(ledger: Ledger, run: str, versions: Sequence[UsedVersion], account: str) -> list[str]:
    """Record the versions that differ from the last ones on record, once, and return their labels.

    Processes that start together compare and write in turn: the second finds the rows of the first.
    """
    while True:
        rows = list_changes(ledger)
        known: dict[tuple[str, str], str] = {(row.kind, row.name): row.after for row in reversed(rows)}
        fresh = [one for one in versions if known.get((one.kind, one.name)) != one.digest]
        if not fresh:
            return []
        events = [
            Event(run, CHANGE_EVENT, f"{len(rows) + place:06}", _describe(ledger, one, known, account))
            for place, one in enumerate(fresh)
        ]
        if ledger.events.add_after(len(rows), events):
            return [one.label for one in fresh]


def _describe(
    ledger: Ledger, version: UsedVersion, known: Mapping[tuple[str, str], str], account: str
) -> dict[str, Any]:
    """Return the body of a row, after storing the version under its digest."""
    before = known.get((version.kind, version.name), "")
    what: ChangeWord = "changed" if before else "new" if known else "beginning"
    if version.kind == "prompt" and not before:  # a person's own page begins as a change of the shipped one
        before = known.get((version.kind, version.name.rpartition("/")[2]), "")
    earlier = _find_body(ledger, before)
    diff = "" if what == "beginning" else _compare(version, earlier)
    return {
        "kind": version.kind,
        "name": version.name,
        "what": what,
        "before": before,
        "after": ledger.objects.put(version.body.encode()),
        "diff": diff,
        "account": account,
    }


def _find_body(ledger: Ledger, digest: str) -> str | None:
    """Return a stored version; "" for none, None if its object is gone or was changed."""
    try:
        return ledger.objects.get(digest).decode() if digest else ""
    except (AlphaloomError, OSError):
        return None


def _compare(version: UsedVersion, earlier: str | None) -> str:
    if earlier is None:
        return "The version before is gone from the stored objects: alphaloom record verify."
    lines = [*_compare_policy(version.body, earlier)] if version.kind == "policy" and earlier else []
    text = "\n".join(lines or _diff_lines(version.body, earlier))
    text = mask_keys(text)
    if len(text) <= MAX_DIFF_CHARS:
        return text
    return text[:MAX_DIFF_CHARS].rpartition("\n")[0] + "\n... (cut; both versions are stored under their digests)"


def _diff_lines(body: str, earlier: str) -> Iterator[str]:
    lines = difflib.unified_diff(earlier.splitlines(), body.splitlines(), n=0, lineterm="")
    return (line for line in lines if not line.startswith(("---", "+++", "@@")))


def _compare_policy(body: str, earlier: str) -> Iterator[str]:
    """Yield each difference of two policies with its direction; nothing if an older version cannot read one."""
    try:
        new, old = (_read_policy(text) for text in (body, earlier))
    except ValueError:
        return
    for one in compare_policies(new, old):
        yield f"{one.change}: {one.name}: {_show(one.other)} -> {_show(one.own)}"


def _read_policy(text: str) -> Policy:
    return Policy.model_validate_json(text)


def _show(value: Any) -> str:
    if value is None:
        return "none"
    plain = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
    return json.dumps(plain, ensure_ascii=False, default=str)
