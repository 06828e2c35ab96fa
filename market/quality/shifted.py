"""Data of another day: symbols dated a day off, and columns that contain tomorrow's returns or are a day early or late.

**Symbols.** The clipped standardised return of each symbol is correlated with the market's (the mean over all symbols)
of the day before, the day itself and the day after. Fisher's z of such a correlation has deviation 1 / sqrt(n);
clipping and dividing by a robust scale keep it near that under fat tails. A symbol is suspected if the size of another
day's z exceeds that of today's by more than 5 sqrt(2 / n) (sizes, since an inverse fund moves against the market). For
a symbol unrelated to the market the chance is 3e-7 a side; for a related one far less: below one false alarm in 1,000
panels of 1,000 symbols.

**Columns.** On about 100,000 cells of evenly spaced days each column is ranked across symbols (prices and counts as
their change since the day before, volumes against their mean of five days) and correlated with the returns of the day
before, the day, and the day after; volumes with absolute returns. Nothing public at a close orders the next day's
returns with a mean rank correlation of 0.1: with only 25 independent symbols that would be a Sharpe ratio of 0.1
sqrt(25 252) = 8 a year. So a column is suspected whose correlation with tomorrow is beyond 0.1 with a t beyond 5. A
column of prices or volumes is a day early or late if it correlates with tomorrow or yesterday more than with today, the
daily difference having a t beyond 5: by chance 3e-7 for each column and side. The open is left out of the second test,
because most of its change is yesterday's; a shifted open shows as odd bars. If the close alone is shifted, the other
columns are reported.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, first_few, format_count
from ..panel import Panel
from .moves import CLIP_IN_MOVES, Frame, LogMoves, compute_logs, compute_row_means

MIN_MARKET_NAMES = 20
MIN_SHIFT_DAYS = 60
SHIFTS_WHY = "prices dated a day early tell today what others do tomorrow, and dated a day late they seem predictable"
SHIFTS_REMEDY = "check the dates of these names at the source (time zone, exchange calendar, a column moved by one row)"
SAMPLED_CELLS = 100_000
MIN_CORRELATED_NAMES = 10
MIN_CORRELATION_DAYS = 40
PAST_ROWS = 6
MIN_SHIFT_CORRELATION = 0.1
MIN_STANDARD_ERRORS = 5.0
TODAY_FIELDS = ("high", "low", "vwap", "close_raw", "cap")
VOLUME_FIELDS = ("volume", "amount")
COLUMNS_WHY = "a factor that reads it knows the next day's return, and looks better than anything that can be traded"
COLUMNS_REMEDY = "check at the source what day each row of the column is of, and move or drop it"


def find_shifted_symbols(moves: LogMoves) -> DataWarning | None:
    """Warn of symbols that move with the market of another day."""
    panel = moves.panel
    if panel.names < MIN_MARKET_NAMES or panel.days < MIN_SHIFT_DAYS:
        return None
    lags = correlate_with_market(moves)
    limit = MIN_STANDARD_ERRORS * np.sqrt(2.0 / np.maximum(lags["count"], 1.0))
    early, late = (
        np.flatnonzero(np.abs(lags[side]) - np.abs(lags["today"]) > limit) for side in ("tomorrow", "yesterday")
    )
    count = len(early) + len(late)
    if not count:
        return None
    observation = (
        f"{format_count(len(early), 'name')} with the market of the day after (dated a day early), "
        f"{len(late)} with that before"
    )
    cases = [f"{panel.symbols[i]} early" for i in early] + [f"{panel.symbols[i]} late" for i in late]
    return DataWarning(
        "shifted names",
        observation,
        count,
        first_few(cases),
        SHIFTS_WHY,
        SHIFTS_REMEDY,
        {"early": len(early), "late": len(late)},
    )


def correlate_with_market(moves: LogMoves) -> dict[str, Frame]:
    """Return Fisher's z `[N]` with the market of yesterday, today and tomorrow, and the number of days."""
    unit = np.clip(moves.returns / moves.usual, -CLIP_IN_MOVES, CLIP_IN_MOVES)
    known = ~np.isnan(unit)
    known[0] = False
    market = compute_row_means(unit)
    market -= market[1:].mean()
    filled = np.where(known, unit, 0.0)
    count = known.sum(axis=0).astype(np.float64)
    filled -= np.where(known, filled.sum(axis=0) / np.maximum(count, 1.0), 0.0)
    size, weight = (filled**2).sum(axis=0), known.astype(np.float64)
    fits = {"count": np.where(count >= MIN_SHIFT_DAYS, count, 0.0)}
    for word, shift in (("yesterday", 1), ("today", 0), ("tomorrow", -1)):
        other = np.roll(market, shift)
        other[[0, -1]] = 0.0
        scale = np.sqrt(size * (other**2 @ weight))
        fits[word] = np.arctanh(np.clip(other @ filled / np.where(scale > 0, scale, 1.0), -0.999, 0.999))
    return fits


