"""Prices of tickers from a vendor, as a panel with quotes, splits and dividends."""
