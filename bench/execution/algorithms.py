"""Schedules beside naive slicing in the simulated market, by size of the order.

python -m bench.execution algorithms [--sessions 200] [--sizes 1 5 10]

The trader's volume curve is learned from 20 other sessions, and the cost model is that of the literature: neither is
the simulated market's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from alphaloom.execution import PRICE_UNITS
from alphaloom.execution.schedule import CostModel, VolumeCurve, learn_curve
from alphaloom.execution.simulation import MarketRules, draw_day
from bench.execution.trading import CLOSE_US, INTERVALS, MINUTE_US, OPEN_US, print_table, run_ways

RULES = MarketRules(OPEN_US, CLOSE_US, MINUTE_US, 500_000)
"""50 of the currency, 2 million shares a day, 1.5 % of volatility, ticks of 2 bp."""
FIRST_PAST, PAST_SESSIONS = 1_000_000, 20
MODEL = CostModel(half_spread_bp=2.0, volatility_bp=RULES.volatility_bp)


def learn_usual() -> VolumeCurve:
    """Return the curve that a trader knows: the mean of sessions that are not traded here."""
    edges = np.linspace(OPEN_US, CLOSE_US, INTERVALS + 1)
    past = [draw_day(RULES, seed) for seed in range(FIRST_PAST, FIRST_PAST + PAST_SESSIONS)]
    volumes = [np.histogram(day.times_us, edges, weights=day.print_shares)[0] for day in past]
    shares = np.array(volumes, np.int64)
    return learn_curve(OPEN_US, CLOSE_US, shares, int(shares.sum(axis=1).mean()))


def main(given: Sequence[str]) -> int:
    """Print one table for each size."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=200, help="sessions, seeds from 0")
    options.add_argument("--sizes", type=float, nargs="*", default=[1, 5, 10], help="order in %% of a usual day")
    asked = options.parse_args(given)
    curve = learn_usual()
    days = [draw_day(RULES, seed) for seed in range(asked.sessions)]
    for size in asked.sizes:
        shares = int(RULES.day_shares * size / 100)
        print(f"\n{size:g} % of a usual day's volume, {asked.sessions} sessions\n")
        sides = [1 if seed % 2 else -1 for seed in range(asked.sessions)]
        found = [run_ways(RULES, day, side * shares, MODEL, curve) for day, side in zip(days, sides, strict=True)]
        print_table(found, shares * RULES.start_e4 / PRICE_UNITS)
    return 0
