"""How well an observer of the public tape predicts the next child: its time, its side and its size.

python -m bench.execution observer [--sessions 200] [--size 5]

The observer sees every trade with its time, size and side, and not whose it is. It knows that somebody sends one child
in each five minutes, and nothing more of the order. From the second hour on, before each interval, it looks for the
second within the interval, and the side, at which most earlier intervals had a trade (within a second of it), and
predicts a trade then, on that side, of the median size found there in the last six intervals. A second observer
predicts the side from the sum of signed volume so far.

A time is hit within 5 seconds, a size within 10 %. The base rates are those of an observer that draws a second, a side
and one of the day's trades at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alphaloom.execution import ParentOrder
from alphaloom.execution.schedule import CostModel, Hiding, ScheduleRules, plan_schedule
from alphaloom.execution.simulation import MarketRules, SimulatedMarket, draw_day, trade_plan
from alphaloom.risk import BP
from bench.execution.trading import CLOSE_US, INTERVALS, MINUTE_US, OPEN_US, show, take_approval
from tests.execution.approvals import DAY

RULES = MarketRules(OPEN_US, CLOSE_US, MINUTE_US, 500_000)
MODEL = CostModel(half_spread_bp=2.0, volatility_bp=RULES.volatility_bp)
FIRST_GUESS = 12
"""Intervals watched before the first guess: an hour."""
SECONDS = 300
RECENT = 6
TIME_HIT_S = 5.0
SIZE_HIT = 0.1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tape:
    """All trades of a session, ours among them: interval, second within it, shares, sign `[P]`; and our children's."""

    interval: Ints
    second: NDArray[np.float64]
    shares: Ints
    signs: Ints
    own: dict[int, tuple[float, int, int]]
    """Our child of each interval: second, shares, sign."""


def record_tape(rules: ScheduleRules, shares: int, seed: int) -> Tape:
    """Trade one parent and return the session's tape; what is hidden is drawn anew for each session."""
    if rules.hiding is not None:
        rules = replace(rules, hiding=replace(rules.hiding, seed=seed))
    day = draw_day(RULES, seed)
    market = SimulatedMarket(RULES, day)
    parent = ParentOrder(take_approval(), shares, RULES.start_e4, DAY)
    trade_plan(market, plan_schedule(parent, RULES.usual_curve(INTERVALS), rules, MODEL))
    ours = np.array(market.own_prints, np.int64)
    at_us = np.concatenate([day.times_us, ours[:, 0]]) - OPEN_US
    interval, within_us = np.divmod(at_us, SECONDS * 1_000_000)
    count = len(ours)
    second = within_us / 1e6
    return Tape(
        interval,
        second,
        np.concatenate([day.print_shares, ours[:, 1]]),
        np.concatenate([day.print_signs, ours[:, 2]]),
        {
            int(place): (float(at), int(size), int(sign))
            for place, at, size, sign in zip(interval[-count:], second[-count:], ours[:, 1], ours[:, 2], strict=True)
        },
    )


def count_repeats(tape: Tape) -> Ints:
    """Return in how many of the intervals before each one a second had a trade of a sign `[intervals, seconds, 2]`."""
    seen = np.zeros((INTERVALS, SECONDS, 2), np.int64)
    seen[tape.interval, tape.second.astype(np.int64), (tape.signs > 0).astype(np.int64)] = 1
    near = np.maximum(seen, np.maximum(np.roll(seen, 1, axis=1), np.roll(seen, -1, axis=1)))
    return np.asarray(np.cumsum(near, axis=0) - near, np.int64)


def watch(tape: Tape, seed: int) -> dict[str, float]:
    """Return the shares of guesses that hit on one session, and the base rates."""
    repeats, rng = count_repeats(tape), np.random.default_rng(seed)
    rows = []
    for interval in range(FIRST_GUESS, INTERVALS):
        if interval not in tape.own:
            continue
        at, size, sign = tape.own[interval]
        second, side = np.unravel_index(int(repeats[interval].argmax()), (SECONDS, 2))
        guess = 1 if side else -1
        before = tape.interval < interval
        found = before & (tape.interval >= interval - RECENT) & (tape.signs == guess)
        found &= np.abs(tape.second - (second + 0.5)) <= 1.5
        usual = float(np.median(tape.shares[found] if found.any() else tape.shares[before]))
        flow = float((tape.signs * tape.shares)[before].sum())
        drawn = float(rng.choice(tape.shares[before]))
        rows.append(
            (
                abs(second + 0.5 - at) <= TIME_HIT_S,
                guess == sign,
                abs(usual - size) <= SIZE_HIT * size,
                np.sign(flow) == sign,
                abs(rng.uniform(0, SECONDS) - at) <= TIME_HIT_S,
                abs(drawn - size) <= SIZE_HIT * size,
            )
        )
    hits = np.array(rows, np.float64)
    names = ("time", "side", "size", "side by flow", "base time", "base size")
    return {**dict(zip(names, hits.mean(axis=0), strict=True)), "all": float(hits[:, :3].all(axis=1).mean())}


PLANS: Mapping[str, ScheduleRules] = {
    "twap": ScheduleRules("twap", BP),
    "twap, sizes hidden": ScheduleRules("twap", BP, hiding=Hiding(0, 5_000, 0)),
    "twap, times hidden": ScheduleRules("twap", BP, hiding=Hiding(0, 0, BP)),
    "twap, both hidden": ScheduleRules("twap", BP, hiding=Hiding(0)),
    "vwap": ScheduleRules("vwap", BP),
    "vwap, both hidden": ScheduleRules("vwap", BP, hiding=Hiding(0)),
}


def main(given: Sequence[str]) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=200, help="sessions, seeds from 0")
    options.add_argument("--size", type=float, default=5.0, help="order in %% of a usual day")
    asked = options.parse_args(given)
    shares = int(RULES.day_shares * asked.size / 100)
    print(f"{shares} shares, {asked.sessions} sessions; hits in %\n")
    print("| schedule | time | base | side | side by flow | size | base | all three |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rules in PLANS.items():
        found = [
            watch(record_tape(rules, shares if seed % 2 else -shares, seed), seed) for seed in range(asked.sessions)
        ]
        columns = {key: show(np.array([one[key] * 100 for one in found]), 1) for key in found[0]}
        order = ("time", "base time", "side", "side by flow", "size", "base size", "all")
        print(f"| {name} | {' | '.join(columns[key] for key in order)} |")
    return 0
