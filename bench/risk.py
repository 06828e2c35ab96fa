"""CPU of the risk gate: `decide` on 1, 40 and 400 signals with 400 names held, `apply`, and memory over many decisions.

python -m bench.risk [--decisions 1000000]

Seconds are CPU, the median of nine. NautilusTrader's risk engine is the rival where it installs: it needs Python 3.12.
It checks an order as it is sent; the gate here decides on a whole batch, reads the evidence and logs every rule.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial

from alphaloom.risk import (
    AssetFacts,
    BookEvent,
    BookState,
    DayRolled,
    Filled,
    Policy,
    Priced,
    Signal,
    Standing,
    apply,
    decide,
)

NOW = date(2020, 3, 2)
HELD = 400
EXPOSURE_E8 = 200_000
RUNS = 9
KNOWN = {
    f"f{place}": Standing(f"f{place}", "accepted", "d" * 64, 1, 2_000, "rank", status="live") for place in range(10)
}
EVIDENCE = ", ".join(KNOWN)
POLICY = Policy(sector_cap_bp=5_000, style_cap_bp=5_000)
"""The shipped limits and two more, so that every rule is computed."""


def make_state() -> BookState:
    """Return a book of 400 names, long and short, in ten sectors with four styles."""
    styles = {"beta": 50, "size": -20, "volatility": 100, "momentum": -70}
    facts = {f"N{place}": AssetFacts(NOW, f"sector {place % 10}", 10, 10**10, 0, styles) for place in range(HELD)}
    held = {name: EXPOSURE_E8 * (-1) ** place for place, name in enumerate(facts)}
    return BookState(held, facts, 10**10, 10**10, recent_e8=(10**7,) * 19)


def make_signals(count: int) -> list[Signal]:
    """Return signals that each grow a position by a tenth."""
    signals = []
    for place in range(count):
        target = EXPOSURE_E8 * (-1) ** place * 11 // 10
        signals.append(Signal(f"N{place}", target, target, target, 5, "bench", EVIDENCE, NOW))
    return signals


def measure(work: Callable[[], object], times: int) -> float:
    """Return the median CPU seconds of one call."""
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        for _ in range(times):
            work()
        found.append((time.process_time() - started) / times)
    return statistics.median(found)


def main(given: Sequence[str]) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--decisions", type=int, default=1_000_000, help="decisions over which memory is watched")
    asked = options.parse_args(given)
    state = make_state()
    decide(make_signals(1), state, POLICY, NOW, KNOWN)  # what is computed once for a state
    print(f"{HELD} names held; CPU a call, median of {RUNS}")
    for count in (1, 40, HELD):
        batch = make_signals(count)
        approved = len(decide(batch, state, POLICY, NOW, KNOWN).approved)
        seconds = measure(partial(decide, batch, state, POLICY, NOW, KNOWN), max(HELD // count, 5))
        print(f"decide, {count:3d} signals: {seconds * 1e6:8,.0f} us   ({approved} approved)")
    events: list[BookEvent] = [Filled("N1", 10), Priced("N1", NOW, 1_000), DayRolled(NOW)]
    for event in events:
        print(f"apply, {type(event).__name__:9s}: {measure(partial(apply, state, event), 50) * 1e6:8,.0f} us")
    if importlib.util.find_spec("nautilus_trader") is None:
        version = ".".join(map(str, sys.version_info[:2]))
        print(f"NautilusTrader: not measured, it does not install on Python {version}")
    watch_memory(state, asked.decisions)
    return 0


def watch_memory(state: BookState, decisions: int) -> None:
    """Print the largest resident memory after a tenth of the decisions and after all."""
    batch = make_signals(1)
    for place in range(decisions):
        decide(batch, state, POLICY, NOW, KNOWN)
        if place == decisions // 10:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory over {decisions:,} decisions: {early / 1024:.1f} MiB after a tenth, {late / 1024:.1f} MiB after all")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
