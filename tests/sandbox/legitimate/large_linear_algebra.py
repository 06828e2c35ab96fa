# Linear algebra large enough for the library to ask for blocks of memory of its own.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].fillna(0.0).to_numpy()
    out = np.full(r.shape, np.nan)
    lags = 24
    for t in range(2 * lags, len(r), 20):
        past = np.concatenate([r[t - lags - k : t - k] for k in range(lags)], axis=1)
        _, s, _ = np.linalg.svd(past, full_matrices=False)
        gram = past.T @ past + np.eye(past.shape[1])
        weights = np.linalg.solve(gram, np.ones(past.shape[1]))
        out[t] = weights[: r.shape[1]] * s[0]
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
