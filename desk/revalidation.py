"""Accepted factors come back to a person: by which day each is looked at again, and the record of who did.

The days are counted from when the library took a factor in, or from its last re-validation, by the clock of the record
and not by the days of any data. A combination stands for its members. Whoever looks again says why the factor stays;
one that does not stay is retired. The decision is an event of the run that accepted it, with the digest of what
`alphaloom library show` said, so that later it can be told what was known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ..ledger import compute_digest
from .errors import DeskError

if TYPE_CHECKING:
    from ..ledger import Ledger, LibraryRow
    from ..library import Entry

REVALIDATION_EVENT: Final = "revalidation"
"""Kind of the event; its key is the factor's id, a slash, and a number."""
ASKED_ORIGINS: Final = ("accepted", "promoted")
"""How a factor was proven that comes back."""
ASKED_STATUSES: Final = ("live", "decaying")
MAX_REVALIDATION_CHARS: Final = 2_000


@dataclass(frozen=True)
class Revalidation:
    """One decision that a factor stays.

    Attributes
    ----------
    by, reason, at
        The person, why, and the ISO time.
    status
        Its status in the library at that time.
    digest
        Of the facts that the person was shown.
    """

    by: str
    reason: str
    at: str
    status: str
    digest: str


@dataclass(frozen=True)
class RevalidationDate:
    """When a factor is to be looked at again.

    Attributes
    ----------
    since
        ISO day from which is counted.
    due
        ISO day; None where the policy asks for none.
    last
        The last re-validation; None where there is none.
    """

    since: str
    due: str | None
    last: Revalidation | None

    def is_past(self, now: datetime) -> bool:
        """Return whether the day has come."""
        return self.due is not None and self.due <= now.astimezone(UTC).date().isoformat()

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def read_revalidation_dates(ledger: Ledger) -> dict[str, RevalidationDate]:
    """Return the date of each accepted factor that is live or decaying, by id."""
    from ..risk import read_policy

    days = read_policy(ledger.workspace).revalidate_after_days
    times = ledger.library.list_times()
    status = {change.factor_id: change.status for change in ledger.library.standings()}  # the last one stands
    rows = [
        row
        for row in ledger.library.rows()
        if row.origin in ASKED_ORIGINS and status.get(row.factor_id, "live") in ASKED_STATUSES
    ]
    known = {run: _read_last(ledger, run) for run in {row.run for row in rows}}
    return {row.factor_id: _find_date(row, times[row.factor_id], known[row.run], days) for row in rows}


def _find_date(row: LibraryRow, added: str, known: Mapping[str, Revalidation], days: int | None) -> RevalidationDate:
    last = known.get(row.factor_id)
    since = datetime.fromisoformat(last.at if last else added).astimezone(UTC).date()
    return RevalidationDate(since.isoformat(), None if days is None else _add_days(since, days), last)


def _add_days(since: date, days: int) -> str:
    return (since + timedelta(days=min(days, (date.max - since).days))).isoformat()


def _read_last(ledger: Ledger, run: str) -> dict[str, Revalidation]:
    """Return the last re-validation of each factor that a run accepted, by id."""
    events = ledger.events.of(run, REVALIDATION_EVENT)  # in the order of their keys
    return {event.key.partition("/")[0]: Revalidation(**event.body) for event in events}


def may_revalidate(entry: Entry) -> bool:
    """Return whether a person is asked to look at a factor again: it was accepted, and is not retired."""
    return entry.origin in ASKED_ORIGINS and entry.status in ASKED_STATUSES


def digest_entry(facts: Mapping[str, Any]) -> str:
    """Return the digest of the facts on a factor, without what follows from re-validations and books."""
    return compute_digest({name: value for name, value in facts.items() if name not in ("revalidation", "used_by")})


def revalidate(ledger: Ledger, entry: Entry, facts: Mapping[str, Any], signed: tuple[str, str], now: datetime) -> None:
    """Record that a person has looked at an accepted factor again, and that it stays.

    Parameters
    ----------
    facts
        What they were shown (`describe_fully`).
    signed
        The reason and the person.

    Raises
    ------
    DeskError
        The factor is not asked for, or the reason is missing or too long.
    """
    reason, by = " ".join(signed[0].split()), signed[1].strip()
    if not may_revalidate(entry):
        raise DeskError(
            "Only a factor that was accepted and is not retired is looked at again.",
            field="ID",
            got=f"{entry.factor_id}: {entry.proof}, {entry.status}",
            allowed="an accepted factor or combination, live or decaying",
            code="revalidation",
        )
    if not reason or len(reason) > MAX_REVALIDATION_CHARS or not by:
        raise DeskError(
            "A factor stays because a person says why.",
            field="reason" if by else "by",
            got=reason[:80],
            allowed=f"1 to {MAX_REVALIDATION_CHARS:,} characters",
            hint="Say what you looked at: the days since, the crowd, the capacity, what has changed.",
            code="revalidation",
        )
    kept = Revalidation(by, reason, now.astimezone(UTC).isoformat(), entry.status, digest_entry(facts))
    with ledger.library.lock():
        keys = [event.key for event in ledger.events.of(entry.run, REVALIDATION_EVENT)]
        number = sum(key.startswith(f"{entry.factor_id}/") for key in keys) + 1
        ledger.events.record(entry.run, REVALIDATION_EVENT, f"{entry.factor_id}/{number:04d}", asdict(kept))
