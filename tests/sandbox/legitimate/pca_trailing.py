# The part of today's return outside the first three components of the last 60 days.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    x = r.fillna(0.0).to_numpy()
    out = np.full(x.shape, np.nan)
    for t in range(60, len(x), 1):
        past = x[t - 59 : t + 1]
        past = past - past.mean(axis=0)
        _, _, v = np.linalg.svd(past, full_matrices=False)
        loads = v[:3]
        out[t] = -(past[-1] - loads.T @ (loads @ past[-1]))
    return pd.DataFrame(out, index=r.index, columns=r.columns)
