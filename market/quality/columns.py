"""Columns that cannot be of their day: one that knows tomorrow's returns, one that is a day late, one that is another's copy.

On about 100,000 cells of evenly spaced days each column is ranked across names (prices and counts as their change since
the day before, volumes against their mean of five days) and correlated with the returns of the day before, the day, and
the day after; volumes with absolute returns. Nothing public that is known at a close orders the next day's returns with
a mean rank correlation of 0.1: with only 25 independent names that were a Sharpe ratio of 0.1 sqrt(25 252) = 8 a year.
So a column is suspected whose correlation with tomorrow is beyond 0.1 and whose t is beyond 5. A column of prices or
volumes is a day early or late if it goes with tomorrow or yesterday more than with today, the daily difference having
a t beyond 5: by chance 3e-7 for each column and side. (The open is left out of the second: most of its change is
yesterday's. A shifted open shows as bars that cannot be.) A panel in which the close alone is shifted shows the others as shifted.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..data_warning import DataWarning, first_few, format_count
from ..panel import Panel
from .moves import Frame, LogMoves, logarithm

SAMPLED_CELLS = 100_000
MIN_CORRELATED_NAMES = 10
MIN_CORRELATION_DAYS = 40
PAST_ROWS = 6
MIN_SHIFT_CORRELATION = 0.1
MIN_STANDARD_ERRORS = 5.0
TODAY_FIELDS = ("high", "low", "vwap", "close_raw", "cap")
VOLUME_FIELDS = ("volume", "amount")
MIN_COPIED_SHARE = 0.99
MIN_REPEATED_SHARE = 0.5
SAMPLED_DAYS = 200

COLUMNS_WHY = "a factor that reads it knows the next day's return, and looks better than anything that can be traded"
COLUMNS_REMEDY = "check at the source what day each row of the column is of, and move or drop it"


def shifted_columns(moves: LogMoves) -> DataWarning | None:
    """Find columns that go with the returns of another day."""
    panel = moves.panel
    if panel.names < MIN_CORRELATED_NAMES or panel.days < MIN_CORRELATION_DAYS + PAST_ROWS + 1:
        return None
    days = sampled_days(panel)
    returns = {lag: centred_ranks(moves.own[days + lag]) for lag in (-1, 0, 1)}
    sizes = {lag: centred_ranks(np.abs(moves.own[days + lag])) for lag in (-1, 0, 1)}
    told, figures = [], {}
    for name in panel.fields:
        if name in ("returns", "close"):
            continue
        for signal in signals(panel.fields[name], name, days):
            found = judge(name, centred_ranks(signal), returns, sizes)
            if found:
                told.append(f"{name} {found[0]}")
                figures[name] = found[1]
                break
    if not told:
        return None
    seen = f"{format_count(len(told), 'column')} of another day, by the returns that go with it"
    return DataWarning("shifted columns", seen, len(told), first_few(told), COLUMNS_WHY, COLUMNS_REMEDY, figures)


def judge(name: str, signal: Frame, returns: dict[int, Frame], sizes: dict[int, Frame]) -> tuple[str, float] | None:
    """Return what is wrong with a column's days, and the correlation that shows it; None if nothing is."""
    by_lag = {lag: row_correlation(signal, frame) for lag, frame in returns.items()}
    ahead, t_ahead = mean_and_t(by_lag[1])
    if abs(ahead) > MIN_SHIFT_CORRELATION and abs(t_ahead) > MIN_STANDARD_ERRORS:
        return f"orders tomorrow's returns (mean correlation {ahead:+.2f})", ahead
    if name in VOLUME_FIELDS:
        by_lag = {lag: row_correlation(signal, frame) for lag, frame in sizes.items()}
    elif name not in TODAY_FIELDS:
        return None
    for lag, word in ((1, "early"), (-1, "late")):
        gap, t_gap = mean_and_t(by_lag[lag] - by_lag[0])
        if gap > 0 and t_gap > MIN_STANDARD_ERRORS:
            return f"is a day {word}", gap
    return None


