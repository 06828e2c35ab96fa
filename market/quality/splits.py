"""Splits that were not adjusted: a night that takes the price to another level, where it stays, on a day of ordinary trading.

A jump of more than 35 % and of eight usual moves (of the name's life, and of the twenty days around) comes with news, and
news with many times the usual volume. A split, a spin-off, a special dividend or another company's row comes with none: the
day's volume is within three robust deviations above the median of the twenty days before, taken in new shares where the
night's ratio is that of a split. That the price is at a new level is asked of ten days either side (the medians are apart
by the jump, within ten usual moves, four standard deviations of such a difference, or a fifth of the price). Four usual nights around 3:2, 2:1, ...
100:1 and their inverses are called by that ratio. Volume is not asked for where the file's own adjustment took a step on that
very day: it should have left no jump, and was applied twice, too much, or on the wrong day. News takes a name that far in a night about once in 30 years, and leaves
its volume ordinary in fewer than 2 of 100 cases: about one false alarm in 1,500 years of a name.
"""

from __future__ import annotations

import numpy as np

from ..data_warning import DataWarning, first_few, format_count
from .moves import MAD_TO_DEVIATION, LogMoves, cell_text, local_size, marked_cells, usual_size
from .ticks import strays

SPLIT_RATIOS = np.array([1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 100])
"""New shares for an old one; their inverses are consolidations. 5:4 and 4:3 are within reach of an ordinary bad night."""
MIN_LOG_JUMP = np.log(1.35)
MIN_FACTOR_STEP = 0.1
MIN_JUMP_IN_MOVES = 8.0
RATIO_TOLERANCE_NIGHTS = 4.0
MAX_RATIO_TOLERANCE = 0.05
STAY_IN_MOVES, MIN_STAY_TOLERANCE = 10.0, 0.2
PRICE_SIDE_DAYS = 10
VOLUME_DAYS_BEFORE = 20
CALM_DEVIATIONS = 3.0
VOLUME_SPREAD_BOUNDS = (0.3, 0.5)
"""Least and largest deviation of the log volume of a day that is believed, as twenty days tell it."""
MAX_JUMP_CASES = 5000

SPLITS_WHY = (
    "the return of that day is a loss or gain that no holder had; momentum, volatility and reversal all read it"
)
SPLITS_REMEDY = (
    "nothing was changed: adjust the prices before these days by the ratio, or use the vendor's adjusted close"
)


def unadjusted_splits(moves: LogMoves) -> DataWarning | None:
    """Find lasting overnight jumps on days of ordinary trading."""
    if moves.panel.days < 2 * PRICE_SIDE_DAYS:
        return None
    found = splits(moves)
    if not found:
        return None
    plain = sum(share > 0 for _, _, share in found)
    told = first_few(
        f"{cell_text(moves.panel, day, name)} ({jump_text(share, moves.night[day, name])})"
        for day, name, share in found
    )
    seen = (
        f"{format_count(len(found), 'overnight jump')} to stay, with no news in the volume: {plain:,} at the plain ratio of a split, "
        f"{len(found) - plain:,} as at a spin-off, a special dividend or another company's row"
    )
    figures = {"jumps": len(found), "plain_ratios": plain}
    return DataWarning("unadjusted splits", seen, len(found), told, SPLITS_WHY, SPLITS_REMEDY, figures)


def splits(moves: LogMoves) -> list[tuple[int, int, float]]:
    """Return row, column and new shares for an old one (0 if the ratio is not plain) of what looks like a split."""
    with np.errstate(invalid="ignore"):
        jump = np.abs(moves.night) > np.maximum(MIN_LOG_JUMP, MIN_JUMP_IN_MOVES * moves.usual)
    usual_night = usual_size(moves.night)
    strayed = {(day, each.name) for each in strays(moves) for day in (each.first, each.end)}
    found = []
    for day, name in marked_cells(jump, MAX_JUMP_CASES):
        if (day, name) in strayed:
            continue
        share = nearest_ratio(
            moves.night[day, name], min(RATIO_TOLERANCE_NIGHTS * usual_night[name], MAX_RATIO_TOLERANCE)
        )
        if not (is_outlier_jump(moves, day, name) and is_lasting(moves, day, name)):
            continue
        if is_calm(moves, day, name, share) or is_adjustment_day(moves, day, name):
            found.append((day, name, share))
    return found


def nearest_ratio(jump: float, within: float) -> float:
    """Return the new shares for an old one whose log is nearest to the opposite of a log jump; 0 if none is near."""
    ratios = np.concatenate([SPLIT_RATIOS, 1.0 / SPLIT_RATIOS])
    gaps = np.abs(jump + np.log(ratios))
    best = int(gaps.argmin())
    return float(ratios[best]) if gaps[best] <= within else 0.0


def is_outlier_jump(moves: LogMoves, day: int, name: int) -> bool:
    """Tell whether a night's jump is far beyond the moves of the days around."""
    return bool(abs(moves.night[day, name]) > MIN_JUMP_IN_MOVES * local_size(moves.own[:, name], day, day + 1))


def is_lasting(moves: LogMoves, day: int, name: int) -> bool:
    """Tell whether the prices of the next ten days are those of the last ten after the jump."""
    after, before = (
        moves.close[day : day + PRICE_SIDE_DAYS, name],
        moves.close[max(day - PRICE_SIDE_DAYS, 0) : day, name],
    )
    after, before = after[~np.isnan(after)], before[~np.isnan(before)]
    if not after.size or not before.size:
        return False
    jump = moves.night[day, name]
    moved = float(np.median(after) - np.median(before))
    return bool(abs(moved - jump) < min(max(STAY_IN_MOVES * moves.usual[name], MIN_STAY_TOLERANCE), abs(jump) / 2))


def is_calm(moves: LogMoves, day: int, name: int, share: float) -> bool:
    """Tell whether the day traded no more than usual, counted in new shares where there are more of them."""
    before = moves.volume[max(day - VOLUME_DAYS_BEFORE, 0) : day, name]
    before = before[~np.isnan(before)]
    if not before.size or np.isnan(moves.volume[day, name]):
        return False
    usual = float(np.median(before))
    spread = float(np.clip(MAD_TO_DEVIATION * np.median(np.abs(before - usual)), *VOLUME_SPREAD_BOUNDS))
    more = float(np.log(share)) if share > 1 else 0.0
    return bool(moves.volume[day, name] - usual < more + CALM_DEVIATIONS * spread)


def is_adjustment_day(moves: LogMoves, day: int, name: int) -> bool:
    """Tell whether the adjustment that the file shows took a step on this day: it should have left no jump."""
    quoted = moves.panel.fields.get("close_raw")
    if quoted is None:
        return False
    factor = moves.close[day - 1 : day + 1, name] - np.log(quoted[day - 1 : day + 1, name])
    return bool(abs(factor[1] - factor[0]) > MIN_FACTOR_STEP)


def jump_text(share: float, jump: float) -> str:
    """Return 2:1, 3:2 or 1:10, or what was left of the price."""
    if not share:
        return f"to {np.exp(jump):.2f} of the price"
    old = next(old for old in range(1, 101) if abs(share * old - round(share * old)) < 1e-6 * old)
    return f"{round(share * old)}:{old}"
