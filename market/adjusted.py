"""Which fields of a panel carry the adjustment of its prices, and the panel adjusted so that no level knows a later day.

A vendor adjusts backwards: each price is multiplied by every split and dividend that came after it, so that the level of
an early price, and its ratio to the quoted one, tell what happens later. `adjust_forwards` divides each name's prices by its first
one: the level of a day then rests on what happened until that day, and ratios of prices stay what they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .panel import PRICE_FIELDS, Panel, simple_returns
from .quality.levels import LEVEL_MAJORITY, MIN_STANDARD_ERRORS, adjusted_volume, may_be_adjusted, slope_through_origin
from .quality.moves import LogMoves, logarithm

__all__ = [
    "SHARE_COUNT_FIELDS",
    "adjust_forwards",
    "adjusted_fields",
    "has_adjustment",
    "hides_volumes",
    "reset_volume_levels",
    "round_digits",
]

DOUBLE_DIGITS, SINGLE_DIGITS = 8, 6
"""Significant digits of a price that was adjusted anew, by its width: the last bits of a product tell its factors.

Values that are the same but for the rounding of one product fall on two sides of a rounding to 8 digits once in 100 million.
"""
FIRST_PRICE = 100.0
"""A name's first close where no quoted one is known."""
FIRST_VOLUME = 1e6
"""A name's first known volume, where the level of volumes may know later splits."""
SHARE_COUNT_FIELDS = ("amount", "volume")
"""Fields that count shares, or are made of such a count."""
UNKNOWN_VOLUMES = "unknown"
"""Volumes of a panel whose vendor adjusts prices, of which nobody says whether they are adjusted too."""
MAX_QUOTE_GAP = 1e-7
"""A close within this share of the quoted one is not adjusted."""

MAX_ADJUSTED_DISTANCE = 0.03
"""Mean log distance within which a price belongs to the adjusted ones, where no quoted close tells."""
MIN_FACTOR_SQUARES = 1e-12
"""Sum of squared logs below which a factor changes nothing that a price could move with: it is rounding."""


def adjusted_fields(panel: Panel) -> list[str]:
    """Return the fields that carry the adjustment: the prices, and vwap and amount if they are made of them."""
    fields = panel.fields
    per_share: dict[str, NDArray[np.float64]] = {name: fields[name] for name in ("vwap",) if name in fields}
    if "amount" in fields:
        volume = np.where(fields["volume"] > 0, fields["volume"], np.nan)
        per_share["amount"] = fields["amount"] / volume
    return [*PRICE_FIELDS, *(name for name, price in per_share.items() if is_adjusted(price, panel))]


def is_adjusted(price: NDArray[np.float64], panel: Panel) -> bool:
    """Tell whether a price per share lies at least as near to the adjusted close as to the quoted one."""
    far = distance(price, panel.fields["close"])
    return far <= (distance(price, panel.fields["close_raw"]) if "close_raw" in panel.fields else MAX_ADJUSTED_DISTANCE)


def has_adjustment(price: NDArray[np.float64], quoted: NDArray[np.float64], factor: NDArray[np.float64]) -> bool | None:
    """Tell whether a price per share moves with an adjustment, whatever each name's constant; None if it cannot be told.

    The log of price over quoted close, less its mean over each name's days, is regressed on that of the factor: the slope
    is 1 for a price that bears it, 0 for one as quoted. Later events multiply all days of a name by one number, so that
    the answer is the same before and after them.

    Parameters
    ----------
    price, quoted, factor
        ``[T, N]``: what is asked about, the quoted close, and the adjustment of what happened until the last row.
    """
    moved, expected = logarithm(price) - logarithm(quoted), logarithm(factor)
    known = np.isfinite(moved) & np.isfinite(expected)
    days = np.maximum(known.sum(axis=0), 1)
    y, x = ((values - np.where(known, values, 0.0).sum(axis=0) / days)[known] for values in (moved, expected))
    if float(x @ x) < MIN_FACTOR_SQUARES:
        return None
    slope, error = slope_through_origin(x, y)
    if slope < LEVEL_MAJORITY and slope < 1.0 - MIN_STANDARD_ERRORS * error:
        return False
    return True if slope > LEVEL_MAJORITY and slope > MIN_STANDARD_ERRORS * error else None


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the mean absolute log ratio of two prices; infinite where they share no cell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.abs(np.log(a / b))
    known = gaps[np.isfinite(gaps)]
    return float(known.mean()) if known.size else float("inf")


