# Looks at all days, for the edges of its bins.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    return r.apply(lambda x: pd.qcut(x, 10, labels=False, duplicates="drop")).astype("float64")
