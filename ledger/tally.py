"""Sums of calls, tokens and cost of the recorded model calls, by run, day and tenant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from .database.protocol import Transaction
from .digest import canonical_json

PICO = 10**12
"""US dollars are counted in whole trillionths, so that a sum does not depend on its order and caps are exact."""

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
    """Parse an ISO time and return it in UTC; a time without a zone is UTC."""
    time = datetime.fromisoformat(at)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def utc_day(at: str) -> str:
    """Return the UTC day of an ISO time."""
    return parse_time(at).date().isoformat()


class Tally:
    """Sums over the table of calls: each scope is read once, then only rows that were added since.

    It is used inside a transaction, where rows arrive in the order of their numbers.
    """

    def __init__(self) -> None:
        self._last = -1
        self._known: dict[Scope, Taken] = {}

    def of(self, session: Transaction, scope: Scope) -> Taken:
        """Return the sum over the calls of a scope, those of other processes included."""
        self._catch_up(session)
        if scope not in self._known:
            condition, values = scope_condition(scope)
            query = f"SELECT at, run, body FROM calls WHERE seq <= ? AND {condition}"
            rows = session.execute(query, (self._last, *values)).fetchall()
            usages = (usage for row in rows for own, usage in _split_by_scope(*row) if own == scope)
            self._known[scope] = sum(usages, Taken())
        return self._known[scope]

    def _catch_up(self, session: Transaction) -> None:
        """Add the calls that were recorded since the last read."""
        if self._last < 0:
            (self._last,) = session.execute("SELECT coalesce(max(seq), 0) FROM calls").fetchone()
            return
        query = "SELECT seq, at, run, body FROM calls WHERE seq > ? ORDER BY seq"
        for seq, *row in session.execute(query, (self._last,)).fetchall():
            for scope, usage in _split_by_scope(*row):
                if scope in self._known:
                    self._known[scope] += usage
            self._last = seq


def scope_condition(scope: Scope) -> tuple[str, tuple[str, ...]]:
    """Return an SQL condition that holds for every call of a scope, and for few others, with its values."""
    if scope[0] == "run":
        return "run = ?", (scope[1],)
    days = _bound_day(scope[-1]) if scope[0] == "day" or len(scope) == 3 else ()
    patterns = (_build_tenant_pattern(scope[1]),) if scope[0] == "tenant" else ()
    conditions = ["at >= ? AND at < ?"] * bool(days) + ["body LIKE ? ESCAPE '!'"] * bool(patterns)
    return " AND ".join(conditions), (*days, *patterns)


def _bound_day(day: str) -> tuple[str, str]:
    """Return the bounds of the ISO texts that can name a moment of a UTC day, whatever their zone."""
    middle = date.fromisoformat(day)
    return (middle - timedelta(days=1)).isoformat(), (middle + timedelta(days=2)).isoformat()


def _build_tenant_pattern(tenant: str) -> str:
    """Return the LIKE pattern of call bodies with a tenant; `!` escapes."""
    spelled = f'"tenant":{canonical_json(tenant)}'
    for special in "!%_":
        spelled = spelled.replace(special, f"!{special}")
    return f"%{spelled}%"


def _split_by_scope(at: str, run: str, body: str) -> Iterator[tuple[Scope, Taken]]:
    """Yield the scopes in which a call counts; a reply paid for by another run counts in its own run only."""
    call: dict[str, Any] = json.loads(body)
    usage = Taken(1, call["tokens_in"] + call["tokens_out"], picos(call["cost_usd"]))
    yield ("run", run), usage
    if call.get("attempts", 1):
        day, tenant = utc_day(at), call.get("tenant", "")
        for scope in (("day", day), ("tenant", tenant), ("tenant", tenant, day)):
            yield scope, usage
