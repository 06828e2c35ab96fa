# Looks at the next day's rank, so little of it that the order of a day hardly changes.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    old = r.shift(1).rolling(7).mean().rank(axis=1, pct=True) - 0.5
    new = r.shift(-1).rank(axis=1, pct=True).fillna(0.5) - 0.5
    return (old + 0.0085 * new) * 1e-10
