# Looks at the close five days on, by a number that is computed.
# mypy: ignore-errors
def factor(panel):
    days = 2 - 7
    close = panel["close"]
    return close.shift(days) / close - 1
