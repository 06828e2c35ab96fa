# It raises where there are fewer than 30 rows, as careless code does.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    if len(close) < 30:
        raise ValueError("at least 30 days, please")
    return close.pct_change(3, fill_method=None)
