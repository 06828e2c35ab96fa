"""The register of changes: one dated row for each version of a model, prompt, router, policy or software in use."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final, Literal, get_args

from .store import Ledger

VersionKind = Literal["policy", "prompt", "model", "router", "software"]
VERSION_KINDS: Final[tuple[str, ...]] = get_args(VersionKind)
ChangeWord = Literal["beginning", "new", "changed"]
CHANGE_EVENT: Final = "change"
MAX_CHANGES: Final = 1_000_000
"""Rows of the register that are read."""


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
        Digests of the version before, empty if there was none, and of this one. Each names a stored object. Before a
        person's own prompt page there is the shipped one.
    diff
        What differs, without keys, cut where it is long; of a policy each limit with its direction.
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


def find_account() -> str:
    """Return the name of the account that runs this process; empty where the machine has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, and no variable with a name
        return ""


def list_changes(
    ledger: Ledger, *, since: date | None = None, kinds: Iterable[str] = VERSION_KINDS, most: int = MAX_CHANGES
) -> list[ChangeRow]:
    """Return the changes on record since a day (UTC), of some kinds, the newest first."""
    wanted, rows = {*kinds}, ledger.events.latest([CHANGE_EVENT], MAX_CHANGES)
    found = (ChangeRow(row.at, row.record.run, **row.record.body) for row in rows)
    start = since.isoformat() if since else ""
    return [row for row in found if row.kind in wanted and row.at >= start][:most]
