# Looks at the last days of the panel, which np.roll brings round to the first.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"].to_numpy()
    out = close / np.roll(close, 10, axis=0) - 1
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
