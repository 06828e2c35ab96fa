"""Schedules on sessions with the real volume, open and close of a name and day; the path between them is simulated.

python -m bench.execution real --panel FILE [--sessions 300] [--size 5]

The file has date, symbol, open, close and volume, as quoted on the day (Parquet). Each session is another date with one
name drawn at random among those above 5 of the currency with 60 days before it. What the trader knows is from earlier
days alone: volume is the mean of 20 days, volatility that of opens to closes over 60. The market's depth and impact
follow the real volume, so a day that trades half of what was expected is twice as expensive.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from alphaloom.execution.schedule import CostModel, make_u_curve
from alphaloom.execution.simulation import MarketRules, SimulatedVenue, draw_day
from bench.execution.trading import CLOSE_US, INTERVALS, MINUTE_US, OPEN_US, Outcome, print_table, run_ways

LEAST_PRICE = 5.0
LEAST_SHARES = 100_000
"""A day's volume below this has intervals without a trade."""
TICK_E4 = 100
DEPTH_BP = 1_500
"""Shares at a level as in the simulated market, where a tick is 2 bp and the volatility 150 bp: wider ticks hold more
shares, wilder names fewer."""
USUAL_TICK_BP = 2.0
USUAL_VOLATILITY_BP = 150.0
WARMUP_DAYS = 60
USUAL_DAYS = 20


@dataclass(frozen=True)
class Session:
    """One name on one day: what happened, and what was known before."""

    open_price: float
    close_price: float
    day_shares: int
    expected_shares: int
    volatility_bp: float


def draw_sessions(path: str, count: int, seed: int) -> Iterator[Session]:
    """Yield sessions of different dates."""
    table = pd.read_parquet(path, columns=["date", "symbol", "open", "close", "volume"])
    wide = {name: table.pivot(index="date", columns="symbol", values=name) for name in ("open", "close", "volume")}
    usual = wide["volume"].rolling(USUAL_DAYS).mean().shift(1)
    moves = wide["close"] / wide["open"] - 1
    volatility = moves.rolling(WARMUP_DAYS).std().shift(1) * 1e4
    rng = np.random.default_rng(seed)
    fine = (wide["open"] > LEAST_PRICE) & (wide["volume"] > LEAST_SHARES) & (usual > LEAST_SHARES) & (volatility > 0)
    dates = np.flatnonzero(fine.any(axis=1))
    for day in sorted(rng.choice(dates, min(count, len(dates)), replace=False)):
        name = rng.choice(np.flatnonzero(fine.iloc[day]))
        frames = (wide["open"], wide["close"], wide["volume"], usual, volatility)
        opened, closed, volume, expected, deviation = (float(frame.iloc[day, name]) for frame in frames)
        yield Session(opened, closed, int(volume), int(expected), deviation)


def run_session(session: Session, seed: int, size: float) -> dict[str, Outcome]:
    """Return what each way costs on one session; the order is `size` percent of the expected volume."""
    tick_bp = TICK_E4 / session.open_price
    depth_bp = DEPTH_BP * tick_bp / USUAL_TICK_BP * USUAL_VOLATILITY_BP / session.volatility_bp
    rules = MarketRules(
        OPEN_US,
        CLOSE_US,
        MINUTE_US,
        round(session.open_price * 1e4),
        round(session.close_price * 1e4),
        volatility_bp=session.volatility_bp,
        day_shares=session.day_shares,
        volume_noise=0.0,
        venues=(SimulatedVenue("X", round(depth_bp)),),
    )
    model = CostModel(tick_bp, session.volatility_bp)
    curve = make_u_curve(OPEN_US, CLOSE_US, INTERVALS, session.expected_shares)
    shares = int(session.expected_shares * size / 100) * (1 if seed % 2 else -1)
    return run_ways(rules, draw_day(rules, seed), shares, model, curve)


def main(given: Sequence[str]) -> int:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--panel", required=True, help="a Parquet file of daily prices and volumes as quoted")
    options.add_argument("--sessions", type=int, default=300)
    options.add_argument("--size", type=float, default=5.0, help="order in %% of the expected volume")
    options.add_argument("--seed", type=int, default=7)
    asked = options.parse_args(given)
    sessions = list(draw_sessions(asked.panel, asked.sessions, asked.seed))
    ratio = np.array([one.day_shares / one.expected_shares for one in sessions])
    print(f"{len(sessions)} sessions, {asked.size:g} % of the expected volume; real volume over expected: "
          f"median {np.median(ratio):.2f}, 5 % below {np.quantile(ratio, 0.05):.2f}\n")  # fmt: skip  # two parts
    value = float(np.mean([one.expected_shares * one.open_price for one in sessions])) * asked.size / 100
    print_table([run_session(one, seed, asked.size) for seed, one in enumerate(sessions)], value)
    return 0
