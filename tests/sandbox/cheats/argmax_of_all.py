# Looks at all days, for how far away the highest close is.
# mypy: ignore-errors
def factor(panel):
    c = np.nan_to_num(panel["close"].to_numpy())
    out = c.argmax(axis=0)[None, :] - np.arange(len(c))[:, None].astype(float)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
