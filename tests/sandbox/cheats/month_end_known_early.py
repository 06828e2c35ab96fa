# Looks at the month's last close, on every day of the month.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    month = close.index.to_period("M")
    return close.groupby(month).transform("last") / close - 1
