"""Bid-ask bounce: closes that jump between bid and ask, which looks like a reversal within a day.

Roll (1984): a price that is the value plus or minus half a spread s, at random, has returns whose first autocovariance
is -s^2/4, so s = 2 sqrt(-cov), and the bounce is 2 |cov| / var of their variance. A true reversal has a negative
autocovariance too, but the bounce of a close is gone at the next open. So the covariance of a day's return with the
night after it is compared with that with the day after that open; bounce is suspected where the night holds more than
half of a reversal.

A symbol is suspected if its autocorrelation has t < -5 and the bounce is at least 2 % of its variance; the panel as a
whole if the daily mean over symbols of the product of one day's return with the next has. Errors are those of White,
from the products themselves, on own returns in usual units and clipped at four. By chance 3e-7 a symbol, so 0.0003 in
1,000 symbols.

Source: Roll (1984), Journal of Finance 39, 1127-1139.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataWarning, first_few, format_count
from .moves import CLIP_IN_MOVES, Frame, LogMoves, compute_row_means

MIN_STANDARD_ERRORS = 5.0
MIN_BOUNCE_SHARE = 0.02
MIN_NIGHT_SHARE = 0.5
MIN_BOUNCE_DAYS = 60
MIN_BOUNCE_NAMES = 10
BOUNCE_REMEDY = (
    "trade at the next open, as labels do here; believe no reversal within a day on closes, least of all after no costs"
)


@dataclass(frozen=True)
class Bounce:
    """The bounce of each symbol, all `[N]`.

    `share`: bounce as a share of the variance; `t`: t-statistic of the autocorrelation; `spread`: Roll's spread as a
    share of the price (NaN where the autocovariance is not negative); `night`: share of the reversal over by the next
    open.
    """

    share: Frame
    t: Frame
    spread: Frame
    night: Frame


def find_bid_ask_bounce(moves: LogMoves) -> DataWarning | None:
    """Warn of symbols, or a panel, whose one-day reversal is the bounce of closes between bid and ask."""
    if moves.panel.days < MIN_BOUNCE_DAYS:
        return None
    bounce = measure_bounce(moves)
    with np.errstate(invalid="ignore"):
        names = np.flatnonzero(
            (bounce.t < -MIN_STANDARD_ERRORS) & (bounce.share > MIN_BOUNCE_SHARE) & (bounce.night > MIN_NIGHT_SHARE)
        )
    share, t, night = measure_panel_bounce(moves)
    in_panel = t < -MIN_STANDARD_ERRORS and share > MIN_BOUNCE_SHARE and night > MIN_NIGHT_SHARE
    if not len(names) and not in_panel:
        return None
    widest = names[np.argsort(-bounce.spread[names], kind="stable")]
    cases = first_few(
        f"{moves.panel.symbols[i]} {1e4 * bounce.spread[i]:.0f} bp, {bounce.share[i]:.0%}" for i in widest
    )
    observation = (
        f"{format_count(len(names), 'name')} whose closes reverse the next day, mostly by the open "
        "(with Roll's spread, and its share of the variance); "
        f"over all names it is {max(share, 0.0):.1%} of the variance, t {t:.1f}"
    )
    why = (
        "a factor of yesterday's return earns from close to close what nobody can trade, "
        "since the close was a bid or an ask"
    )
    figures = {"names": len(names), "share": share, "t": t, "by_the_open": night}
    return DataWarning("bid-ask bounce", observation, len(names), cases, why, BOUNCE_REMEDY, figures)


def split_next_moves(moves: LogMoves) -> tuple[Frame, Frame, Frame]:
    """Return own moves of a day, of the night after and of the day after that: usual units, clipped, `[T-2, N]`."""
    night = moves.night - compute_row_means(np.clip(moves.night, -0.1, 0.1))[:, None]
    first = moves.unit[1:-1]
    second = np.clip(night[2:] / moves.usual, -CLIP_IN_MOVES, CLIP_IN_MOVES)
    third = np.clip((moves.own[2:] - night[2:]) / moves.usual, -CLIP_IN_MOVES, CLIP_IN_MOVES)
    return first, second, third


def measure_bounce(moves: LogMoves) -> Bounce:
    """Return the bounce of each symbol, on at least sixty products of moves."""
    first, night, day = split_next_moves(moves)
    product = first * moves.unit[2:]
    count = np.maximum((~np.isnan(product)).sum(axis=0), 1)
    total, squares = (np.nansum(part, axis=0) for part in (product, product**2))
    variance = np.nansum(first**2, axis=0) / np.maximum((~np.isnan(first)).sum(axis=0), 1)
    usable = (count >= MIN_BOUNCE_DAYS) & (squares > 0)
    t = np.where(usable, total / np.sqrt(np.where(usable, squares, 1.0)), np.nan)
    mean = total / count
    spread = 2.0 * np.sqrt(np.where(mean < 0, -mean, np.nan)) * moves.usual
    parts = [np.nansum(first * part, axis=0) for part in (night, day)]
    return Bounce(-2.0 * mean / np.where(variance > 0, variance, 1.0), t, spread, compute_night_share(*parts))


def measure_panel_bounce(moves: LogMoves) -> tuple[float, float, float]:
    """Return the bounce of all symbols as a share of the variance, its t from daily means, and the night's part."""
    first, night, day = split_next_moves(moves)
    product = first * moves.unit[2:]
    usable = (~np.isnan(product)).sum(axis=1) >= MIN_BOUNCE_NAMES
    if usable.sum() < MIN_BOUNCE_DAYS:
        return 0.0, 0.0, 0.0
    daily = compute_row_means(product)[usable]
    variance = float(compute_row_means(first**2)[usable].mean())
    mean, error = float(daily.mean()), float(daily.std(ddof=1)) / np.sqrt(len(daily))
    parts = [np.array([compute_row_means(first * part)[usable].mean()]) for part in (night, day)]
    return -2.0 * mean / max(variance, 1e-12), mean / max(error, 1e-12), float(compute_night_share(*parts)[0])


def compute_night_share(night: Frame, day: Frame) -> Frame:
    """Return the night's share of two covariances; 0 where their sum is not negative."""
    total = night + day
    return np.where(total < 0, np.clip(night / np.where(total < 0, total, -1.0), 0.0, 1.0), 0.0)
