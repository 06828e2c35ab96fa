# Looks at the last close of the panel.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    return close.ffill().iloc[-1] / close - 1
