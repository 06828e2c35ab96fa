# Looks at the mean of all days, which a permutation of the future leaves as it is.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    return r.rolling(5).mean() - r.mean()
