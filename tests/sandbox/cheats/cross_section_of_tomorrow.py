# Looks at the next day's rank among the names.
# mypy: ignore-errors
def factor(panel):
    ranks = panel["returns"].rank(axis=1, pct=True)
    return pd.DataFrame(
        np.vstack([ranks.to_numpy()[1:], ranks.to_numpy()[-1:]]), index=ranks.index, columns=ranks.columns
    )
