"""Back-adjusted levels: prices adjusted for later splits and dividends, and volumes adjusted for later splits.

Where the file holds the quoted close, the adjustment factor is close over close_raw. Adjusted forwards it is 1 on a
symbol's first day and changes at each event. Adjusted backwards it is 1 on the last day (or never, when the adjustment
was made later), so its first value contains all later events. Prices count as adjusted backwards if the factor is not 1
on the panel's first day for most of the symbols that were listed then and are ever adjusted. (Symbols that were listed
later do not decide: they may have had a split before.) Without close_raw the price grid decides: quotes are whole
cents, and an adjusted price is one by chance in 2 of 100 cases (a hundredth of a cent either way; float32 rounding is
less below 1,000). Cents on the last days and none on the first prove a back-adjustment; cents throughout suggest
quotes; no cents at all decide nothing, and the warning says so. With n prices the share of cents by chance is 0.02 with
deviation 0.14 / sqrt(n), far from the threshold of one half.

Volume: at a split the shares traded a day rise s times unless they were adjusted. Over all split days the slope of the
log change of the median volume (20 days after over 20 before) on log s is 1 for quoted volumes and 0 for adjusted ones.
It is fitted through the origin; its error comes from the residuals. Volumes count as adjusted when the slope is nearer
to 0 and more than 5 errors below 1, on 5 splits at least. Volumes adjusted forwards, like prices that start at 1,
contain no later event.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import DataWarning, first_few
from ..panel import Panel
from .moves import Frame, LogMoves, compute_logs, format_cell

FACTOR_TOLERANCE = 1e-3
"""A price factor within this of 1 is 1: float32 and cents round."""
CENT_TOLERANCE = 0.01
"""How far from a whole cent a quote may lie, in cents."""
EDGE_DAYS = 20
LEVEL_MAJORITY = 0.5
MIN_SPLIT_LOG = np.log(1.4)
VOLUME_SIDE_DAYS = 20
MIN_SPLITS = 5
MIN_STANDARD_ERRORS = 5.0

LEVELS_WHY = (
    "a level of prices adjusted backwards (close, close*volume, close/close_raw) knows later splits and dividends"
)
LEVELS_REMEDY = (
    "use close_raw for a level, or a ratio of prices (close / delay(close, 5)); "
    "ratios of adjusted prices and returns are right"
)


def may_be_adjusted(panel: Panel) -> bool:
    """Return whether the prices may be adjusted backwards: False only if every close is the quoted one."""
    quoted = panel.fields.get("close_raw")
    return quoted is None or not np.allclose(panel.fields["close"], quoted, rtol=1e-9, atol=0.0, equal_nan=True)


def find_adjusted_levels(moves: LogMoves) -> DataWarning | None:
    """Warn that the level of prices contains later events, or may contain them."""
    panel = moves.panel
    if "close_raw" in panel.fields:
        return _compare_with_quotes(panel)
    return _judge_by_cents(panel) if panel.back_adjusted else None


def _compare_with_quotes(panel: Panel) -> DataWarning | None:
    first = measure_early_adjustment(panel)
    early = np.abs(first) > FACTOR_TOLERANCE
    if not early.any():
        return None
    off = np.abs(np.expm1(first[early]))
    observation = (
        f"close differs from close_raw: it was not the quoted price on the first day for {int(early.sum())} of "
        f"{int((~np.isnan(first)).sum())} names that were there, by {np.median(off):.0%} for the median one"
    )
    worst = np.flatnonzero(early)[np.argsort(-np.abs(first[early]), kind="stable")]
    cases = first_few(f"{panel.symbols[i]} {np.exp(first[i]):.2f} of the quote" for i in worst)
    figures = {"names": int(early.sum()), "median": float(np.median(off))}
    return DataWarning("back-adjusted levels", observation, int(early.sum()), cases, LEVELS_WHY, LEVELS_REMEDY, figures)


def measure_early_adjustment(panel: Panel) -> Frame:
    """Return the log of close over close_raw on the panel's first day `[N]`; NaN for symbols that came later.

    All zeros where most of the adjusted symbols have a factor of 1 on that day: the adjustment is anchored at the
    start.
    """
    ratio = compute_logs(panel.fields["close"]) - compute_logs(panel.fields["close_raw"])
    known = ~np.isnan(ratio)
    begins = known[:1].any(axis=0)
    if not begins.any():
        return np.full(panel.names, np.nan)
    first = np.where(begins, ratio[known.argmax(axis=0), np.arange(panel.names)], np.nan)
    spread = np.where(known, ratio, -np.inf).max(axis=0) - np.where(known, ratio, np.inf).min(axis=0)
    with np.errstate(invalid="ignore"):
        early = np.abs(first) > FACTOR_TOLERANCE
        adjusted = begins & (early | (spread > FACTOR_TOLERANCE))
    return first if early.sum() > LEVEL_MAJORITY * adjusted.sum() else np.where(begins, 0.0, np.nan)


def _judge_by_cents(panel: Panel) -> DataWarning | None:
    early, late = (
        measure_cent_share(panel.fields["close"][rows]) for rows in (slice(0, EDGE_DAYS), slice(-EDGE_DAYS, None))
    )
    figures = {"cents_first": early, "cents_last": late}
    if panel.days > 2 * EDGE_DAYS and late > 1 - LEVEL_MAJORITY > early:
        observation = (
            f"{late:.0%} of the last closes are whole cents and {early:.0%} of the first: "
            "prices were adjusted backwards"
        )
        return DataWarning("back-adjusted levels", observation, panel.names, (), LEVELS_WHY, LEVELS_REMEDY, figures)
    if min(early, late) > 1 - LEVEL_MAJORITY:
        return None
    observation = "there is no close_raw, and the prices may be adjusted backwards"
    return DataWarning("back-adjusted levels", observation, panel.names, (), LEVELS_WHY, LEVELS_REMEDY, figures)


def measure_cent_share(prices: NDArray[np.float64]) -> float:
    """Return the share of known prices that are whole cents; 0 where none is known."""
    known = prices[np.isfinite(prices)].astype(np.float64) * 100.0
    return float((np.abs(known - np.rint(known)) < CENT_TOLERANCE).mean()) if known.size else 0.0


def find_adjusted_volume(moves: LogMoves) -> DataWarning | None:
    """Warn of volumes adjusted for later splits, where the adjustment of the prices shows the splits."""
    panel = moves.panel
    if "close_raw" not in panel.fields or panel.days < 2:
        return None
    steps = find_split_steps(panel)
    changes = np.array([measure_volume_change(moves, day, name) for day, name, _ in steps])
    sizes = np.array([size for _, _, size in steps])
    known = ~np.isnan(changes) if len(steps) else np.zeros(0, np.bool_)
    if known.sum() < MIN_SPLITS:
        return None
    slope, error = fit_slope_through_origin(sizes[known], changes[known])
    if not (slope < LEVEL_MAJORITY and slope < 1.0 - MIN_STANDARD_ERRORS * error):
        return None
    observation = (
        f"at {int(known.sum())} splits the volume rises by {slope:.2f} of what it would as quoted "
        f"(error {error:.2f}): it is in shares of a later day"
    )
    cases = first_few(format_cell(panel, day, name) for day, name, _ in steps)
    why = (
        "a level of such volumes, and close_raw * volume, knows later splits: "
        "a name that will split looks much traded; "
        "so does the size that labels are freed of, where there is no cap, and the capacity of a book"
    )
    remedy = (
        "take the quoted volume, which alone sets the size right; "
        "or compare volume with its own past in formulas (volume / ts_mean(volume, 20))"
    )
    return DataWarning(
        "adjusted volume", observation, int(known.sum()), cases, why, remedy, {"slope": slope, "error": error}
    )


def find_split_steps(panel: Panel) -> list[tuple[int, int, float]]:
    """Return (row, column, log of new shares for an old one) of the splits that the adjustment shows."""
    ratio = compute_logs(panel.fields["close"]) - compute_logs(panel.fields["close_raw"])
    step = np.diff(ratio, axis=0)
    with np.errstate(invalid="ignore"):
        split = (np.abs(step) > MIN_SPLIT_LOG) & (np.abs(measure_early_adjustment(panel)) > FACTOR_TOLERANCE)
    return [(int(day) + 1, int(name), float(step[day, name])) for day, name in np.argwhere(split)]


def measure_volume_change(moves: LogMoves, day: int, name: int) -> float:
    """Return the log of the median volume of 20 days from a row on over that of the 20 before; NaN if unknown."""
    after, before = (
        moves.volume[day : day + VOLUME_SIDE_DAYS, name],
        moves.volume[max(day - VOLUME_SIDE_DAYS, 0) : day, name],
    )
    after, before = after[~np.isnan(after)], before[~np.isnan(before)]
    return float(np.median(after) - np.median(before)) if after.size and before.size else float("nan")


def fit_slope_through_origin(x: Frame, y: Frame) -> tuple[float, float]:
    """Return the least-squares slope of y on x without a constant, and its standard error."""
    weight = float(x @ x)
    slope = float(x @ y) / weight
    residual = y - slope * x
    return slope, float(np.sqrt(residual @ residual / (len(x) - 1) / weight))
