"""Each breaker removed and each mistake made on purpose is noticed by the tests of breakers and of their watch."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphaloom.execution import BREAKERS

from .mutants import check_mutant

PREPARE = """
import sys
import pytest
from alphaloom.execution import breaker_watch, breakers, halt

W, B, Watch, compare = breaker_watch, breakers.Breakers, breaker_watch.BreakerWatch, breakers.Breakers._compare
Trip, act, list_tripped = breakers.BreakerTrip, breaker_watch.act_on_trips, breaker_watch.list_tripped


def bend(change):
    B._compare = lambda self, name, actual, limit, at, about=(): compare(self, *change(name, actual, limit, at), about)


"""
MISTAKES = {
    "a limit is one stricter": "bend(lambda name, actual, limit, at: (name, actual, limit - 1, at))",
    "a limit is one laxer": "bend(lambda name, actual, limit, at: (name, actual, limit + 1, at))",
    "an unknown value passes": "bend(lambda name, actual, limit, at: (name, actual or 0, limit, at))",
    "the time of a trip is lost": "bend(lambda name, actual, limit, at: (name, actual, limit, 0))",
    "a trip is told again": (
        "def again(self, name, *rest, **more):\n    self._trips.pop(name, None)\n"
        "    return compare(self, name, *rest, **more)\nB._compare = again"
    ),
    "what tripped is not named": "B._compare = lambda self, *rest, **more: compare(self, *rest[:4])",
    "nothing halts": "B.mode = property(lambda self: 'reducing' if self._trips else 'active')",
    "everything halts": "B.mode = property(lambda self: 'halted' if self._trips else 'active')",
    "a fall is rounded down": "breakers._round_up = lambda part, whole: part // whole",
    "trips are forgotten at a restart": (
        "begin = B.__init__\nB.__init__ = lambda self, limits, tripped=(): begin(self, limits)"
    ),
    "loss and drawdown change places": (
        "see = B.see_equity\nB.see_equity = lambda self, now, high, began, at: see(self, now, began, high, at)"
    ),
    "few orders make a ratio": (
        "see = B.see_orders\nB.see_orders = lambda self, sent, rejected, at: "
        "see(self, max(sent, self.limits.reject_ratio_from), rejected, at)"
    ),
    "one process outvotes the others": (
        "B.see_decisions = lambda self, found, at: self._compare('disagreement', "
        "sum(one != max(found.values(), default='') for one in found.values()), self.limits.disagreement, at)"
    ),
    "a clock may go slow": (
        "def slow(self, steady, at):\n    self._clock = self._clock or (steady, at)\n"
        "    drift = (at - self._clock[1]) - (steady - self._clock[0])\n"
        "    return self._compare('clock', drift, self.limits.clock_ms * 1000, at)\nB.see_clock = slow"
    ),
    "a clock is compared from the first call on, also once cleared": (
        "clear = B.clear\ndef keep(self, *rest, **more):\n    kept = self._clock\n    try:\n"
        "        return clear(self, *rest, **more)\n    finally:\n        self._clock = kept\nB.clear = keep"
    ),
    "one person clears what halts": (
        "clear = B.clear\nB.clear = lambda self, name, by, reason, at, second='': "
        "clear(self, name, by, reason, at, second if second.strip().casefold() not in ('', by.casefold()) else 'Zoe')"
    ),
    "nobody need be named": (
        "clear = B.clear\nB.clear = lambda self, name, by, reason, at, second='': "
        "clear(self, name, by or 'x', reason, at, second)"
    ),
    "no reason need be given": (
        "clear = B.clear\nB.clear = lambda self, name, by, reason, at, second='': "
        "clear(self, name, by, reason.strip() or 'x', at, second)"
    ),
    "what is cleared stays tripped": (
        "clear = B.clear\ndef stay(self, name, *rest, **more):\n    kept = dict(self._trips)\n"
        "    row = clear(self, name, *rest, **more)\n    self._trips = kept\n    return row\nB.clear = stay"
    ),
    "a trip is recorded and stops nothing": "W.act_on_trips = lambda trips, switch, keep, gate=None: keep(trips)",
    "a trip stops and is not recorded": (
        "W.act_on_trips = lambda trips, switch, keep, gate=None: act(trips, switch, lambda trips: None, gate)"
    ),
    "a record that fails stops the halt": (
        "def late(trips, switch, keep, gate=None):\n    if trips:\n        keep(trips)\n"
        "    act(trips, switch, lambda trips: None, gate)\nW.act_on_trips = late"
    ),
    "what only holds to reductions halts": (
        "from dataclasses import replace\nW.act_on_trips = lambda trips, switch, keep, gate=None: "
        "act([replace(one, mode='halted') for one in trips], switch, keep, gate)"
    ),
    "the gate goes on": ("W.act_on_trips = lambda trips, switch, keep, gate=None: act(trips, switch, keep)"),
    "a failed record is recorded": (
        "Watch.see_failed_record = lambda self, now: self.act(self._breakers.see_log(1, now))"
    ),
    "a trip that stood is forgotten by the gate": (
        "begin = Watch.__init__\ndef forget(self, found, gate, *rest, **more):\n"
        "    set_mode, gate.set_mode = gate.set_mode, lambda mode: None\n"
        "    begin(self, found, gate, *rest, **more)\n    gate.set_mode = set_mode\nWatch.__init__ = forget"
    ),
    "a halted book is let go to reductions": (
        "begin = Watch.__init__\nWatch.__init__ = lambda self, found, gate, switch, keep, mode, *rest: "
        "begin(self, found, gate, switch, keep, 'active', *rest)"
    ),
    "orders that the gate refused count as sent": (
        "Watch.see_session = lambda self, session, at: self.act(self._breakers.see_orders(len(session.orders), "
        "sum(r.kind == 'rejected' for s in session.orders.values() for r in s.reports), at))"
    ),
    "fills count as rejects": (
        "Watch.see_session = lambda self, session, at: self.act(self._breakers.see_orders("
        "sum(s.passed for s in session.orders.values()), "
        "sum(len(s.reports) for s in session.orders.values()), at))"
    ),
    "the clock is not looked at": "Watch.see_present = lambda self, now: self.see_guard(now)",
    "the guard is not looked at": "Watch.see_guard = lambda self, now: None",
    "a guard that nobody started is missed": (
        "Watch.see_guard = lambda self, now: self.act(self._breakers.see_heartbeat(self._find_beat() or 0, now))"
    ),
    "what was cleared stands on record": (
        "breaker_watch.clear_trips = lambda ledger, run, people, reason, at: list_tripped(ledger, run)"
    ),
    "a second trip of a breaker is cleared with the first": ("breaker_watch._make_key = lambda trip: trip.breaker"),
    "the order of trips is that of the record": (
        "breaker_watch.list_tripped = lambda ledger, run: list_tripped(ledger, run)[::-1]"
    ),
    "one person clears on record": (
        "clear = breaker_watch.clear_trips\nbreaker_watch.clear_trips = lambda ledger, run, people, reason, at: "
        "clear(ledger, run, (people[0], ''), reason, at)"
    ),
}
WITHOUT = """
B._compare = lambda self, name, *rest, **more: () if name == {breaker!r} else compare(self, name, *rest, **more)
"""


def run_mutated(mutation: str) -> None:
    names = ("breakers", "breaker_watch")
    check_mutant(PREPARE + mutation, [Path(__file__).with_name(f"test_{name}.py") for name in names])


@pytest.mark.slow
@pytest.mark.parametrize("breaker", BREAKERS)
def test_a_breaker_that_never_trips_fails_the_tests(breaker: str) -> None:
    """All of this file takes about two minutes."""
    run_mutated(WITHOUT.format(breaker=breaker))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_breaker_fails_the_tests(mistake: str) -> None:
    run_mutated(MISTAKES[mistake])
