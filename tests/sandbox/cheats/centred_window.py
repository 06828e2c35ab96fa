# Looks at ten days on either side, by a centred mean.
# mypy: ignore-errors
def factor(panel):
    return panel["close"] / panel["close"].rolling(21, center=True).mean()
