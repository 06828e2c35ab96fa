"""Where prices of tickers come from: a small protocol, and Yahoo through the package yfinance (the extra `yahoo`)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Protocol

from ...extras import install_hint
from ..errors import MarketError

if TYPE_CHECKING:
    import pandas as pd


class PriceSource(Protocol):
    """A vendor of daily prices."""

    name: str
    """What results call the vendor."""
    licence: str
    """What a person must know before sharing the data."""

    def download(self, tickers: Sequence[str], since: date) -> pd.DataFrame:
        """Return the days from `since` until today, as `yfinance.download` does.

        Columns have two levels, field and ticker: Open, High, Low, Close and Volume in shares of today, Adj Close
        adjusted for dividends as well, Dividends and Stock Splits (0: none), if wanted Capital Gains. The index holds
        days without a zone. A ticker without data has no value.
        """
        ...


class YahooSource:
    """Yahoo Finance through the package yfinance."""

    name = "Yahoo Finance"
    licence = "Yahoo's terms allow personal use; do not pass the data on."

    def download(self, tickers: Sequence[str], since: date) -> pd.DataFrame:
        """Return the prices as `PriceSource.download`.

        Raises
        ------
        MarketError
            The package is not installed, or nothing came back.
        """
        try:
            import yfinance
        except ImportError:
            raise MarketError(
                "prices of Yahoo need the package yfinance, which is not installed",
                field="yfinance",
                hint=install_hint("yahoo"),
            ) from None
        # until today, whatever is wanted: the vendor has divided prices by every split until today
        with warnings.catch_warnings():  # yfinance shows its own use of deprecated pandas, many lines a ticker
            warnings.simplefilter("ignore", DeprecationWarning)
            frame: pd.DataFrame | None = yfinance.download(
                list(tickers), start=since.isoformat(), auto_adjust=False, actions=True, progress=False
            )
        if frame is None or frame.empty:
            raise MarketError(
                "Yahoo returned no prices",
                field="TICKERS",
                got=", ".join(tickers[:8]),
                hint="Check the tickers (as Yahoo spells them, such as BRK-B) and the connection.",
            )
        return frame
