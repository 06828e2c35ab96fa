"""CPU of the order gate: `check` on many orders of a day with quotes, fills and cancels between them.

python -m bench.order_gate [--orders 40000]

Times are CPU of this thread for one call, so that other work on the machine counts little; it still shares caches and
cores. Every rule has a limit. Nothing is logged; making the record of a ruling is timed after it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from alphaloom.execution import ChildOrder, ExecutionReport, GateState, OrderGate, OrderLimits
from alphaloom.risk import Policy

OPEN_US = int(datetime(2026, 1, 5, 14, 30, tzinfo=UTC).timestamp()) * 10**6
NAMES = 400
PRICE_E4 = 1_000_000
STEP_US = 200_000
NS_PER_US = 1_000


T = TypeVar("T")


def clocked(work: Callable[[], T], times: list[int]) -> T:
    """Return the result of a call, and note its CPU in nanoseconds."""
    began = time.thread_time_ns()
    result = work()
    times.append(time.thread_time_ns() - began)
    return result


def show(name: str, times: list[int], empty: int) -> None:
    """Print the percentiles of one kind of call, without what the clock itself costs."""
    ordered = sorted(max(one - empty, 0) / NS_PER_US for one in times)
    p50, p99, p999 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99, 0.999))
    print(f"{name:20s} p50 {p50:6.1f} us   p99 {p99:6.1f} us   p99.9 {p999:7.1f} us   ({len(times):,} calls)")


def main(given: Sequence[str]) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--orders", type=int, default=40_000, help="orders of the day")
    asked = options.parse_args(given)
    names = [f"N{place}" for place in range(NAMES)]
    state = GateState(10**15, dict.fromkeys(names, 1_000), dict.fromkeys(names, 10**7))
    gate = OrderGate(OrderLimits(order_value_cap=10**6), Policy(), state)
    found: dict[str, list[int]] = {name: [] for name in ("check", "quote", "apply", "check_cancel", "ruling.record")}
    rulings = []
    for place in range(asked.orders):
        now, name = OPEN_US + STEP_US * place, names[place % NAMES]
        clocked(partial(gate.quote, name, PRICE_E4 + place % 7, now), found["quote"])
        side = "buy" if place // NAMES % 2 else "sell"
        order = ChildOrder(f"p-{place}", "p", name, side, 100 + place % 50, "limit", PRICE_E4, now)  # type: ignore[arg-type]
        rulings.append(clocked(partial(gate.check, order, now), found["check"]))
        if place % 10:
            report = ExecutionReport(order.id, "filled", f"e-{place}", now, order.shares, PRICE_E4)
        else:
            clocked(partial(gate.check_cancel, order.id, now), found["check_cancel"])
            report = ExecutionReport(order.id, "cancelled", f"e-{place}", now)
        clocked(partial(gate.apply, report), found["apply"])
    for ruling in rulings:
        clocked(ruling.record, found["ruling.record"])
    passed = sum(ruling.passed for ruling in rulings)
    empty: list[int] = []
    for _ in range(1_000):
        clocked(int, empty)
    print(f"{NAMES} names, {asked.orders:,} orders, {passed:,} passed; load {os.getloadavg()[0]:.1f}")
    for kind, times in found.items():
        show(kind, times, sorted(empty)[len(empty) // 2])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
