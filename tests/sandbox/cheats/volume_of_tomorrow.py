# Looks at the next day's volume alone.
# mypy: ignore-errors
def factor(panel):
    v = panel["volume"]
    return v.rolling(5).mean().shift(-2) / v.rolling(5).mean()
