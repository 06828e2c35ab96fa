# Looks at the week's last close, labelled with its first day.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    weekly = close.resample("W-FRI", label="left", closed="right").last()
    return weekly.reindex(close.index, method="ffill") / close - 1
