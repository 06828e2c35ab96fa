# Looks at the next day, since np.gradient is centred.
# mypy: ignore-errors
def factor(panel):
    out = np.gradient(panel["close"].to_numpy(), axis=0)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
