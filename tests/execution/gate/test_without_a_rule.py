"""Each rule removed and each mistake made on purpose is noticed by the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphaloom.execution import ORDER_RULES

from ..mutants import check_mutant

PREPARE = """
import sys
import pytest
from alphaloom.execution.gate import hours, order_gate, patterns, rates, ruling, state

ORDER_RULES, whole = ruling.ORDER_RULES, order_gate.passes
Gate, State, Counter = order_gate.OrderGate, state.GateState, rates.RateCounter
"""
WITHOUT = """
place = ORDER_RULES.index({rule!r})
order_gate.passes = lambda actuals, limits, binds: whole(actuals, (*limits[:place], None, *limits[place + 1 :]), binds)
"""
MISTAKES = {
    "what ended keeps its shares": "State._end = lambda self, live: None",
    "a report counts each time": (
        "apply = State.apply\ndef twice(self, report):\n    self._reports.clear()\n    apply(self, report)\n"
        "State.apply = twice"
    ),
    "what passed counts when it is filled": "Gate._count = lambda self, asked, measured=None: None",
    "every rule binds reductions": "order_gate.BINDS_REDUCTIONS = order_gate.BINDS_ALL",
    "no rule binds reductions": "order_gate.BINDS_REDUCTIONS = tuple(False for _ in ORDER_RULES)",
    "an unknown value passes": (
        "order_gate.passes = lambda actuals, limits, binds: "
        "whole(tuple(0 if one is None else one for one in actuals), limits, binds)"
    ),
    "a cancel is no message": "Gate.check_cancel = lambda self, order, now: self.state.note_cancel(order, now)",
    "days never end": "State.begin_day = lambda self, ends_us, cap: setattr(self, 'day_ends_us', ends_us)",
    "nothing is rounded up": "order_gate._round_up = lambda part, whole: part // whole if whole else None",
    "a busy second is free for good": "Counter._set_limits = lambda self: (setattr(self, 'limits', (None,) * 3), "
    "setattr(self, 'bounds', (1 << 64,) * 3), setattr(self, 'warns_at', (1 << 64,) * 3))",
    "sales are worth their limit": (
        "ask = Gate._ask\ndef cheap(self, order):\n    asked = ask(self, order)\n"
        "    asked.unit_e4 = order.limit_e4 or asked.unit_e4\n    return asked\nGate._ask = cheap"
    ),
}
TESTS = ("order_rules", "patterns", "profiles", "order_laws")
"""The quickest first."""


def run_mutated(mutation: str) -> None:
    check_mutant(PREPARE + mutation, [Path(__file__).with_name(f"test_{name}.py") for name in TESTS])


@pytest.mark.slow
@pytest.mark.parametrize("rule", ORDER_RULES)
def test_the_order_gate_without_a_rule_fails_its_tests(rule: str) -> None:
    """A rule without a limit holds whatever is asked: about three minutes for all rules."""
    run_mutated(WITHOUT.format(rule=rule))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_order_gate_fails_its_tests(mistake: str) -> None:
    run_mutated(MISTAKES[mistake])
