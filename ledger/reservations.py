"""Budget reservations: the maximum cost of a model call is reserved before it is sent, and released when it has ended.

A reservation is made in one transaction over all processes: the recorded usage, all open reservations, and the maximum
of the new call must fit under every cap. A reservation ends with its call, or with the process that made it:

- with a ledger file, the locks are of this machine, so a killed process is detected at once;
- a database server may lose sight of a living process, so there a reservation lasts until the longest time that its
  call can take has passed. Its own run does not wait: one process at a time works on a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from .database.locks import hold_lock, holder
from .database.protocol import Database, Transaction
from .database.register import Register
from .digest import canonical_json
from .log.leaves import LoggedDatabase, LoggedTransaction
from .records import Event, ModelCall

Registers: TypeAlias = tuple[Register[ModelCall], Register[Event]]
CapQuantity: TypeAlias = Literal["calls", "tokens", "usd"]
CapScope: TypeAlias = Literal["run", "day", "tenant", "tenant_day"]
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


@dataclass(frozen=True)
class Wish:
    """A call before it is sent: its key, its run and tenant, and the maximum of tokens and US dollars."""

    run: str
    key: str
    tenant: str
    tokens: int
    usd: float


@dataclass(frozen=True)
class Hold:
    """The reservation of one call; it lapses at `until` where no lock can show whether `owner` lives."""

    id: int
    name: str
    run: str
    key: str
    tenant: str
    owner: str
    until: str
    tokens: int
    picos: int

    def within(self, scope: Scope) -> bool:
        """Return whether it counts in a scope; it counts in every day, because it may end on any."""
        return scope[0] == "day" or scope[1] == (self.run if scope[0] == "run" else self.tenant)


@dataclass(frozen=True)
class Cap:
    """A limit on a run, on a UTC day of the whole record, on a tenant, or on a tenant's day."""

    of: CapScope
    what: CapQuantity
    limit: float


@dataclass(frozen=True)
class CapReached:
    """A cap that a call would exceed: the amounts spent, held by `holds` calls in flight, and needed by the call."""

    cap: Cap
    day: str
    spent: float
    held: float
    need: float
    holds: int


