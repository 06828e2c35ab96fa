"""Forward adjustment: which fields carry the adjustment of prices, and a panel whose levels contain no later day.

A vendor adjusts backwards: each price is multiplied by every split and dividend after it, so the level of an early
price, and its ratio to the quoted one, reveal later events. `adjust_forwards` divides the prices of each symbol by its
first one. The level of a day then depends on earlier days only, and ratios of prices are unchanged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .panel import PRICE_FIELDS, Panel, compute_simple_returns
from .quality.back_adjustment import (
    LEVEL_MAJORITY,
    MIN_STANDARD_ERRORS,
    find_adjusted_volume,
    fit_slope_through_origin,
    may_be_adjusted,
)
from .quality.moves import LogMoves, compute_logs

DOUBLE_DIGITS, SINGLE_DIGITS = 8, 6
"""Significant digits of a readjusted price in float64 and in float32: the last bits of a product reveal its factors.

Two values that differ by the rounding of one product round to different 8 digits once in 100 million.
"""
FIRST_PRICE = 100.0
"""First close of a symbol without a quoted one."""
FIRST_VOLUME = 1e6
"""First known volume of a symbol, where the level of volumes may contain later splits."""
SHARE_COUNT_FIELDS = ("amount", "volume")
"""Fields that count shares, or are computed from such a count."""
UNKNOWN_VOLUMES = "unknown"
"""`Panel.volumes` where the vendor adjusts prices and it is not stated whether volumes are adjusted too."""
MAX_QUOTE_GAP = 1e-7
"""Relative gap to the quoted close up to which a close counts as not adjusted."""

MAX_ADJUSTED_DISTANCE = 0.03
"""Mean log distance to the adjusted close up to which a price counts as adjusted, where there is no quoted close."""
MIN_FACTOR_SQUARES = 1e-12
"""Sum of squared logs below which a factor is rounding only, so that no price can be tested against it."""


def find_adjusted_fields(panel: Panel) -> list[str]:
    """Return the fields that carry the adjustment: the prices, and vwap and amount if they are computed from them."""
    fields = panel.fields
    per_share: dict[str, NDArray[np.float64]] = {name: fields[name] for name in ("vwap",) if name in fields}
    if "amount" in fields:
        volume = np.where(fields["volume"] > 0, fields["volume"], np.nan)
        per_share["amount"] = fields["amount"] / volume
    return [*PRICE_FIELDS, *(name for name, price in per_share.items() if is_adjusted(price, panel))]


def is_adjusted(price: NDArray[np.float64], panel: Panel) -> bool:
    """Return whether a price per share is at least as near to the adjusted close as to the quoted one."""
    to_adjusted = measure_log_distance(price, panel.fields["close"])
    return to_adjusted <= (
        measure_log_distance(price, panel.fields["close_raw"]) if "close_raw" in panel.fields else MAX_ADJUSTED_DISTANCE
    )


def has_adjustment(price: NDArray[np.float64], quoted: NDArray[np.float64], factor: NDArray[np.float64]) -> bool | None:
    """Return whether a price per share moves with an adjustment, up to a constant per symbol; None if undecidable.

    The log of price over quoted close, less its mean over the days of each symbol, is regressed on the log of the
    factor: the slope is 1 for an adjusted price and 0 for a quoted one. Later events multiply all days of a symbol by
    one number, so they do not change the answer.

    Parameters
    ----------
    price, quoted, factor
        ``[T, N]``: the price in question, the quoted close, and the adjustment factor of events until the last row.
    """
    moved, expected = compute_logs(price) - compute_logs(quoted), compute_logs(factor)
    known = np.isfinite(moved) & np.isfinite(expected)
    days = np.maximum(known.sum(axis=0), 1)
    y, x = ((values - np.where(known, values, 0.0).sum(axis=0) / days)[known] for values in (moved, expected))
    if float(x @ x) < MIN_FACTOR_SQUARES:
        return None
    slope, error = fit_slope_through_origin(x, y)
    if slope < LEVEL_MAJORITY and slope < 1.0 - MIN_STANDARD_ERRORS * error:
        return False
    return True if slope > LEVEL_MAJORITY and slope > MIN_STANDARD_ERRORS * error else None


def measure_log_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the mean absolute log ratio of two prices; infinite where they share no cell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.abs(np.log(a / b))
    known = gaps[np.isfinite(gaps)]
    return float(known.mean()) if known.size else float("inf")


def adjust_forwards(panel: Panel, judged: int | None = None) -> Panel:
    """Return the panel with prices adjusted forwards, so that the level of a row contains no later row.

    The first close of each symbol is the quoted one, or 100 where that is unknown. Two panels that differ only after
    some row give the same bytes up to it, whatever later splits and dividends their vendors adjusted for. Volumes are
    unchanged.

    Parameters
    ----------
    panel
        T days by N symbols. A panel that is adjusted forwards already is returned unchanged. Where every close is the
        quoted one, the vendor may adjust and have had nothing to adjust for: then only the rounding changes, and the
        volumes count as quoted only where the panel says so.
    judged
        Number of rows, from the first on, that decide which fields carry the adjustment: later rows would reveal
        themselves. None: all.

    Returns
    -------
    Panel
        `returns` are those of the new closes. `back_adjusted` is False where every close is the quoted one on the
        judged rows. Volumes of unstated kind are "adjusted" where the splits of the judged rows show it, else
        `UNKNOWN_VOLUMES`.
    """
    quoted = panel.fields.get("close_raw")
    all_quoted = quoted is not None and not may_be_adjusted(panel)
    if not panel.back_adjusted and (not all_quoted or panel.volumes in ("quoted", "forward")):
        return panel
    rows = panel.days if judged is None else judged
    carrying = find_adjusted_fields(panel.rows(0, rows))
    scale = _find_first_quote(panel) / _find_first_known(panel.fields["close"])
    fields = dict(panel.fields)
    for name, values in panel.fields.items():
        if name in (*PRICE_FIELDS, "vwap"):
            fields[name] = _round_to_width(values * scale if name in carrying else values, values.dtype)
        elif name in carrying:  # an amount is rounded once, when its level is reset
            fields[name] = (values * scale).astype(values.dtype)
        elif name.startswith("adj"):
            fields[name] = _round_to_width(values / _find_first_known(values), values.dtype)
    fields["returns"] = compute_simple_returns(fields["close"])
    fields["returns"][:1] = round_digits(panel.fields["returns"][:1], DOUBLE_DIGITS)
    changed = quoted is None or not np.allclose(
        fields["close"][:rows], quoted[:rows], rtol=MAX_QUOTE_GAP, atol=0.0, equal_nan=True
    )
    volumes = panel.volumes or ("adjusted" if find_adjusted_volume(LogMoves(panel.rows(0, rows))) else UNKNOWN_VOLUMES)
    return replace(panel, fields=fields, back_adjusted=panel.back_adjusted and changed, volumes=volumes)


def has_unsafe_volume_levels(panel: Panel) -> bool:
    """Return whether the level of volumes may contain later splits."""
    return panel.volumes in ("adjusted", UNKNOWN_VOLUMES)


def reset_volume_levels(panel: Panel) -> Panel:
    """Return the panel with volumes and amounts that start at 1,000,000, if they may contain later splits."""
    if not has_unsafe_volume_levels(panel):
        return panel
    counts = {name: panel.fields[name] for name in SHARE_COUNT_FIELDS if name in panel.fields}
    with np.errstate(invalid="ignore", divide="ignore"):
        firsts = {
            name: FIRST_VOLUME / _find_first_known(np.where(values > 0, values, np.nan))
            for name, values in counts.items()
        }
    fields = {name: _round_to_width(values * firsts[name], values.dtype) for name, values in counts.items()}
    return replace(panel, fields={**panel.fields, **fields})


def round_digits(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Return values rounded to significant digits, each the double nearest to its decimal; NaN stays NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(values)))
        up, down = 10.0 ** np.clip(places, 0, 22), 10.0 ** np.clip(-places, 0, 22)
        rounded = np.round(values * up / down) / up * down
    return np.asarray(np.where(np.isfinite(places), rounded, values), np.float64)


def _find_first_quote(panel: Panel) -> NDArray[np.float64]:
    """Return the quoted close ``[N]`` on the day of each symbol's first close, 100 where it is unknown."""
    quoted, close = panel.fields.get("close_raw"), panel.fields["close"]
    if quoted is None:
        return np.full(panel.names, FIRST_PRICE)
    first = quoted[np.isfinite(close).argmax(axis=0), np.arange(panel.names)]
    return np.where(first > 0, first, FIRST_PRICE).astype(np.float64)


def _find_first_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first known value of each symbol ``[N]``, NaN without any."""
    return np.asarray(values[np.isfinite(values).argmax(axis=0), np.arange(values.shape[1])], np.float64)


def _round_to_width(values: NDArray[np.float64], width: np.dtype[np.float64]) -> NDArray[np.float64]:
    return round_digits(values, SINGLE_DIGITS if width == np.float32 else DOUBLE_DIGITS).astype(width)
