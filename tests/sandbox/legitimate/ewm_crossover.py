# Two exponential means of the close.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    fast = close.ewm(span=10, adjust=False).mean()
    slow = close.ewm(span=30, adjust=False, ignore_na=True).mean()
    return fast / slow - 1
