# Looks at all days, through one line fitted to them.
# mypy: ignore-errors
def factor(panel):
    x = np.log(panel["close"].ffill().bfill().to_numpy())
    t = np.arange(len(x))
    slope, level = np.polyfit(t, x, 1)
    out = x - (level + np.outer(t, slope))
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
