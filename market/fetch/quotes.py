"""A vendor's prices in shares of today as quotes of the day, splits and dividends.

Yahoo divides every price, dividend and volume by the splits after it, and `Adj Close` is adjusted for dividends too.
The quote of a day is the price times every later split, the traded volume the volume divided by them, and a dividend is
paid for a share as it was the day before, so the split of its own day counts too. Written are

- open, high, low, close adjusted for splits and dividends (times Adj Close over Close), for returns;
- close_raw, the quoted close, for levels, rounded to the seven digits that the vendor keeps;
- volume, in shares as traded;
- a second table of dividends and splits, so that prices are known as of any day.

The day of the download is left out: its session may not be over, so its close and volume may be those of an hour. Its
splits count, because the vendor has divided the earlier days by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..adjusted import round_digits
from ..errors import MarketError
from ..forms.names import plain_name
from ..panel import PRICE_FIELDS, REQUIRED_FIELDS

if TYPE_CHECKING:
    import pandas as pd

VENDOR_DIGITS = 7
"""Digits of a price that survive in single precision."""
NEEDED = (*REQUIRED_FIELDS, "adj_close", "dividend", "split")


@dataclass(frozen=True, eq=False)
class FetchedPrices:
    """Prices of a vendor, ready to be written.

    Attributes
    ----------
    prices : pyarrow.Table
        date, symbol, open, high, low, close (adjusted), volume (as traded), close_raw (quoted).
    actions : pyarrow.Table
        date, symbol, dividend, split.
    symbols : tuple of str
        The symbols with prices.
    absent : tuple of str
        The tickers without any.
    cut : tuple of datetime.date
        Days of the vendor that are left out, since their session may not be over.
    volumes : str
        What the volumes are, as in `market.volumes`: always "quoted", as traded that day. The splits are undone in them
        as they are in close_raw, and are in `actions`.
    """

    prices: pa.Table
    actions: pa.Table
    symbols: tuple[str, ...]
    absent: tuple[str, ...] = field(default=())
    cut: tuple[date, ...] = ()
    volumes: str = "quoted"


def make_quotes(frame: pd.DataFrame, today: date | None = None) -> FetchedPrices:
    """Return quotes, adjusted prices and actions of a vendor's frame (`PriceSource.download`).

    Parameters
    ----------
    frame
        The vendor's frame.
    today
        The day of the download in UTC, by whose end every exchange has closed. It and later days are left out.

    Raises
    ------
    MarketError
        A field is missing, or no ticker has a price.
    """
    arrays, symbols = _split_fields(frame)
    days = frame.index.to_numpy().astype("datetime64[D]")
    splits = np.where(arrays["split"] > 0, arrays["split"], 1.0)
    from_here = np.cumprod(splits[::-1], axis=0)[::-1]  # the splits of a day and later
    later = from_here / splits
    factor = arrays["adj_close"] / arrays["close"]
    fields = {name: arrays[name] * factor for name in PRICE_FIELDS}
    fields["volume"] = round_digits(arrays["volume"] / later, VENDOR_DIGITS)
    fields["close_raw"] = round_digits(arrays["close"] * later, VENDOR_DIGITS)
    paid = np.nan_to_num(arrays["dividend"]) + np.nan_to_num(arrays.get("capital_gain", np.zeros_like(splits)))
    dividends = round_digits(paid * from_here, VENDOR_DIGITS)
    over = np.ones(len(days), np.bool_) if today is None else days < np.datetime64(today, "D")
    present = np.isfinite(fields["close"]) & over[:, None]
    kept = present.any(axis=0)
    if not kept.any():
        raise MarketError("no ticker has a price", field="TICKERS", got=", ".join(symbols[:8]))
    acted = ((dividends > 0) | (splits != 1.0)) & kept & over[:, None]
    return FetchedPrices(
        _stack(days, symbols, present, fields),
        _stack(days, symbols, acted, {"dividend": dividends, "split": splits}),
        tuple(symbols[place] for place in np.flatnonzero(kept).tolist()),
        tuple(symbols[place] for place in np.flatnonzero(~kept).tolist()),
        tuple(days[~over].tolist()),
    )


def _split_fields(frame: pd.DataFrame) -> tuple[dict[str, NDArray[np.float64]], list[str]]:
    """Return each field `[T, N]` and the tickers."""
    level = 0 if any(plain_name(str(name)) == "close" for name in frame.columns.get_level_values(0)) else 1
    symbols = sorted({str(symbol) for symbol in frame.columns.get_level_values(1 - level)})
    place = {symbol: column for column, symbol in enumerate(symbols)}
    arrays: dict[str, NDArray[np.float64]] = {}
    for number, pair in enumerate(frame.columns):
        name = plain_name(str(pair[level]))
        values = arrays.setdefault(name, np.full((len(frame), len(symbols)), np.nan))
        values[:, place[str(pair[1 - level])]] = frame.iloc[:, number].to_numpy(dtype=np.float64)
    absent = [name for name in NEEDED if name not in arrays]
    if absent:
        raise MarketError("the vendor's frame lacks a field", field=absent[0], got=sorted(arrays), allowed=NEEDED)
    return arrays, symbols


def _stack(
    days: NDArray[np.datetime64],
    symbols: list[str],
    there: NDArray[np.bool_],
    fields: Mapping[str, NDArray[np.float64]],
) -> pa.Table:
    """Return one row for each cell that is there."""
    day, column = np.nonzero(there)
    words = pa.DictionaryArray.from_arrays(pa.array(column.astype(np.int32)), pa.array(symbols)).cast(pa.string())
    cells = {name: values[day, column] for name, values in fields.items()}
    return pa.table({"date": pa.array(days[day]), "symbol": words, **cells})
