"""Splits and dividends: what turns a quoted price into one that a return may be taken of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import Finding, MarketError
from .files.cells import read_days, read_numbers, read_words
from .files.findings import Audit
from .files.table import Table, missing_columns, read_table

__all__ = ["Actions", "read_actions"]

Frame = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Actions:
    """What companies did to their shares, one row for each name and day.

    Attributes
    ----------
    days : NDArray[np.datetime64]
        ``[A]``: ex-days, the first on which a share no longer carries what is paid or split.
    symbols : tuple of str
        ``A`` names.
    dividends : NDArray[np.float64]
        ``[A]``: paid for a share as it was the day before, in the currency of the quotes; 0 for none.
    splits : NDArray[np.float64]
        ``[A]``: new shares for an old one; 1 for none.
    """

    days: NDArray[np.datetime64]
    symbols: tuple[str, ...]
    dividends: Frame
    splits: Frame

    def factors(self, dates: NDArray[np.datetime64], symbols: Sequence[str], quoted: Frame) -> tuple[Frame, Frame]:
        """Return what prices and volumes as quoted are multiplied by to stand in shares of the last date, both ``[T, N]``.

        A price is divided by every later split and less by every later dividend, as a share of the close before it. What
        happened after the last date is not in them.

        Parameters
        ----------
        dates
            ``[T]``, rising.
        symbols
            ``N``; actions of other names are passed over.
        quoted : NDArray[np.float64]
            ``[T, N]``: closes as quoted, NaN where there is none. A dividend without a close before it changes nothing.

        Raises
        ------
        MarketError
            A dividend is at least the close before it, which leaves no price above 0.
        """
        prices, volumes = np.ones((2, len(dates), len(symbols)))
        column = {symbol: place for place, symbol in enumerate(symbols)}
        rows = np.searchsorted(dates, self.days)  # the first day that trades without it
        for at in np.argsort(self.days, kind="stable"):
            place, row = column.get(self.symbols[at]), int(rows[at])
            if place is None or row >= len(dates):
                continue
            paid = self._dividend_share(int(at), quoted[:row, place])
            prices[:row, place] *= (1.0 - paid) / self.splits[at]
            volumes[:row, place] *= self.splits[at]
        return prices, volumes

    def _dividend_share(self, at: int, closes: Frame) -> float:
        """Return a dividend as a share of the last of the closes before it."""
        paid = float(self.dividends[at])
        before = _last_close(closes) if paid else float("inf")
        if paid >= before:
            raise MarketError(
                f"{self.symbols[at]} on {self.days[at]}: a dividend of {paid:g} after a close of {before:g} leaves no price",
                field="market.actions", got=paid, allowed=f"less than {before:g}",
                hint="Give dividends for a share as it was the day before, in the currency of the quotes.",
            )  # fmt: skip
        return paid / before


def read_actions(path: Path) -> Actions:
    """Read a Parquet or CSV file with date, symbol, dividend and split; an empty cell is none.

    Raises
    ------
    PanelError
        With every finding in the file.
    """
    table = read_table(path)
    audit = Audit(table.row_numbers)
    audit.add(*table.clashes, *missing_columns(table, ("date", "symbol")))
    audit.add_broken(table.broken)
    if not {"dividend", "split"} & {*table.columns}:
        audit.add(Finding(0, "split", "the file has neither dividends nor splits"))
    audit.refuse(str(path))
    days, (codes, words) = read_days(table, "date", audit), read_words(table, "symbol", audit)
    dividends, splits = _numbers(table, "dividend", 0.0, audit), _numbers(table, "split", 1.0, audit)
    audit.add_rows("dividend", np.flatnonzero(~(dividends >= 0)), lambda row: f"{dividends[row]:g}: 0 or more is paid")
    audit.add_rows("split", np.flatnonzero(~(splits > 0)), lambda row: f"{splits[row]:g}: new shares are above 0")
    audit.refuse(str(path))
    return Actions(days.astype("datetime64[D]"), tuple(words[code] for code in codes), dividends, splits)


def _numbers(table: Table, name: str, none: float, audit: Audit) -> Frame:
    if name not in table.columns:
        return np.full(table.rows, none)
    values = read_numbers(table, name, audit)
    return np.where(np.isnan(values), none, values)


def _last_close(closes: Frame) -> float:
    """Return the last known close; infinite where there is none."""
    known = closes[~np.isnan(closes)]
    return float(known[-1]) if known.size else float("inf")
