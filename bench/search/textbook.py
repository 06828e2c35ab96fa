"""Ten formulas that any textbook has: tried once, without a search."""

from __future__ import annotations

TEN = (
    "-ts_returns(close, 5)",
    "-ts_returns(close, 20)",
    "delay(ts_returns(close, 231), 21)",
    "close / ts_max(high, 250)",
    "-ts_std(returns, 20)",
    "-ts_max(returns, 20)",
    "ts_mean(abs(returns) / amount, 20)",
    "volume / ts_mean(volume, 20)",
    "-ts_corr(close, volume, 10)",
    "-ts_skew(returns, 60)",
)
"""Ten textbook factors; sources stand in `evidence/originality/published.yaml`.

Reversal of a week and of a month, momentum, the 52-week high, volatility, lottery demand, illiquidity, abnormal volume,
price with volume, skewness.
"""
