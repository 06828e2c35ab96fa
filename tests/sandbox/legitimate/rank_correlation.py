# Rolling correlation of return and change of volume.
# mypy: ignore-errors
def factor(panel):
    change = np.log1p(panel["volume"]).diff()
    return -panel["returns"].rolling(15).corr(change).replace([np.inf, -np.inf], np.nan)
