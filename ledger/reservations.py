"""Calls under way: what each may still take is held in the record before it is sent, and let go of when it has ended.

Whoever asks for room does it in one transaction over all processes: what the recorded calls took, what is held, and the
worst of the new call must fit under every cap. A hold ends with its call, or with the process that made it:

- the file's locks are of this machine, so whoever is killed is seen to be gone at once;
- a database elsewhere may lose sight of a process that lives, so there a hold lasts until the longest time that its call
  can take has passed. Its own run does not wait: one process at a time works on a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import uuid4

from .database.locks import hold_lock, holder
from .database.protocol import Database, Transaction
from .database.register import Register
from .records import Event, ModelCall
from .tally import PICO, Scope, Taken, Tally, parse_time, picos, scope_condition, utc_day

Registers: TypeAlias = tuple[Register[ModelCall], Register[Event]]
CapQuantity: TypeAlias = Literal["calls", "tokens", "usd"]
CapScope: TypeAlias = Literal["run", "day", "tenant", "tenant_day"]


@dataclass(frozen=True)
class Wish:
    """A call before it is sent: its key, who pays, and the most tokens and US dollars that it may take."""

    run: str
    key: str
    tenant: str
    tokens: int
    usd: float


@dataclass(frozen=True)
class Hold:
    """What is held for one call; `until` says how long at most, where nobody can see whether `owner` lives."""

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
        """Tell whether it counts in a scope; in that of a day always, since it may end on any."""
        return scope[0] == "day" or scope[1] == (self.run if scope[0] == "run" else self.tenant)


@dataclass(frozen=True)
class Cap:
    """A limit on a run, on a UTC day of the whole record, on a tenant, or on a tenant's day."""

    of: CapScope
    what: CapQuantity
    limit: float


@dataclass(frozen=True)
class CapReached:
    """The cap under which a call does not fit: what is spent, what `holds` calls under way hold, and what it needs."""

    cap: Cap
    day: str
    spent: float
    held: float
    need: float
    holds: int


