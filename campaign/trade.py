"""From a combination's scores of the last day to a decision of the risk gate."""

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
"""Equity of a campaign's paper book, in cents; exposures are shares of it."""
RECENT_DAYS, MIN_WEEKDAY_SHARE = 250, 0.2
"""A weekday counts as a trading day if it has a fifth as many of the last 250 days as the most frequent weekday;
special sessions have fewer."""
BOUNDS_NOTE = (
    "one standard error of the combination's RankIC on the search days, on which its factors were chosen; "
    "on later windows the error is larger and the RankIC mostly lower, so they are too narrow to be a forecast"
)
SIDE_BP = 10_000
"""Exposure of each side: one unit of equity."""


def trade(closing: Closing, panel: Panel, policy: Policy) -> Decision | None:
    """Return the risk gate's decision on the combination's last scores, for an empty book; None without a combination.

    Symbols without a score that day take no position. The decision is for the trading day after the panel's last.
    """
    if closing.score is None or closing.search is None:
        return None
    scores = [float(value) for value in closing.score[-1]]
    sheet = closing.search
    error = abs(sheet.rank_ic / sheet.t) if sheet.t else float("nan")
    names = ", ".join(part.factor_id for part in closing.parts)
    sizing = Sizing(SIDE_BP, sheet.horizon_days, sheet.rank_ic, error, f"combination of {names}", names)
    signals = signals_from_scores(panel.symbols, scores, sizing)
    state = BookState({}, _find_last_price_days(panel), equity=START_CENTS, high_water=START_CENTS)
    return decide(signals, state, policy, next_trading_day(panel.dates))


def next_trading_day(dates: NDArray[np.datetime64]) -> date:
    """Return the first trading day after the last of `dates`, by weekday; holidays are unknown.

    Parameters
    ----------
    dates : array, shape (days,)
        Trading days, ascending; the last 250 decide which weekdays are traded.
    """
    weekdays = [_to_date(day).weekday() for day in dates[-RECENT_DAYS:]]
    counts = np.bincount(weekdays, minlength=7)
    coming = [_to_date(dates[-1]) + timedelta(days=ahead) for ahead in range(1, 8)]
    return next(day for day in coming if counts[day.weekday()] >= MIN_WEEKDAY_SHARE * counts.max())


def summary(decision: Decision | None, withheld: Sequence[str], last: np.datetime64) -> dict[str, Any] | None:
    """Return a report's summary of a decision; an unacknowledged leak alarm withholds all of it.

    `last` is the panel's last day.
    """
    if decision is None:
        return None
    approved = [] if withheld else decision.approved
    return {
        "id": decision.id,
        "day": decision.day,
        "after": _to_date(last).isoformat(),
        "bounds": BOUNDS_NOTE,
        "approved": len(approved),
        "refused": len(decision.rulings) - len(approved),
        "withheld_for": list(withheld),
        "book": [check.record() for check in decision.book],
        "decisions": [_describe_ruling(ruling.record(), bool(withheld)) for ruling in decision.rulings],
    }


def _describe_ruling(ruling: dict[str, Any], withheld: bool) -> dict[str, Any]:
    signal = ruling["signal"]
    refusals = [*ruling["refusals"], *(["leak_alarm"] if withheld else [])]
    bounds = {name: signal[name] for name in ("target_bp", "lo_bp", "hi_bp")}
    return {"asset": ruling["asset"], **bounds, "approved": not refusals, "refusals": refusals}


def _find_last_price_days(panel: Panel) -> dict[str, date]:
    priced = ~np.isnan(panel.fields["close"])
    last = panel.days - 1 - priced[::-1].argmax(axis=0)
    ever = np.flatnonzero(priced.any(axis=0))
    return {panel.symbols[column]: _to_date(panel.dates[last[column]]) for column in ever}


def _to_date(value: np.datetime64) -> date:
    day: date = value.astype("datetime64[D]").astype(object)
    return day
