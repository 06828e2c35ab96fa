# The mean of the last eight returns on the same day of the week.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    parts = [r[r.index.dayofweek == day].rolling(8, min_periods=3).mean() for day in range(5)]
    return pd.concat(parts).reindex(r.index)
