# Looks at all later days, by a loop that runs from the end.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].fillna(0.0).to_numpy()
    out = np.zeros(r.shape)
    for t in range(len(r) - 2, -1, -1):
        out[t] = 0.8 * out[t + 1] + r[t + 1]
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
