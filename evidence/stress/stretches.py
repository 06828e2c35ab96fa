"""Historical stretches: the worst periods of a panel by its own prices, and known dates of stress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...market import Panel, measure_traded_money
from ..scoring.long_short import TRADING_DAYS_PER_YEAR
from .moves import PanelMoves

Series = NDArray[np.float64]
QUARTER_DAYS: Final = 63
MONTH_DAYS: Final = 21
MIN_STRETCH_DAYS: Final = 10
SYNTHETIC_NOTE: Final = "synthetic market"
"""A panel with a note that begins so is invented, and its dates mean nothing."""

CALENDAR: Final = (
    ("october_1987", "October 1987", "1987-10-14", "1987-12-04"),
    ("ltcm_1998", "Russia and LTCM, 1998", "1998-08-17", "1998-10-15"),
    ("quants_2007", "quant unwind, August 2007", "2007-08-06", "2007-08-31"),
    ("banks_2008", "bank failures, 2008", "2008-09-15", "2008-11-20"),
    ("flash_2010", "flash crash, May 2010", "2010-05-06", "2010-06-08"),
    ("august_2015", "August 2015", "2015-08-18", "2015-09-29"),
    ("february_2018", "volatility shock, February 2018", "2018-02-02", "2018-03-02"),
    ("march_2020", "March 2020", "2020-02-20", "2020-04-07"),
    ("small_caps_2024", "small A-shares, February 2024", "2024-01-22", "2024-02-29"),
)
"""Code, words, first and last day; the last day is some weeks after the shock, since a label takes days to end."""


@dataclass(frozen=True)
class Stretch:
    """A run of rows, `start` inclusive, `stop` exclusive, with its code and words."""

    code: str
    words: str
    start: int
    stop: int


def find_stretches(panel: Panel, moves: PanelMoves, last: int) -> list[Stretch]:
    """Find the stretches of a panel from its own prices; no factor is read.

    Parameters
    ----------
    panel, moves
        The days that may be read.
    last
        Rows from this one on have no label and are left out.

    Returns
    -------
    list of Stretch
        Empty for a panel with less than two quarters (63 days each). Else:

        - the worst drawdown of the equal-weighted market, from peak to trough within a year, or within a third of the
          days if those are fewer, since a stretch is compared with all other days;
        - its worst month (21 days);
        - the quarters in which its daily moves varied most and least;
        - with at least three sectors, the quarter whose sector leaders differ most from those of the quarter before
          (mean absolute change of a sector's return over the market's);
        - the quarter with the least dollar volume (mean over names of log amount less the name's own mean).
    """
    if last < 2 * QUARTER_DAYS:
        return []
    market = moves.market[:last, 0]
    return [
        *_find_falls(market),
        _find_highest_quarter("wildest_quarter", "most volatile quarter", _measure_quarter_deviations(market)),
        _find_highest_quarter("calmest_quarter", "calmest quarter", -_measure_quarter_deviations(market)),
        *_find_rotation(moves.by_sector[:last]),
        *_find_thinnest_quarter(panel, last),
    ]


def find_known_stretches(panel: Panel, last: int) -> list[Stretch]:
    """Return the known dates of stress with at least ten labelled days in the panel; none if it is invented."""
    if any(note.startswith(SYNTHETIC_NOTE) for note in panel.notes):
        return []
    stretches = []
    for code, words, first, end in CALENDAR:
        start = int(np.searchsorted(panel.dates, np.datetime64(first, "D"), "left"))
        stop = min(int(np.searchsorted(panel.dates, np.datetime64(end, "D"), "right")), last)
        if stop - start >= MIN_STRETCH_DAYS:
            stretches.append(Stretch(code, words, start, stop))
    return stretches


def _find_falls(market: Series) -> Iterator[Stretch]:
    """Yield the deepest fall within a year, or a third of the days if fewer, and the worst month."""
    level = np.concatenate([[0.0], np.cumsum(market)])
    longest = min(TRADING_DAYS_PER_YEAR, len(market) // 3)
    before = np.concatenate([np.full(longest, -np.inf), level])
    peaks = np.lib.stride_tricks.sliding_window_view(before, longest + 1).max(axis=1)
    trough = int(np.argmin(level - peaks))
    first = max(trough - longest, 0)
    peak = first + int(np.argmax(level[first : trough + 1]))
    if trough - peak >= MIN_STRETCH_DAYS:
        yield Stretch("worst_drawdown", "worst drawdown", peak, trough)
    start = int(np.argmin(level[MONTH_DAYS:] - level[:-MONTH_DAYS]))
    yield Stretch("worst_month", "worst month", start, start + MONTH_DAYS)


def _find_highest_quarter(code: str, words: str, height: Series) -> Stretch:
    """Return the quarter that begins on the row with the largest figure."""
    start = int(np.argmax(height))
    return Stretch(code, words, start, start + QUARTER_DAYS)


def _measure_quarter_deviations(market: Series) -> Series:
    """Return the standard deviation of each quarter's daily moves, by its first row."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(market, QUARTER_DAYS).std(axis=1))


def _find_rotation(by_sector: NDArray[np.float64]) -> Iterator[Stretch]:
    if by_sector.shape[1] < 3:
        return
    level = np.vstack([np.zeros((1, by_sector.shape[1])), np.cumsum(by_sector, axis=0)])
    gains = level[QUARTER_DAYS:] - level[:-QUARTER_DAYS]
    change = np.abs(gains[QUARTER_DAYS:] - gains[:-QUARTER_DAYS]).mean(axis=1)
    start = int(np.argmax(change)) + QUARTER_DAYS
    yield Stretch("sector_turn", "sharpest turn of sectors", start, start + QUARTER_DAYS)


def _find_thinnest_quarter(panel: Panel, last: int) -> Sequence[Stretch]:
    value = (panel.fields["amount"] if "amount" in panel.fields else measure_traded_money(panel))[:last]
    logs = np.where(panel.universe[:last] & (value > 0), np.log(np.where(value > 0, value, 1.0)), np.nan)
    present = ~np.isnan(logs)
    name_mean = np.where(present, logs, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    daily = np.where(present, logs - name_mean, 0.0).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    means = np.lib.stride_tricks.sliding_window_view(daily, QUARTER_DAYS).mean(axis=1)
    return [_find_highest_quarter("thinnest_quarter", "thinnest trading", -means)]
