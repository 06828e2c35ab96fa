"""What the recorded calls took, by run, by day and by tenant: read once, then only what was added since."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from .database.protocol import Transaction
from .digest import canonical_json

PICO = 10**12
"""US dollars are counted in whole trillionths: a sum of them depends on no order, and a cap is met exactly or not."""

Scope: TypeAlias = tuple[str, ...]
"""("run", id), ("day", day), ("tenant", name) or ("tenant", name, day)."""


@dataclass(frozen=True)
class Taken:
    """Calls, tokens and trillionths of a US dollar."""

    calls: int = 0
    tokens: int = 0
    picos: int = 0

    def __add__(self, other: Taken) -> Taken:
        """Return the sum."""
        return Taken(self.calls + other.calls, self.tokens + other.tokens, self.picos + other.picos)


def picos(usd: float) -> int:
    """Return US dollars as whole trillionths."""
    return round(usd * PICO)


def parse_time(at: str) -> datetime:
    """Read a time of the clock; one that names no zone is UTC."""
    time = datetime.fromisoformat(at)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def utc_day(at: str) -> str:
    """Return the UTC day of a time of the clock."""
    return parse_time(at).date().isoformat()


class Tally:
    """Sums of the table of calls; used inside a transaction, where rows arrive in the order of their numbers."""

    def __init__(self) -> None:
        self._last = -1
        self._known: dict[Scope, Taken] = {}

    def of(self, session: Transaction, scope: Scope) -> Taken:
        """Return what the calls of a scope took, those included that other processes have recorded."""
        self._catch_up(session)
        if scope not in self._known:
            condition, values = scope_condition(scope)
            query = f"SELECT at, run, body FROM calls WHERE seq <= ? AND {condition}"
            rows = session.execute(query, (self._last, *values)).fetchall()
            counted = (taken for row in rows for each, taken in _split_by_scope(*row) if each == scope)
            self._known[scope] = sum(counted, Taken())
        return self._known[scope]

    def _catch_up(self, session: Transaction) -> None:
        """Count the calls that were recorded since the last time."""
        if self._last < 0:
            (self._last,) = session.execute("SELECT coalesce(max(seq), 0) FROM calls").fetchone()
            return
        query = "SELECT seq, at, run, body FROM calls WHERE seq > ? ORDER BY seq"
        for seq, *row in session.execute(query, (self._last,)).fetchall():
            for scope, taken in _split_by_scope(*row):
                if scope in self._known:
                    self._known[scope] += taken
            self._last = seq


def scope_condition(scope: Scope) -> tuple[str, tuple[str, ...]]:
    """Return a condition that holds for every call of a scope, and for few others, with its values."""
    if scope[0] == "run":
        return "run = ?", (scope[1],)
    days = _day_span(scope[-1]) if scope[0] == "day" or len(scope) == 3 else ()
    named = (_tenant_pattern(scope[1]),) if scope[0] == "tenant" else ()
    conditions = ["at >= ? AND at < ?"] * bool(days) + ["body LIKE ? ESCAPE '!'"] * bool(named)
    return " AND ".join(conditions), (*days, *named)


def _day_span(day: str) -> tuple[str, str]:
    """Return the ends of a span of text that holds every way to write a moment of a UTC day, whatever its zone."""
    middle = date.fromisoformat(day)
    return (middle - timedelta(days=1)).isoformat(), (middle + timedelta(days=2)).isoformat()


def _tenant_pattern(tenant: str) -> str:
    """Return a pattern of the bodies that name a tenant."""
    spelled = f'"tenant":{canonical_json(tenant)}'
    for special in "!%_":
        spelled = spelled.replace(special, f"!{special}")
    return f"%{spelled}%"


def _split_by_scope(at: str, run: str, body: str) -> Iterator[tuple[Scope, Taken]]:
    """Yield the scopes in which a call counts; a reply that another run had paid for counts in its run only."""
    call: dict[str, Any] = json.loads(body)
    taken = Taken(1, call["tokens_in"] + call["tokens_out"], picos(call["cost_usd"]))
    yield ("run", run), taken
    if call.get("attempts", 1):
        day, tenant = utc_day(at), call.get("tenant", "")
        for scope in (("day", day), ("tenant", tenant), ("tenant", tenant, day)):
            yield scope, taken
