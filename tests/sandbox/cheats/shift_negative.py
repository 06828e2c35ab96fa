# Looks at the next day's close.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    return close.shift(-1) / close - 1