def find_shifted_columns(moves: LogMoves) -> DataWarning | None:
    """Warn of columns that correlate with the returns of another day."""
    panel = moves.panel
    if panel.names < MIN_CORRELATED_NAMES or panel.days < MIN_CORRELATION_DAYS + PAST_ROWS + 1:
        return None
    days = sample_days(panel)
    returns = {lag: compute_centred_ranks(moves.own[days + lag]) for lag in (-1, 0, 1)}
    sizes = {lag: compute_centred_ranks(np.abs(moves.own[days + lag])) for lag in (-1, 0, 1)}
    cases, figures = [], {}
    for name in panel.fields:
        if name in ("returns", "close"):
            continue
        for signal in compute_signals(panel.fields[name], name, days):
            verdict = judge_column(name, compute_centred_ranks(signal), returns, sizes)
            if verdict:
                cases.append(f"{name} {verdict[0]}")
                figures[name] = verdict[1]
                break
    if not cases:
        return None
    observation = f"{format_count(len(cases), 'column')} of another day, by the returns that go with it"
    return DataWarning(
        "shifted columns", observation, len(cases), first_few(cases), COLUMNS_WHY, COLUMNS_REMEDY, figures
    )


def judge_column(
    name: str, signal: Frame, returns: dict[int, Frame], sizes: dict[int, Frame]
) -> tuple[str, float] | None:
    """Return what is wrong with the dates of a column, and the correlation that shows it; None if nothing is."""
    by_lag = {lag: correlate_rows(signal, frame) for lag, frame in returns.items()}
    ahead, t_ahead = compute_mean_and_t(by_lag[1])
    if abs(ahead) > MIN_SHIFT_CORRELATION and abs(t_ahead) > MIN_STANDARD_ERRORS:
        return f"orders tomorrow's returns (mean correlation {ahead:+.2f})", ahead
    if name in VOLUME_FIELDS:
        by_lag = {lag: correlate_rows(signal, frame) for lag, frame in sizes.items()}
    elif name not in TODAY_FIELDS:
        return None
    for lag, word in ((1, "early"), (-1, "late")):
        gap, t_gap = compute_mean_and_t(by_lag[lag] - by_lag[0])
        if gap > 0 and t_gap > MIN_STANDARD_ERRORS:
            return f"is a day {word}", gap
    return None


def sample_days(panel: Panel) -> NDArray[np.intp]:
    """Return evenly spaced rows that have enough past and a row after them."""
    row_count = int(np.clip(SAMPLED_CELLS // panel.names, MIN_CORRELATION_DAYS, 250))
    days = np.arange(PAST_ROWS, panel.days - 1)
    return days[:: max(1, -(-len(days) // row_count))]


def compute_signals(values: NDArray[np.float64], name: str, days: NDArray[np.intp]) -> list[Frame]:
    """Return the signals `[D, N]` to correlate: the change of a positive column, value and change of any other."""
    now, before = values[days].astype(np.float64), values[days - 1].astype(np.float64)
    if name in VOLUME_FIELDS:
        past = sum(fill_missing(values[days - back]) for back in range(1, PAST_ROWS))
        return [compute_logs(now) - compute_logs(np.asarray(past))]
    known = now[np.isfinite(now)]
    if known.size and known.min() > 0:
        change = compute_logs(now) - compute_logs(before)
        return [change] if name in (*TODAY_FIELDS, "open") else [change, now]
    return [now, now - before]


def fill_missing(values: NDArray[np.float64]) -> Frame:
    """Return the values in float64, 0 where missing."""
    return np.where(np.isfinite(values), values, 0.0).astype(np.float64)


def compute_centred_ranks(values: Frame) -> Frame:
    """Return the centred ranks of each row `[D, N]`, ties with their mean rank; NaN stays NaN."""
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


def correlate_rows(first: Frame, second: Frame) -> Frame:
    """Return the correlation of each row `[D]` over the cells known in both; NaN for fewer than ten."""
    both = ~(np.isnan(first) | np.isnan(second))
    count = np.maximum(both.sum(axis=1, keepdims=True), 1)
    x, y = (np.where(both, part, 0.0) for part in (first, second))
    x, y = (np.where(both, part - part.sum(axis=1, keepdims=True) / count, 0.0) for part in (x, y))
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    usable = (count[:, 0] >= MIN_CORRELATED_NAMES) & (scale > 0)
    return np.where(usable, (x * y).sum(axis=1) / np.where(usable, scale, 1.0), np.nan)


def compute_mean_and_t(series: Frame) -> tuple[float, float]:
    """Return the mean of the known values and its t-statistic; zeros for fewer than forty values."""
    known = series[~np.isnan(series)]
    if known.size < MIN_CORRELATION_DAYS:
        return 0.0, 0.0
    mean, error = float(known.mean()), float(known.std(ddof=1)) / np.sqrt(known.size)
    return mean, mean / error if error > 0 else float(np.copysign(np.inf, mean)) if mean else 0.0
