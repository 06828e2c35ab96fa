# Yes or no: above the mean of a month.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    return close > close.rolling(21).mean()
