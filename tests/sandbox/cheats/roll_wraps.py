# Looks at the next day, by np.roll.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"].to_numpy()
    out = np.roll(close, -1, axis=0) / close - 1
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
