# Whole weeks only: last Friday's close over the one before, known from the week after on.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    weekly = close.resample("W-FRI").last()
    change = weekly.pct_change(fill_method=None).shift(1)
    return change.reindex(close.index.union(change.index)).ffill().reindex(close.index)
