"""From a combination's last day to a decision: what a campaign would ask the gate to let it trade."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import Closing
from ..market import Panel
from ..risk import BookState, Decision, Policy, Sizing, decide, signals_from_scores

START_CENTS = 100_000_000_00
"""Equity of the paper book that a campaign opens with, in cents; exposures are shares of it."""
RECENT_DAYS, MIN_WEEKDAY_SHARE = 250, 0.2
"""A weekday is traded on if it has a fifth as many of the last days as the most frequent one: special sessions have fewer."""
BOUNDS_NOTE = (
    "one standard error of the combination's RankIC on the search days, on which its factors were chosen; on later windows the "
    "error is larger and the RankIC mostly lower, so they are too narrow to be a forecast"
)
SIDE_BP = 10_000
"""Exposure of each side: one unit of equity."""


def trade(closing: Closing, panel: Panel, policy: Policy) -> Decision | None:
    """Decide, on an empty book, what the combination's scores of the last day ask for; None without a combination.

    Names that have no score that day take no position. The decision is for the trading day after the panel's last.
    """
    if closing.score is None or closing.search is None:
        return None
    scores = [float(value) for value in closing.score[-1]]
    sheet = closing.search
    error = abs(sheet.rank_ic / sheet.t) if sheet.t else float("nan")
    names = ", ".join(part.factor_id for part in closing.parts)
    sizing = Sizing(SIDE_BP, sheet.horizon_days, sheet.rank_ic, error, f"combination of {names}", names)
    signals = signals_from_scores(panel.symbols, scores, sizing)
    state = BookState({}, _last_price_days(panel), equity=START_CENTS, high_water=START_CENTS)
    return decide(signals, state, policy, next_trading_day(panel.dates))


def next_trading_day(dates: NDArray[np.datetime64]) -> date:
    """Return the first day after the last of `dates` on a weekday on which they trade; holidays cannot be known."""
    weekdays = [_day(day).weekday() for day in dates[-RECENT_DAYS:]]
    counts = np.bincount(weekdays, minlength=7)
    coming = [_day(dates[-1]) + timedelta(days=ahead) for ahead in range(1, 8)]
    return next(day for day in coming if counts[day.weekday()] >= MIN_WEEKDAY_SHARE * counts.max())


def summary(decision: Decision | None, withheld: Sequence[str], last: np.datetime64) -> dict[str, Any] | None:
    """Return what a report prints of a decision after a panel's last day; an unacknowledged leak alarm withholds all."""
    if decision is None:
        return None
    kept = [] if withheld else decision.approved
    return {
        "id": decision.id,
        "day": decision.day,
        "after": _day(last).isoformat(),
        "bounds": BOUNDS_NOTE,
        "approved": len(kept),
        "refused": len(decision.rulings) - len(kept),
        "withheld_for": list(withheld),
        "book": [check.record() for check in decision.book],
        "decisions": [_line(ruling.record(), bool(withheld)) for ruling in decision.rulings],
    }


def _line(ruling: dict[str, Any], withheld: bool) -> dict[str, Any]:
    signal = ruling["signal"]
    refusals = [*ruling["refusals"], *(["leak_alarm"] if withheld else [])]
    bounds = {name: signal[name] for name in ("target_bp", "lo_bp", "hi_bp")}
    return {"asset": ruling["asset"], **bounds, "approved": not refusals, "refusals": refusals}


def _last_price_days(panel: Panel) -> dict[str, date]:
    seen = ~np.isnan(panel.fields["close"])
    last = panel.days - 1 - seen[::-1].argmax(axis=0)
    ever = np.flatnonzero(seen.any(axis=0))
    return {panel.symbols[column]: _day(panel.dates[last[column]]) for column in ever}


def _day(value: np.datetime64) -> date:
    day: date = value.astype("datetime64[D]").astype(object)
    return day