class Holds:
    """The reservations in a ledger; usable from several threads and by several processes."""

    def __init__(
        self, database: LoggedDatabase, registers: Registers, folder: Path, now: Callable[[], str], *, sees: bool
    ) -> None:
        self._database, self._now, self._sees = database, now, sees
        self._calls, self._events = registers
        self._presence = Presence(database, folder)
        self._tally, self._numbers = Tally(), count(1)
        self._own: set[str] = set()
        self._floor = 0

    def hold(self, wish: Wish, caps: Sequence[Cap], seconds: float) -> Hold | CapReached | Literal["busy", "answered"]:
        """Reserve the maximum of a call that takes at most `seconds`, or return why it must not be sent now.

        "busy": the call is in flight already, here or elsewhere; "answered": the record has its reply.
        """
        until = (parse_time(self._now()) + timedelta(seconds=seconds)).isoformat()
        owner = self._presence.name
        request = Hold(
            0, f"{owner} {next(self._numbers)}", wish.run, wish.key, wish.tenant, owner, until, wish.tokens,
            picos(wish.usd),
        )  # fmt: skip  # a table
        self._own.add(request.name)
        answer = self._database.write(lambda session: self._hold(session, request, caps))
        if not isinstance(answer, Hold):
            self._own.discard(request.name)
        return answer

    def change(self, hold: Hold, tokens: int, usd: float, caps: Sequence[Cap]) -> Hold | CapReached:
        """Change the amounts reserved for a call in flight, if they fit; otherwise they stay as they are."""
        name = f"{self._presence.name} {next(self._numbers)}"
        request = replace(hold, name=name, owner=self._presence.name, tokens=tokens, picos=picos(usd))
        self._own.add(name)

        def work(session: Transaction) -> Hold | CapReached:
            reserved = [other for other in self._read_open(session) if other.id != hold.id]
            for other in reserved:
                if other.name == name:  # stored by an attempt whose answer was lost
                    return other
            if reached := self._find_reached_cap(session, request, caps, reserved):
                return reached
            self._release(session, hold, "changed")
            return self._store(session, request)

        outcome = self._database.write(work)
        self._own.discard(hold.name if isinstance(outcome, Hold) else name)
        return outcome

    def enter(self, call: ModelCall, note: Event, caps: Sequence[Cap]) -> bool | CapReached:
        """Record a reply that another run paid for, with a note, if its price fits; return whether it is new."""
        tokens = call.tokens_in + call.tokens_out
        request = Hold(0, "", call.run, call.key, call.tenant, "", "", tokens, picos(call.cost_usd))

        def work(session: LoggedTransaction) -> bool | CapReached:
            if session.execute("SELECT 1 FROM calls WHERE run = ? AND key = ?", (call.run, call.key)).fetchone():
                return False
            if reached := self._find_reached_cap(session, request, caps, self._read_open(session)):
                return reached
            self._events.put(session, note)
            return self._calls.put(session, call)

        return self._database.write(work)

    def settle(self, hold: Hold, call: ModelCall, note: Event) -> None:
        """Release the reservation of a call and record its reply, with a note, in one transaction.

        Raises
        ------
        LedgerConflict
            If another reply is recorded under its key.
        """

        def work(session: LoggedTransaction) -> None:
            self._events.put(session, note)
            self._calls.put(session, call, strict=True)
            self._release(session, hold, "answered")

        self._database.write(work)
        self._own.discard(hold.name)

    def release(self, hold: Hold) -> None:
        """Release the reservation of a call without a reply; after `settle` this does nothing."""
        if hold.name in self._own:
            self._own.discard(hold.name)
            self._database.write(lambda session: self._release(session, hold, "failed"))

    def lapse(self, run: str = "") -> int:
        """Release the reservations of dead processes, as seen by `run`; return their number.

        The maximum of such a call stays counted under the caps: it may have been sent, and its usage is not known.
        """
        gone: dict[str, bool] = {}
        dead = [hold for hold in self.open() if self._is_dead(hold, run, gone)]

        def work(session: Transaction) -> None:
            for hold in dead:
                self._release(session, hold, LOST_RELEASE if hold.picos else "lapsed")

        if dead:
            self._database.write(work)
        return len(dead)

    def open(self) -> list[Hold]:
        """Return the open reservations, oldest first."""
        return self._database.read(self._read_open)

    def killed(self, run: str | None = None, day: str = "", tenant: str | None = None) -> Taken:
        """Return the maximum usage of calls whose process died: it counts under the caps, but in no run's spend."""
        total = Taken()
        for whose, name, on, usage in self._database.read(_read_killed):
            if run in (None, whose) and tenant in (None, name) and day in ("", on):
                total += usage
        return total

    def calls(self, day: str = "", tenant: str | None = None) -> list[ModelCall]:
        """Return the calls of a UTC day, of a tenant, or of both, over all runs, in the order of arrival."""
        scope = (*(("tenant", tenant) if tenant is not None else ("day",)), *([day] if day else []))
        condition, values = scope_condition(scope)
        rows = self._database.rows(f"SELECT at, run, key, body FROM calls WHERE {condition} ORDER BY seq", values)
        matches = [
            ModelCall(run=run, key=key, **json.loads(body))
            for at, run, key, body in rows
            if not day or utc_day(at) == day
        ]
        return [call for call in matches if tenant is None or call.tenant == tenant]

    def list_starts(self) -> dict[tuple[str, str], str]:
        """Return when the last reservation of each call was made, by run and key."""
        rows = self._database.rows("SELECT run, key, at FROM holds ORDER BY id")
        return {(run, key): at for run, key, at in rows}

    def close(self) -> None:
        """Give up the liveness lock of this process; its open reservations lapse."""
        self._presence.close()

    def _hold(
        self, session: Transaction, request: Hold, caps: Sequence[Cap]
    ) -> Hold | CapReached | Literal["busy", "answered"]:
        """Store a reservation if it fits."""
        reserved = self._read_open(session)
        for other in reserved:
            if other.name == request.name:  # stored by an attempt whose answer was lost
                return other
            if other.key == request.key:
                return "busy"
        if session.execute("SELECT 1 FROM calls WHERE key = ?", (request.key,)).fetchone():
            return "answered"
        if reached := self._find_reached_cap(session, request, caps, reserved):
            return reached
        return self._store(session, request)

    def _store(self, session: Transaction, request: Hold) -> Hold:
        session.execute(_ADD_HOLD, (*_build_row(request), self._now()))
        (number,) = session.execute("SELECT id FROM holds WHERE name = ?", (request.name,)).fetchone()
        return replace(request, id=number)

    def _find_reached_cap(
        self, session: Transaction, request: Hold, caps: Sequence[Cap], reserved: Sequence[Hold]
    ) -> CapReached | None:
        """Return the first cap that a call would exceed."""
        day = utc_day(self._now())
        for cap in caps:
            scope = _find_scope(cap, request, day)
            inside = [hold for hold in reserved if hold.within(scope)]
            spent = _select_usage(self._tally.of(session, scope) + _sum_lost(session, scope), cap.what)
            under_way, need = sum(_select_need(hold, cap.what) for hold in inside), _select_need(request, cap.what)
            unit = PICO if cap.what == "usd" else 1
            if spent + under_way + need > round(cap.limit * unit):
                return CapReached(cap, day, spent / unit, under_way / unit, need / unit, len(inside))
        return None

    def _read_open(self, session: Transaction) -> list[Hold]:
        """Read the open reservations; rows before the oldest open one are not read again."""
        reserved = [Hold(*row) for row in session.execute(_OPEN, (self._floor,)).fetchall()]
        if reserved:
            self._floor = reserved[0].id
        else:
            (self._floor,) = session.execute("SELECT coalesce(max(id), 0) FROM holds").fetchone()
        return reserved

    def _release(self, session: Transaction, hold: Hold, why: str) -> None:
        session.execute("INSERT INTO releases VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (hold.id, why, self._now()))

    def _is_dead(self, hold: Hold, run: str, gone: dict[str, bool]) -> bool:
        """Return whether no process waits for the reply to a call any more."""
        if hold.name in self._own:
            return False
        if self._presence.is_own(hold.owner):  # ours: an earlier release failed
            return True
        if hold.owner not in gone:
            gone[hold.owner] = self._presence.is_absent(hold.owner)
        return gone[hold.owner] and (self._sees or hold.run == run or parse_time(hold.until) <= parse_time(self._now()))


LOST_RELEASE = "lost"
"""Reason of a release whose process died before its call, which may cost money, had ended."""
_COLUMNS = "name, run, key, tenant, owner, until, tokens, picos"
_ADD_HOLD = f"INSERT INTO holds ({_COLUMNS}, at) VALUES ({', '.join('?' * 9)})"
_OPEN = f"SELECT id, {_COLUMNS} FROM holds LEFT JOIN releases ON hold = id WHERE id >= ? AND hold IS NULL ORDER BY id"


def _build_row(hold: Hold) -> tuple[object, ...]:
    return hold.name, hold.run, hold.key, hold.tenant, hold.owner, hold.until, hold.tokens, hold.picos


def _find_scope(cap: Cap, hold: Hold, day: str) -> Scope:
    """Return the scope in which a cap counts a call."""
    scopes: dict[str, Scope] = {
        "run": ("run", hold.run),
        "day": ("day", day),
        "tenant": ("tenant", hold.tenant),
        "tenant_day": ("tenant", hold.tenant, day),
    }
    return scopes[cap.of]


def _sum_lost(session: Transaction, scope: Scope) -> Taken:
    """Return the maximum usage of the calls in a scope whose process died before their reply."""
    total = Taken()
    for run, tenant, day, usage in _read_killed(session):
        inside = {"run": run == scope[1], "tenant": tenant == scope[1], "day": day == scope[-1]}[scope[0]]
        if inside and (len(scope) < 3 or day == scope[2]):
            total += usage
    return total


def _read_killed(session: Transaction) -> list[tuple[str, str, str, Taken]]:
    """Return run, tenant, UTC day and maximum usage of every call whose process died before its reply."""
    query = "SELECT run, tenant, holds.at, tokens, picos FROM holds JOIN releases ON hold = id WHERE why = ?"
    rows = session.execute(query, (LOST_RELEASE,)).fetchall()
    return [(run, tenant, utc_day(at), Taken(1, int(tokens), int(amount))) for run, tenant, at, tokens, amount in rows]


def _select_usage(usage: Taken, what: CapQuantity) -> int:
    return {"calls": usage.calls, "tokens": usage.tokens, "usd": usage.picos}[what]


def _select_need(hold: Hold, what: CapQuantity) -> int:
    return {"calls": 1, "tokens": hold.tokens, "usd": hold.picos}[what]


class Presence:
    """A liveness lock under a unique name: a file of the workspace, and a lock that other workspaces see."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._name = ""
        self._signs = ExitStack()

    @property
    def name(self) -> str:
        """The name of this process's lock, which is taken when the name is first read."""
        if not self._name:
            name = uuid4().hex
            self._signs.enter_context(hold_lock(self._path(name), name))
            self._signs.enter_context(self._database.held(_name_lock(name)))
            self._name = name
        return self._name

    def is_own(self, name: str) -> bool:
        """Return whether a name is that of our lock."""
        return name == self._name

    def is_absent(self, name: str) -> bool:
        """Return whether no process holds the lock of this name; the file that a killed process left is deleted."""
        path = self._path(name)
        if holder(path) is not None or self._database.holder(_name_lock(name)) is not None:
            return False
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Release the lock; a second time does nothing."""
        if self._name:
            with suppress(OSError):
                self._path(self._name).unlink(missing_ok=True)
        self._signs.close()
        self._name = ""

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _name_lock(name: str) -> str:
    return f"caller {name}"
