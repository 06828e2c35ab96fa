# Looks at the number of days there will be.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    age = np.arange(len(close))[:, None] / len(close)
    return close.pct_change(5, fill_method=None) * 0 + age
