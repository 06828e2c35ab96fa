"""One parent through one simulated session, what it cost, and intervals over sessions.

The cost of a fill is split in two: `impact` is its price against the price that the session would have had without us
at that time; `timing` is that price against the arrival price. Without a signal the mean of `timing` is 0, so `impact`
with fees compares algorithms, and the standard deviation of `timing` is their risk. Tracking is the mean price of the
fills against that of the whole tape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from alphaloom.execution import ExecutionReport, ParentOrder
from alphaloom.execution.schedule import (
    CostModel,
    Hiding,
    ScheduleRules,
    VolumeCurve,
    estimate_cost,
    measure_slippage,
    plan_schedule,
)
from alphaloom.execution.simulation import MarketRules, SimulatedDay, SimulatedMarket, trade_plan
from alphaloom.risk import BP, Approved
from bench.execution.paced import PacedSchedule, trade_paced
from tests.execution.approvals import DAY, approve

MINUTE_US = 60_000_000
OPEN_US = 1_767_623_400_000_000
"""5 January 2026, 14:30 UTC."""
CLOSE_US = OPEN_US + 390 * MINUTE_US
INTERVALS = 78
"""Of five minutes."""
NAIVE = "naive (even slices)"
SAMPLES = 2_000
AVERSION = 1e-6
"""Risk aversion at which the table prices the variance of timing, in 1 / currency."""
Floats = NDArray[np.float64]


@cache
def take_approval() -> Approved:
    """Return one approval, by which every parent here is made."""
    (approved,) = approve("AAA")
    return approved


@dataclass(frozen=True)
class Way:
    """One way to trade a parent: its rules, whether it waits for observed volume, and the curve that it expects."""

    rules: ScheduleRules
    is_paced: bool = False


WAYS: Mapping[str, Way] = {
    NAIVE: Way(ScheduleRules("twap", BP)),
    "market at the open": Way(ScheduleRules("market", BP)),
    "vwap": Way(ScheduleRules("vwap", BP)),
    "vwap, sizes and times hidden": Way(ScheduleRules("vwap", BP, hiding=Hiding(1))),
    "vwap, paced at 10 %": Way(ScheduleRules("vwap", 1_000), is_paced=True),
    "pov at 10 %": Way(ScheduleRules("pov", 1_000), is_paced=True),
    "is, risk aversion 1e-6": Way(ScheduleRules("is", BP, risk_aversion=1e-6)),
    "is, risk aversion 1e-5": Way(ScheduleRules("is", BP, risk_aversion=1e-5)),
}


@dataclass(frozen=True)
class Outcome:
    """One traded parent.

    Attributes
    ----------
    impact_bp, timing_bp
        See the module; of the filled shares, fees with the impact.
    tracking_bp
        Mean price of the fills against the mean price of the tape; above 0 is worse than the tape.
    unfilled_bp
        Shares without a fill, in bp of the parent.
    peak_bp
        Our largest share of the volume so far, after the first half hour, in bp.
    expected_bp, sd_bp
        What the model expected before.
    """

    impact_bp: float
    timing_bp: float
    tracking_bp: float
    unfilled_bp: float
    peak_bp: float
    expected_bp: float
    sd_bp: float


def trade(market: SimulatedMarket, shares: int, way: Way, curve: VolumeCurve, model: CostModel) -> Outcome:
    """Trade one parent, which arrives at the first price of the session."""
    parent = ParentOrder(take_approval(), shares, market.rules.start_e4, DAY)
    plan = plan_schedule(parent, curve, way.rules, model)
    estimate = estimate_cost(parent, np.array(plan.planned_shares), plan.curve, model)
    reports = trade_paced(market, PacedSchedule(plan, way.rules)) if way.is_paced else trade_plan(market, plan)
    return measure(market, parent, reports, (estimate.expected_bp, estimate.sd_bp))


def measure(
    market: SimulatedMarket, parent: ParentOrder, reports: Sequence[ExecutionReport], expected: tuple[float, float]
) -> Outcome:
    """Return what a traded parent cost."""
    slippage, sign = measure_slippage(parent, reports), 1 if parent.shares > 0 else -1
    fills = [report for report in reports if report.kind == "filled"]
    shares = np.array([fill.shares for fill in fills])
    steps = np.array([(fill.at_us - market.rules.open_us) // market.rules.step_us for fill in fills])
    without_us = market.day.mid_e4[np.minimum(steps, market.rules.steps - 1)]
    timing_e4 = sign * float((shares * (without_us - parent.arrival_e4)).sum() / shares.sum())
    tape_e4 = average_price(market, reports)
    timing_bp = timing_e4 / parent.arrival_e4 * BP
    return Outcome(
        slippage.filled_bp - timing_bp,
        timing_bp,
        sign * (slippage.mean_e4 / tape_e4 - 1) * BP,
        slippage.unfilled_shares / abs(parent.shares) * BP,
        find_peak(market),
        *expected,
    )


def average_price(market: SimulatedMarket, reports: Sequence[ExecutionReport]) -> float:
    """Return the volume-weighted price of the whole tape: the others at the price that we moved, and our fills."""
    day, rules = market.day, market.rules
    steps = np.minimum((day.times_us - rules.open_us) // rules.step_us, rules.steps - 1)
    per_day_e4 = rules.permanent_share * rules.volatility_bp / BP * rules.start_e4
    at_us = np.array([at for at, _, _ in market.own_prints])
    moves = np.cumsum([sign * per_day_e4 * shares / rules.day_shares for _, shares, sign in market.own_prints])
    moved = np.concatenate([[0.0], moves])[np.searchsorted(at_us, day.times_us)]
    own = sum(report.shares for report in reports)
    own_e4 = sum(report.shares * report.price_e4 for report in reports)
    others_e4 = float((day.print_shares * (day.mid_e4[steps] + moved)).sum())
    return (others_e4 + own_e4) / (float(day.print_shares.sum()) + own)


def find_peak(market: SimulatedMarket) -> float:
    """Return our largest share of the volume so far, after the first half hour, in bp."""
    peak, own = 0.0, 0
    for at_us, shares, _ in market.own_prints:
        own += shares
        if at_us >= market.rules.open_us + 30 * MINUTE_US:
            peak = max(peak, own / (market.day.traded_shares(at_us) + own))
    return peak * BP


def run_ways(
    rules: MarketRules, day: SimulatedDay, shares: int, model: CostModel, curve: VolumeCurve
) -> dict[str, Outcome]:
    """Return what each way costs on one session."""
    return {name: trade(SimulatedMarket(rules, day), shares, way, curve, model) for name, way in WAYS.items()}


def bound(values: Floats, seed: int = 0) -> tuple[float, float, float]:
    """Return the mean of `[N]` and its 95 % interval by bootstrap."""
    rng = np.random.default_rng(seed)
    means = values[rng.integers(0, len(values), (SAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def show(values: Sequence[float] | Floats, digits: int = 2) -> str:
    """Return a mean with its interval as text."""
    mean, low, high = bound(np.asarray(values, np.float64))
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def price_risk(impact_bp: Floats, timing_bp: Floats, value: float) -> Floats:
    """Return impact plus the variance of the timing at a risk aversion of 1e-6, in bp, over the last axis."""
    return np.asarray(impact_bp.mean(axis=-1) + AVERSION * value / BP * timing_bp.var(axis=-1), np.float64)


def show_objective(rows: Sequence[Outcome], naive: Sequence[Outcome], value: float) -> str:
    """Return impact plus priced risk, less that of naive slicing, with its interval as text."""
    both = [np.array([[row.impact_bp, row.timing_bp] for row in one]).T for one in (rows, naive)]
    count = len(rows)
    picks = np.random.default_rng(0).integers(0, count, (SAMPLES, count))
    mean = float(np.subtract(*(price_risk(impact, timing, value) for impact, timing in both)))
    spread = np.subtract(*(price_risk(impact[picks], timing[picks], value) for impact, timing in both))
    low, high = np.quantile(spread, [0.025, 0.975])
    return f"{mean:.1f} ({low:.1f} to {high:.1f})"


def print_table(found: Sequence[Mapping[str, Outcome]], value: float) -> None:
    """Print one line for each way, over sessions; `value` is that of the order in the currency."""
    print(
        "| way | impact, bp | less naive, bp | sd of timing, bp | impact and risk less naive, bp | tracking, sd, bp"
        " | unfilled, % | above 10 % of volume, % of days | expected impact, bp |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    naive = [one[NAIVE] for one in found]
    for name in found[0]:
        rows = [one[name] for one in found]
        impact = np.array([row.impact_bp for row in rows])
        less = impact - [row.impact_bp for row in naive]
        is_naive = name == NAIVE
        print(
            f"| {name} | {show(impact)} | {'-' if is_naive else show(less)}"
            f" | {np.std([row.timing_bp for row in rows]):.0f}"
            f" | {'-' if is_naive else show_objective(rows, naive, value)}"
            f" | {np.std([row.tracking_bp for row in rows]):.1f}"
            f" | {np.mean([row.unfilled_bp for row in rows]) / 100:.1f}"
            f" | {np.mean([row.peak_bp > 1_000 for row in rows]) * 100:.0f}"
            f" | {np.mean([row.expected_bp for row in rows]):.2f} |"
        )
