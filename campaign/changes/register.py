"""The register of changes: one dated row for each version that came into use, with what differs from the one before."""

from __future__ import annotations

import difflib
import getpass
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final, Literal

from ...ledger import AlphaloomError, Event, Ledger
from ...risk import Policy, compare_policies
from ...router import mask_keys
from .versions import UsedVersion, VersionKind

CHANGE_EVENT: Final = "change"
MAX_DIFF_CHARS: Final = 4_000
"""Characters of a diff that a row holds; both versions are stored whole under their digests."""
MAX_CHANGES: Final = 1_000_000
"""Rows of the register that are read."""
ChangeWord = Literal["beginning", "new", "changed"]


@dataclass(frozen=True)
class ChangeRow:
    """One version that came into use.

    Attributes
    ----------
    at, run
        When it was recorded (ISO, UTC), and the campaign, book or bench that used it first.
    kind, name
        What changed.
    what
        `beginning`: the workspace had no versions on record; `new`: this name had none; `changed`.
    before, after
        Digests of the version before, empty if there was none, and of this one. Each names a stored object.
    diff
        What differs, without keys, at most `MAX_DIFF_CHARS` characters; of a policy each limit with its direction.
    account
        The account of the machine that ran it.
    """

    at: str
    run: str
    kind: VersionKind
    name: str
    what: ChangeWord
    before: str
    after: str
    diff: str
    account: str

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def record_versions(ledger: Ledger, run: str, versions: Sequence[UsedVersion], account: str) -> list[str]:
    """Record the versions that differ from the last ones on record, once, and return their labels.

    Processes that start together compare and write in turn: the second finds the rows of the first.
    """
    while True:
        rows = ledger.events.latest([CHANGE_EVENT], MAX_CHANGES)
        known = {(row.record.body["kind"], row.record.body["name"]): row.record.body["after"] for row in reversed(rows)}
        fresh = [one for one in versions if known.get((one.kind, one.name)) != one.digest]
        if not fresh:
            return []
        events = [
            Event(run, CHANGE_EVENT, f"{len(rows) + place:06}", _describe(ledger, one, known, account))
            for place, one in enumerate(fresh)
        ]
        if ledger.events.add_after(len(rows), events):
            return [one.label for one in fresh]


def list_changes(
    ledger: Ledger, *, since: date | None = None, kind: str = "", most: int = MAX_CHANGES
) -> list[ChangeRow]:
    """Return the changes on record since a day (UTC), of one kind or of all, the newest first."""
    rows = (ChangeRow(row.at, row.record.run, **row.record.body) for row in _read(ledger, most, kind))
    return [row for row in rows if since is None or row.at[:10] >= since.isoformat()]


def _read(ledger: Ledger, most: int, kind: str) -> list[Any]:
    rows = ledger.events.latest([CHANGE_EVENT], MAX_CHANGES if kind else most)
    return [row for row in rows if kind in ("", row.record.body["kind"])][:most]


def find_account() -> str:
    """Return the name of the account that runs this process; empty where the machine has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _describe(
    ledger: Ledger, version: UsedVersion, known: Mapping[tuple[str, str], str], account: str
) -> dict[str, Any]:
    """Return the body of a row, after storing the version under its digest."""
    before = known.get((version.kind, version.name), "")
    what: ChangeWord = "changed" if before else "new" if known else "beginning"
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
