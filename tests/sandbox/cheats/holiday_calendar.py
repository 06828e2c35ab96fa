# Looks at the date of the next row, to know of a holiday beforehand.
# Found by the sweep.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    days = close.index.to_series()
    gap = (days.shift(-1) - days).dt.days.fillna(1.0)
    return close.pct_change(fill_method=None).mul(gap, axis=0)
