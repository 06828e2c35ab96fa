# Where the close stands in the volume-weighted prices of a month.
# mypy: ignore-errors
def factor(panel):
    typical = (panel["high"] + panel["low"] + panel["close"]) / 3
    volume = panel["volume"]
    vwap = (typical * volume).rolling(21, min_periods=10).sum() / volume.rolling(21, min_periods=10).sum()
    return panel["close"] / vwap - 1