class Holds:
    """What is held in a ledger; one may be used from several threads, and by several processes."""

    def __init__(
        self, database: Database, registers: Registers, folder: Path, now: Callable[[], str], *, sees: bool
    ) -> None:
        self._database, self._now, self._sees = database, now, sees
        self._calls, self._events = registers
        self._presence = Presence(database, folder)
        self._tally, self._numbers = Tally(), count(1)
        self._own: set[str] = set()
        self._floor = 0

    def hold(self, wish: Wish, caps: Sequence[Cap], seconds: float) -> Hold | CapReached | Literal["busy", "answered"]:
        """Hold the worst of a call that takes at most so many seconds; or say why it is not to be sent now.

        "busy": it is under way already, here or elsewhere; "answered": the record has its reply.
        """
        until = (parse_time(self._now()) + timedelta(seconds=seconds)).isoformat()
        owner = self._presence.name
        wanted = Hold(
            0, f"{owner} {next(self._numbers)}", wish.run, wish.key, wish.tenant, owner, until, wish.tokens,
            picos(wish.usd),
        )  # fmt: skip
        self._own.add(wanted.name)
        found = self._database.write(lambda session: self._hold(session, wanted, caps))
        if not isinstance(found, Hold):
            self._own.discard(wanted.name)
        return found

    def change(self, hold: Hold, tokens: int, usd: float, caps: Sequence[Cap]) -> Hold | CapReached:
        """Hold other amounts for a call under way, if they fit; else it holds what it held."""
        name = f"{self._presence.name} {next(self._numbers)}"
        wanted = replace(hold, name=name, owner=self._presence.name, tokens=tokens, picos=picos(usd))
        self._own.add(name)

        def work(session: Transaction) -> Hold | CapReached:
            held = [each for each in self._open(session) if each.id != hold.id]
            for each in held:
                if each.name == name:  # written before the answer to that was lost
                    return each
            if reached := self._find_reached_cap(session, wanted, caps, held):
                return reached
            self._let_go(session, hold, "changed")
            return self._put(session, wanted)

        found = self._database.write(work)
        self._own.discard(hold.name if isinstance(found, Hold) else name)
        return found

    def enter(self, call: ModelCall, note: Event, caps: Sequence[Cap]) -> bool | CapReached:
        """Record a reply that another run had paid for, with a note, if its price fits; return whether it is new."""
        key, taken = call.key, picos(call.cost_usd)
        wanted = Hold(0, "", call.run, key, call.tenant, "", "", call.tokens_in + call.tokens_out, taken)

        def work(session: Transaction) -> bool | CapReached:
            if session.execute("SELECT 1 FROM calls WHERE run = ? AND key = ?", (call.run, key)).fetchone():
                return False
            if reached := self._find_reached_cap(session, wanted, caps, self._open(session)):
                return reached
            self._events.put(session, note)
            return self._calls.put(session, call)

        return self._database.write(work)

    def settle(self, hold: Hold, call: ModelCall, note: Event) -> None:
        """Let go of what a call held, and record what came of it in the same moment, with a note.

        Raises
        ------
        LedgerConflict
            If another reply lies under its key.
        """

        def work(session: Transaction) -> None:
            self._events.put(session, note)
            self._calls.put(session, call, strict=True)
            self._let_go(session, hold, "answered")

        self._database.write(work)
        self._own.discard(hold.name)

    def release(self, hold: Hold) -> None:
        """Let go of what a call held that was not answered; of one that is settled nothing is left to let go of."""
        if hold.name in self._own:
            self._own.discard(hold.name)
            self._database.write(lambda session: self._let_go(session, hold, "failed"))

    def lapse(self, run: str = "") -> int:
        """Let go of what nobody holds any more, for whoever asks on behalf of a run; return how many holds that were.

        What such a call could cost stays counted under the caps: it may have been sent, and nobody heard what it took.
        """
        gone: dict[str, bool] = {}
        dead = [hold for hold in self.open() if self._dead(hold, run, gone)]

        def work(session: Transaction) -> None:
            for hold in dead:
                self._let_go(session, hold, LOST_RELEASE if hold.picos else "lapsed")

        if dead:
            self._database.write(work)
        return len(dead)

    def open(self) -> list[Hold]:
        """Return what is held now, oldest first."""
        return self._database.read(self._open)

    def killed(self, run: str | None = None, day: str = "", tenant: str | None = None) -> Taken:
        """Return the worst of the calls that ended with their processes: counted under the caps, and in no run's spend."""
        found = Taken()
        for whose, name, on, taken in self._database.read(_read_killed):
            if run in (None, whose) and tenant in (None, name) and day in ("", on):
                found += taken
        return found

    def spent(self, run: str) -> Taken:
        """Return what the recorded calls of a run took."""
        return self._database.read(lambda session: self._tally.of(session, ("run", run)))

    def calls(self, day: str = "", tenant: str | None = None) -> list[ModelCall]:
        """Return the calls of a UTC day, of a tenant, or of both, over all runs, in the order of arrival."""
        scope = (*(("tenant", tenant) if tenant is not None else ("day",)), *([day] if day else []))
        condition, values = scope_condition(scope)
        rows = self._database.rows(f"SELECT at, run, key, body FROM calls WHERE {condition} ORDER BY seq", values)
        found = [
            ModelCall(run=run, key=key, **json.loads(body))
            for at, run, key, body in rows
            if not day or utc_day(at) == day
        ]
        return [call for call in found if tenant is None or call.tenant == tenant]

    def close(self) -> None:
        """Show no more that this process lives; what it still holds lapses."""
        self._presence.close()

    def _hold(
        self, session: Transaction, wanted: Hold, caps: Sequence[Cap]
    ) -> Hold | CapReached | Literal["busy", "answered"]:
        """Write a hold down if it fits."""
        held = self._open(session)
        for each in held:
            if each.name == wanted.name:  # written before the answer to that was lost
                return each
            if each.key == wanted.key:
                return "busy"
        if session.execute("SELECT 1 FROM calls WHERE key = ?", (wanted.key,)).fetchone():
            return "answered"
        if reached := self._find_reached_cap(session, wanted, caps, held):
            return reached
        return self._put(session, wanted)

    def _put(self, session: Transaction, wanted: Hold) -> Hold:
        """Write a hold down."""
        session.execute(_ADD_HOLD, (*_row(wanted), self._now()))
        (number,) = session.execute("SELECT id FROM holds WHERE name = ?", (wanted.name,)).fetchone()
        return replace(wanted, id=number)

    def _find_reached_cap(
        self, session: Transaction, wanted: Hold, caps: Sequence[Cap], held: Sequence[Hold]
    ) -> CapReached | None:
        """Return the first cap under which a call does not fit."""
        day = utc_day(self._now())
        for cap in caps:
            scope = _scope(cap, wanted, day)
            inside = [hold for hold in held if hold.within(scope)]
            spent = _taken_amount(self._tally.of(session, scope) + _sum_lost(session, scope), cap.what)
            under_way, need = sum(_needed_amount(hold, cap.what) for hold in inside), _needed_amount(wanted, cap.what)
            unit = PICO if cap.what == "usd" else 1
            if spent + under_way + need > round(cap.limit * unit):
                return CapReached(cap, day, spent / unit, under_way / unit, need / unit, len(inside))
        return None

    def _open(self, session: Transaction) -> list[Hold]:
        """Read what is held; what lies before the oldest of it is not looked at again."""
        found = [Hold(*row) for row in session.execute(_OPEN, (self._floor,)).fetchall()]
        if found:
            self._floor = found[0].id
        else:
            (self._floor,) = session.execute("SELECT coalesce(max(id), 0) FROM holds").fetchone()
        return found

    def _let_go(self, session: Transaction, hold: Hold, why: str) -> None:
        session.execute("INSERT INTO releases VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (hold.id, why, self._now()))

    def _dead(self, hold: Hold, run: str, gone: dict[str, bool]) -> bool:
        """Tell whether nobody waits for the reply to a call any more."""
        if hold.name in self._own:
            return False
        if self._presence.own(hold.owner):  # ours, and letting go of it had failed
            return True
        if hold.owner not in gone:
            gone[hold.owner] = self._presence.absent(hold.owner)
        return gone[hold.owner] and (self._sees or hold.run == run or parse_time(hold.until) <= parse_time(self._now()))


LOST_RELEASE = "lost"
"""How a hold ends whose process was gone before the call that it paid for had ended."""
_COLUMNS = "name, run, key, tenant, owner, until, tokens, picos"
_ADD_HOLD = f"INSERT INTO holds ({_COLUMNS}, at) VALUES ({', '.join('?' * 9)})"
_OPEN = f"SELECT id, {_COLUMNS} FROM holds LEFT JOIN releases ON hold = id WHERE id >= ? AND hold IS NULL ORDER BY id"


def _row(hold: Hold) -> tuple[object, ...]:
    return hold.name, hold.run, hold.key, hold.tenant, hold.owner, hold.until, hold.tokens, hold.picos


def _scope(cap: Cap, hold: Hold, day: str) -> Scope:
    """Return where a cap counts a call."""
    scopes: dict[str, Scope] = {
        "run": ("run", hold.run),
        "day": ("day", day),
        "tenant": ("tenant", hold.tenant),
        "tenant_day": ("tenant", hold.tenant, day),
    }
    return scopes[cap.of]


def _sum_lost(session: Transaction, scope: Scope) -> Taken:
    """Return the worst of the calls in a scope whose processes were killed before anybody heard of them."""
    found = Taken()
    for run, tenant, day, taken in _read_killed(session):
        inside = {"run": run == scope[1], "tenant": tenant == scope[1], "day": day == scope[-1]}[scope[0]]
        if inside and (len(scope) < 3 or day == scope[2]):
            found += taken
    return found


def _read_killed(session: Transaction) -> list[tuple[str, str, str, Taken]]:
    """Return run, tenant, UTC day and worst of every call whose process was killed before anybody heard of it."""
    query = "SELECT run, tenant, holds.at, tokens, picos FROM holds JOIN releases ON hold = id WHERE why = ?"
    rows = session.execute(query, (LOST_RELEASE,)).fetchall()
    return [(run, tenant, utc_day(at), Taken(1, int(tokens), int(amount))) for run, tenant, at, tokens, amount in rows]


def _taken_amount(taken: Taken, what: CapQuantity) -> int:
    return {"calls": taken.calls, "tokens": taken.tokens, "usd": taken.picos}[what]


def _needed_amount(hold: Hold, what: CapQuantity) -> int:
    return {"calls": 1, "tokens": hold.tokens, "usd": hold.picos}[what]


class Presence:
    """A lock under a name that nobody else ever has: a file of the workspace, and what other workspaces see of it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._name = ""
        self._signs = ExitStack()

    @property
    def name(self) -> str:
        """The name of this process's sign, which stands from the first time that it is asked for."""
        if not self._name:
            name = uuid4().hex
            self._signs.enter_context(hold_lock(self._path(name), name))
            self._signs.enter_context(self._database.held(_lock_name(name)))
            self._name = name
        return self._name

    def own(self, name: str) -> bool:
        """Tell whether a sign is ours."""
        return name == self._name

    def absent(self, name: str) -> bool:
        """Tell whether nobody shows a sign of this name, and clear away what a killed process left of it."""
        path = self._path(name)
        if holder(path) is not None or self._database.holder(_lock_name(name)) is not None:
            return False
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Take the sign down; a second time does nothing."""
        if self._name:
            with suppress(OSError):
                self._path(self._name).unlink(missing_ok=True)
        self._signs.close()
        self._name = ""

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _lock_name(name: str) -> str:
    return f"caller {name}"
