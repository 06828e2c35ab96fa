# Looks at the next day's return, by pct_change(-1).
# mypy: ignore-errors
def factor(panel):
    return -panel["close"].pct_change(-1, fill_method=None)
