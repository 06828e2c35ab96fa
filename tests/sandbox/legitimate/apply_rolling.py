# A trimmed mean by rolling apply on raw arrays.
# mypy: ignore-errors
def factor(panel):
    def trimmed(x):
        return np.sort(x)[1:-1].mean()

    return -panel["returns"].rolling(8).apply(trimmed, raw=True)
