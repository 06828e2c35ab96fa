# Whole numbers: days up among the last ten.
# mypy: ignore-errors
def factor(panel):
    up = (panel["close"] > panel["open"]).astype("int64")
    return up.rolling(10, min_periods=1).sum().astype("int64")
