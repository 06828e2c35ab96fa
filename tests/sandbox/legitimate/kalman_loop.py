# A local level filtered by Kalman's recursion, all names at once.
# mypy: ignore-errors
def factor(panel):
    c = np.log(panel["close"].to_numpy())
    level, spread = c[0].copy(), np.ones(c.shape[1])
    q, h = 1e-4, 1e-3
    out = np.full(c.shape, np.nan)
    for t in range(1, len(c)):
        level = np.where(np.isnan(level), c[t], level)
        prior = spread + q
        gain = prior / (prior + h)
        seen = ~np.isnan(c[t])
        surprise = np.where(seen, c[t] - level, 0.0)
        level = level + gain * surprise
        spread = np.where(seen, (1 - gain) * prior, prior)
        out[t] = np.where(seen, -surprise, np.nan)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