def sampled_days(panel: Panel) -> NDArray[np.intp]:
    """Return evenly spaced rows that have enough past and a row after them."""
    wanted = int(np.clip(SAMPLED_CELLS // panel.names, MIN_CORRELATION_DAYS, 250))
    days = np.arange(PAST_ROWS, panel.days - 1)
    return days[:: max(1, -(-len(days) // wanted))]


def signals(values: NDArray[np.float64], name: str, days: NDArray[np.intp]) -> list[Frame]:
    """Return what is compared with returns: the change of a positive column, the value and change of any other."""
    now, before = values[days].astype(np.float64), values[days - 1].astype(np.float64)
    if name in VOLUME_FIELDS:
        past = sum(fill_missing(values[days - back]) for back in range(1, PAST_ROWS))
        return [logarithm(now) - logarithm(np.asarray(past))]
    known = now[np.isfinite(now)]
    if known.size and known.min() > 0:
        change = logarithm(now) - logarithm(before)
        return [change] if name in (*TODAY_FIELDS, "open") else [change, now]
    return [now, now - before]


def fill_missing(values: NDArray[np.float64]) -> Frame:
    """Return the values in float64, 0 where there is none."""
    return np.where(np.isfinite(values), values, 0.0).astype(np.float64)


def centred_ranks(values: Frame) -> Frame:
    """Return centred ranks of each row, NaN where a value is missing; ties have their mean, so that they order nothing."""
    known = np.isfinite(values)
    filled = np.where(known, values, np.inf)
    order = np.argsort(filled, axis=1, kind="stable")
    ordered = np.take_along_axis(filled, order, axis=1)
    place = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    edge, differs = np.ones((len(values), 1), np.bool_), ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(np.hstack([edge, differs]), place, 0), axis=1)
    backward = np.where(np.hstack([differs, edge]), place, values.shape[1])[:, ::-1]
    last = np.minimum.accumulate(backward, axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2.0, axis=1)
    ranks -= (known.sum(axis=1, keepdims=True) - 1) / 2.0
    return np.where(known, ranks, np.nan)


def row_correlation(first: Frame, second: Frame) -> Frame:
    """Return the correlation of each row over the cells that both have, NaN under ten of them."""
    both = ~(np.isnan(first) | np.isnan(second))
    count = np.maximum(both.sum(axis=1, keepdims=True), 1)
    x, y = (np.where(both, part, 0.0) for part in (first, second))
    x, y = (np.where(both, part - part.sum(axis=1, keepdims=True) / count, 0.0) for part in (x, y))
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    usable = (count[:, 0] >= MIN_CORRELATED_NAMES) & (scale > 0)
    return np.where(usable, (x * y).sum(axis=1) / np.where(usable, scale, 1.0), np.nan)


def mean_and_t(series: Frame) -> tuple[float, float]:
    """Return the mean of the known values and its t; zeros where fewer than forty are known."""
    known = series[~np.isnan(series)]
    if known.size < MIN_CORRELATION_DAYS:
        return 0.0, 0.0
    mean, error = float(known.mean()), float(known.std(ddof=1)) / np.sqrt(known.size)
    return mean, mean / error if error > 0 else float(np.copysign(np.inf, mean)) if mean else 0.0


def twin_columns(moves: LogMoves) -> DataWarning | None:
    """Find columns that hold another column's values, and opens that repeat the close of the day before."""
    panel = moves.panel
    step = max(1, panel.days // SAMPLED_DAYS)
    sample = {name: values[1::step] for name, values in panel.fields.items() if name != "returns"}
    pairs = [pair for pair in combinations(sorted(sample), 2) if pair != ("close", "close_raw")]
    told = [f"{a} = {b}" for a, b in pairs if share_equal(sample[a], sample[b]) > MIN_COPIED_SHARE]
    if (
        panel.days > MIN_CORRELATION_DAYS
        and share_equal(panel.fields["open"][1:], panel.fields["close"][:-1]) > MIN_REPEATED_SHARE
    ):
        told.append("open = the close of the day before")
    if not told:
        return None
    seen = f"{format_count(len(told), 'pair')} of columns with the same values"
    why = "one of them is not what its name says: labels and fills at such an open are made up, and ranges are none"
    return DataWarning("twin columns", seen, len(told), first_few(told), why, "give the true column, or leave it out")


def share_equal(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the share of equal cells among those that either column has."""
    either = int((np.isfinite(first) | np.isfinite(second)).sum())
    return int((first == second).sum()) / either if either else 0.0
