# Weights of least variance from a shrunk covariance, renewed every ten days.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].fillna(0.0).to_numpy()
    n = r.shape[1]
    out = np.full(r.shape, np.nan)
    weights = None
    for t in range(len(r)):
        if t >= 50 and t % 10 == 0:
            cov = np.cov(r[t - 49 : t + 1].T).reshape(n, n)
            cov = 0.5 * cov + 0.5 * np.eye(n) * max(np.trace(cov) / n, 1e-12)
            weights = np.linalg.solve(cov, np.ones(n))
            weights /= weights.sum()
        if weights is not None:
            out[t] = weights
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
