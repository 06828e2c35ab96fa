# Looks at all days, through components of the whole panel.
# mypy: ignore-errors
def factor(panel):
    x = panel["returns"].fillna(0.0).to_numpy()
    _, _, v = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    out = x - (x @ v[:2].T) @ v[:2]
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
