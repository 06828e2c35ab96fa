# A factor that is switched on at a date that lies in the past of every later day.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].rolling(5).sum()
    start = panel["close"].index[0] + pd.Timedelta(days=30)
    return r.where(r.index.to_series() >= pd.Timestamp(start), axis=0)
