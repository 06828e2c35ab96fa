# Positions from the end, on a window that ends today.
# mypy: ignore-errors
def factor(panel):
    values = panel["close"].to_numpy()
    out = np.full(values.shape, np.nan)
    for t in range(20, len(values)):
        window = values[: t + 1][-20:]
        out[t] = window[-1] / window[0] - 1
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
