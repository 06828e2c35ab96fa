# The mean return of the same calendar month, in days gone by only.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    out = pd.DataFrame(np.nan, index=r.index, columns=r.columns)
    for month in range(1, 13):
        days = r.index.month == month
        out.loc[days] = r[days].expanding(min_periods=5).mean().shift(1)
    return out
