# Looks at whether the next close is missing, and nothing else.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    r = close.pct_change(5, fill_method=None)
    up = close.shift(-1) > close
    return r.where(~up)
