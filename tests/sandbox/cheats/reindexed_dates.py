# Looks at the row of the date three days on.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    later = close.reindex(close.index + pd.Timedelta(days=3), method="ffill")
    later.index = close.index
    return later / close - 1
