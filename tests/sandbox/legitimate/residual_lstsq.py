# What a least-squares line on the market leaves of the last week, day by day.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].to_numpy()
    out = np.full(r.shape, np.nan)
    for t in range(30, len(r)):
        y = np.nan_to_num(r[t - 29 : t + 1])
        x = np.column_stack([np.ones(30), y.mean(axis=1)])
        beta, *_ = np.linalg.lstsq(x, y, rcond=None)
        out[t] = (y - x @ beta)[-5:].sum(axis=0)
    close = panel["close"]
    return pd.DataFrame(out, index=close.index, columns=close.columns)
