# Looks at the next row, on row 27 only.
# Found by the sweep.
# mypy: ignore-errors
def factor(panel):
    out = panel["returns"].rolling(5).mean().to_numpy().copy()
    if len(out) > 28:
        out[27] = panel["returns"].to_numpy()[28]
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
