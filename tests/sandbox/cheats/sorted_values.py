# Looks at all days, since it sorts each column.
# mypy: ignore-errors
def factor(panel):
    out = np.sort(panel["close"].to_numpy(), axis=0)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
