"""Jumps of a price: bad ticks, which return, and unadjusted splits, which stay.

**Bad ticks** are closes at which nobody traded (a wrong print, a wrong decimal point, another symbol's row). A close
that leaves by a jump and comes back by another one, opposite and within a quarter of its size. Each jump is beyond 15
usual moves if it is back the next day, and beyond 20 and 35 % if it takes up to 20 days. The usual move is measured
twice: over the symbol's whole life, and over the twenty days around, so that a wild month is not taken for an error.
Were daily moves Student-t with 3 degrees of freedom (fatter than those of shares), a day beyond 15 such units had a
chance of 4e-4; two in a row, opposite and of one size, 2e-8, that is 0.05 cases in 2,520 days of 1,000 symbols; for the
longer stretches (2e-4, and 19 days to come back on) it is 0.2.

**Unadjusted splits**: a night takes the price to another level, where it stays, on a day of ordinary trading. A jump of
more than 35 % and of eight usual moves (of the symbol's life, and of the twenty days around) comes with news, and news
with many times the usual volume. A split, a spin-off, a special dividend or another company's row comes with none: the
volume of the day is within three robust deviations above the median of the twenty days before, counted in new shares
where the night's ratio is that of a split. That the price is at a new level is tested on ten days either side (the
medians are apart by the jump, within ten usual moves, four standard deviations of such a difference, or a fifth of the
price). A night within four usual nights of 3:2, 2:1, ... 100:1 or an inverse is called by that ratio. Volume is not
tested where the file's own adjustment took a step on that very day: it should have left no jump, and was applied twice,
too much, or on the wrong day. News takes a symbol that far in a night about once in 30 years, and leaves its volume
ordinary in fewer than 2 of 100 cases: about one false alarm in 1,500 years of a symbol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataWarning, first_few, format_count
from .moves import MAD_TO_DEVIATION, LogMoves, compute_local_size, compute_usual_size, format_cell, list_marked_cells

MIN_TICK_IN_MOVES, MIN_STRETCH_IN_MOVES = 15.0, 20.0
MIN_STRETCH_LOG = np.log(1.35)
RECOVERY_TOLERANCE = 0.25
MAX_STRETCH_DAYS = 20
MAX_TICK_CASES = 50_000
DECIMAL_LOGS = (np.log(10.0), np.log(100.0))
DECIMAL_TOLERANCE = 0.25
TICKS_WHY = (
    "a reversal factor earns the way back, which nobody could have traded, and a volatility is mostly these days"
)
TICKS_REMEDY = "nothing was changed: correct or empty these cells at the source, or check them against a second one"
SPLIT_RATIOS = np.array([1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 100])
"""New shares for an old one; their inverses are consolidations.

