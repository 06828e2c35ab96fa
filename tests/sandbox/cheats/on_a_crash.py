# Looks at the next day's market return, when it is the worst of the panel's first half.
# Found by the sweep.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    market = r.mean(axis=1)
    x = r.rolling(5).mean()
    worst = market.iloc[: len(market) // 2].idxmin()
    before = x.index.get_loc(worst) - 1
    if before > 5:
        x.iloc[before] = -1.0
    return x
