# Twelve months less one: the return over a window that ended a week ago.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    return close.shift(5) / close.shift(60) - 1