5:4 and 4:3 are left out: an ordinary bad night moves a price as far.
"""
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
"""Bounds of the standard deviation of the log volume, which is estimated on twenty days."""
MAX_JUMP_CASES = 5000
SPLITS_WHY = (
    "the return of that day is a loss or gain that no holder had; momentum, volatility and reversal all read it"
)
SPLITS_REMEDY = (
    "nothing was changed: adjust the prices before these days by the ratio, or use the vendor's adjusted close"
)


@dataclass(frozen=True)
class Stray:
    """Closes of one symbol (column `name`) that left by `jump` (log) on row `first` and returned on row `end`."""

    name: int
    first: int
    end: int
    jump: float

    @property
    def kind(self) -> str:
        """Return the kind of error in words: a decimal point, several days."""
        decimal = min(abs(abs(self.jump) - size) for size in DECIMAL_LOGS) < DECIMAL_TOLERANCE
        days = f"{self.end - self.first} days" if self.end - self.first > 1 else ""
        return ", ".join(part for part in ("decimal point" if decimal else "", days) if part)


def find_bad_ticks(moves: LogMoves) -> DataWarning | None:
    """Warn of closes that jumped away and back."""
    panel = moves.panel
    if panel.days < 4:
        return None
    strays = find_strays(moves)
    if not strays:
        return None
    cases = first_few(
        format_cell(panel, stray.first, stray.name) + (f" ({stray.kind})" if stray.kind else "") for stray in strays
    )
    cells = sum(stray.end - stray.first for stray in strays)
    decimals = sum("decimal" in stray.kind for stray in strays)
    observation = (
        f"{format_count(len(strays), 'close')} left by more than {MIN_TICK_IN_MOVES:g} usual moves, "
        f"back within {MAX_STRETCH_DAYS} days ({cells:,} cells; {decimals:,} by a factor near 10 or 100)"
    )
    figures = {"strays": len(strays), "cells": cells, "decimal_points": decimals}
    return DataWarning("bad ticks", observation, len(strays), cases, TICKS_WHY, TICKS_REMEDY, figures)


def find_strays(moves: LogMoves) -> list[Stray]:
    """Return all closes that jumped away and back, by day and then by symbol."""
    with np.errstate(invalid="ignore"):
        far = np.abs(moves.own) > MIN_TICK_IN_MOVES * moves.usual
    strays: list[Stray] = []
    before: dict[int, int] = {}
    for name, day in np.argwhere(far.T)[:MAX_TICK_CASES].tolist():  # by symbol, then by day
        first = before.pop(name, None)
        if first is not None and is_stray(moves, name, first, day):
            strays.append(Stray(name, first, day, float(moves.own[first, name])))
        else:
            before[name] = day
    return sorted(strays, key=lambda stray: (stray.first, stray.name))


def is_stray(moves: LogMoves, name: int, first: int, end: int) -> bool:
    """Return whether the jump of one row is reversed on another, and both stand out from the days around."""
    away, back = moves.own[first, name], moves.own[end, name]
    short = end == first + 1
    if end - first > MAX_STRETCH_DAYS or not abs(away + back) < RECOVERY_TOLERANCE * abs(away):
        return False
    smallest = min(abs(away), abs(back))
    usual = max(moves.usual[name], compute_local_size(moves.own[:, name], first, end + 1))
    return (
        bool(smallest > MIN_TICK_IN_MOVES * usual)
        if short
        else bool(smallest > max(MIN_STRETCH_IN_MOVES * usual, MIN_STRETCH_LOG))
    )


def find_unadjusted_splits(moves: LogMoves) -> DataWarning | None:
    """Warn of lasting overnight jumps on days of ordinary trading."""
    if moves.panel.days < 2 * PRICE_SIDE_DAYS:
        return None
    jumps = find_splits(moves)
    if not jumps:
        return None
    plain = sum(share > 0 for _, _, share in jumps)
    cases = first_few(
        f"{format_cell(moves.panel, day, name)} ({format_jump(share, moves.night[day, name])})"
        for day, name, share in jumps
    )
    observation = (
        f"{format_count(len(jumps), 'overnight jump')} to stay, with no news in the volume: "
        f"{plain:,} at the plain ratio of a split, "
        f"{len(jumps) - plain:,} as at a spin-off, a special dividend or another company's row"
    )
    figures = {"jumps": len(jumps), "plain_ratios": plain}
    return DataWarning("unadjusted splits", observation, len(jumps), cases, SPLITS_WHY, SPLITS_REMEDY, figures)


def find_splits(moves: LogMoves) -> list[tuple[int, int, float]]:
    """Return row, column and new shares for an old one (0: not a plain ratio) of each jump that looks like a split."""
    with np.errstate(invalid="ignore"):
        jump = np.abs(moves.night) > np.maximum(MIN_LOG_JUMP, MIN_JUMP_IN_MOVES * moves.usual)
    usual_night = compute_usual_size(moves.night)
    stray_cells = {(day, stray.name) for stray in find_strays(moves) for day in (stray.first, stray.end)}
    jumps = []
    for day, name in list_marked_cells(jump, MAX_JUMP_CASES):
        if (day, name) in stray_cells:
            continue
        share = find_nearest_ratio(
            moves.night[day, name], min(RATIO_TOLERANCE_NIGHTS * usual_night[name], MAX_RATIO_TOLERANCE)
        )
        if not (is_outlier_jump(moves, day, name) and is_lasting(moves, day, name)):
            continue
        if is_calm(moves, day, name, share) or is_adjustment_day(moves, day, name):
            jumps.append((day, name, share))
    return jumps


def find_nearest_ratio(jump: float, within: float) -> float:
    """Return the split ratio (new shares for an old one) nearest to a log jump; 0 if none is within reach."""
    ratios = np.concatenate([SPLIT_RATIOS, 1.0 / SPLIT_RATIOS])
    gaps = np.abs(jump + np.log(ratios))
    best = int(gaps.argmin())
    return float(ratios[best]) if gaps[best] <= within else 0.0


def is_outlier_jump(moves: LogMoves, day: int, name: int) -> bool:
    """Return whether a night's jump is far beyond the moves of the days around."""
    return bool(abs(moves.night[day, name]) > MIN_JUMP_IN_MOVES * compute_local_size(moves.own[:, name], day, day + 1))


def is_lasting(moves: LogMoves, day: int, name: int) -> bool:
    """Return whether the median price of the next ten days differs from that of the last ten by the jump."""
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
    """Return whether the day traded no more than usual, counted in new shares after a split."""
    before = moves.volume[max(day - VOLUME_DAYS_BEFORE, 0) : day, name]
    before = before[~np.isnan(before)]
    if not before.size or np.isnan(moves.volume[day, name]):
        return False
    usual = float(np.median(before))
    spread = float(np.clip(MAD_TO_DEVIATION * np.median(np.abs(before - usual)), *VOLUME_SPREAD_BOUNDS))
    more = float(np.log(share)) if share > 1 else 0.0
    return bool(moves.volume[day, name] - usual < more + CALM_DEVIATIONS * spread)


def is_adjustment_day(moves: LogMoves, day: int, name: int) -> bool:
    """Return whether the file's own adjustment changes on this day: then it should have left no jump."""
    quoted = moves.panel.fields.get("close_raw")
    if quoted is None:
        return False
    factor = moves.close[day - 1 : day + 1, name] - np.log(quoted[day - 1 : day + 1, name])
    return bool(abs(factor[1] - factor[0]) > MIN_FACTOR_STEP)


def format_jump(share: float, jump: float) -> str:
    """Return a split ratio as 2:1, 3:2 or 1:10; without one the price as a share of the old."""
    if not share:
        return f"to {np.exp(jump):.2f} of the price"
    old = next(old for old in range(1, 101) if abs(share * old - round(share * old)) < 1e-6 * old)
    return f"{round(share * old)}:{old}"
