# Looks at all days, to choose the window that did best.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    found = {w: float((r.rolling(w).mean() * r.shift(-1)).mean().mean()) for w in (3, 5, 10, 20)}
    best = max(found, key=found.get)
    return r.rolling(best).mean() * found[best]
