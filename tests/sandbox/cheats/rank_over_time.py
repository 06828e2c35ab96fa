# Looks at all days, to rank each of them among them.
# mypy: ignore-errors
def factor(panel):
    return panel["volume"].rank(axis=0, pct=True)