def adjust_forwards(panel: Panel, judged: int | None = None) -> Panel:
    """Return the panel with prices adjusted forwards, so that no row's level knows a later row.

    Each name's first close is the quoted one, or 100 where that is not known. Two panels that differ only after some row
    give the same bytes up to it, whatever later splits and dividends their vendors adjusted for. Volumes stay as they are.

    Parameters
    ----------
    panel
        T days by N names. One that is adjusted forwards already is returned as it is. Where every close is the quoted one
        the vendor may adjust, and had nothing to adjust for until now: nothing but the rounding moves, and its volumes are
        not known to be quoted unless somebody says so.
    judged
        Rows, from the first on, by which it is judged which fields carry the adjustment: later ones would tell of
        themselves. None: all.

    Returns
    -------
    Panel
        `returns` are those of the new closes. `back_adjusted` is False where every close is the quoted one on the rows by
        which it is judged. Volumes of which nothing was said are "adjusted" where the splits of those rows show it, else
        `UNKNOWN_VOLUMES`.
    """
    quoted = panel.fields.get("close_raw")
    quotes = quoted is not None and not may_be_adjusted(panel)
    if not panel.back_adjusted and (not quotes or panel.volumes == "quoted"):
        return panel
    rows = panel.days if judged is None else judged
    carrying = adjusted_fields(panel.rows(0, rows))
    scale = _first_price(panel) / _first_known(panel.fields["close"])
    fields = dict(panel.fields)
    for name, values in panel.fields.items():
        if name in (*PRICE_FIELDS, "vwap"):
            fields[name] = _round_to_width(values * scale if name in carrying else values, values.dtype)
        elif name in carrying:  # an amount is rounded once, when its level is hidden
            fields[name] = (values * scale).astype(values.dtype)
        elif name.startswith("adj"):
            fields[name] = _round_to_width(values / _first_known(values), values.dtype)
    fields["returns"] = simple_returns(fields["close"])
    fields["returns"][:1] = round_digits(panel.fields["returns"][:1], DOUBLE_DIGITS)
    moved = quoted is None or not np.allclose(
        fields["close"][:rows], quoted[:rows], rtol=MAX_QUOTE_GAP, atol=0.0, equal_nan=True
    )
    volumes = panel.volumes or ("adjusted" if adjusted_volume(LogMoves(panel.rows(0, rows))) else UNKNOWN_VOLUMES)
    return replace(panel, fields=fields, back_adjusted=panel.back_adjusted and moved, volumes=volumes)


def hides_volumes(panel: Panel) -> bool:
    """Tell whether the level of volumes may know later splits."""
    return panel.volumes in ("adjusted", UNKNOWN_VOLUMES)


def reset_volume_levels(panel: Panel) -> Panel:
    """Return the panel with each name's volume and amount beginning at 1,000,000, where their level may know later splits."""
    if not hides_volumes(panel):
        return panel
    told = {name: panel.fields[name] for name in SHARE_COUNT_FIELDS if name in panel.fields}
    with np.errstate(invalid="ignore", divide="ignore"):
        firsts = {
            name: FIRST_VOLUME / _first_known(np.where(values > 0, values, np.nan)) for name, values in told.items()
        }
    fields = {name: _round_to_width(values * firsts[name], values.dtype) for name, values in told.items()}
    return replace(panel, fields={**panel.fields, **fields})


def round_digits(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Return values rounded to significant digits, NaN kept; each is the double that is nearest to its decimal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(values)))
        up, down = 10.0 ** np.clip(places, 0, 22), 10.0 ** np.clip(-places, 0, 22)
        found = np.round(values * up / down) / up * down
    return np.asarray(np.where(np.isfinite(places), found, values), np.float64)


def _first_price(panel: Panel) -> NDArray[np.float64]:
    """Return the quoted close ``[N]`` on the day of each name's first close, 100 where it is not known."""
    quoted, close = panel.fields.get("close_raw"), panel.fields["close"]
    if quoted is None:
        return np.full(panel.names, FIRST_PRICE)
    found = quoted[np.isfinite(close).argmax(axis=0), np.arange(panel.names)]
    return np.where(found > 0, found, FIRST_PRICE).astype(np.float64)


def _first_known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first known value of each name ``[N]``, NaN without any."""
    return np.asarray(values[np.isfinite(values).argmax(axis=0), np.arange(values.shape[1])], np.float64)


def _round_to_width(values: NDArray[np.float64], width: np.dtype[np.float64]) -> NDArray[np.float64]:
    return round_digits(values, SINGLE_DIGITS if width == np.float32 else DOUBLE_DIGITS).astype(width)
