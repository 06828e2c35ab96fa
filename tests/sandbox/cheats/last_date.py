# Looks at the last date of the panel.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    left = (close.index[-1] - close.index).days.to_numpy().astype(float)
    return close * 0 + left[:, None]
