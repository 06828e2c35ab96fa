# Reversal with log dollar volume taken out across the names of each day.
# mypy: ignore-errors
def factor(panel):
    y = -panel["close"].pct_change(5, fill_method=None)
    x = np.log((panel["close"] * panel["volume"]).rolling(20).mean())
    x = x.where(y.notna())
    y = y.where(x.notna())
    xc = x.sub(x.mean(axis=1), axis=0)
    yc = y.sub(y.mean(axis=1), axis=0)
    beta = (xc * yc).sum(axis=1) / (xc**2).sum(axis=1).replace(0.0, np.nan)
    return yc - xc.mul(beta, axis=0)
