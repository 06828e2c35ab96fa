# Works on names by days, and turns the answer round.
# mypy: ignore-errors
def factor(panel):
    wide = panel["returns"].T
    ranks = wide.rank(axis=0, method="average")
    smooth = ranks.T.rolling(7).mean().T
    return -smooth.T
