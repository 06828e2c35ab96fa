# Stacked to long form, made a z-score of each date by groupby, and unstacked.
# mypy: ignore-errors
def factor(panel):
    long = panel["returns"].rolling(10).mean().stack().rename("x").reset_index()
    long.columns = ["date", "symbol", "x"]
    by_day = long.groupby("date")["x"]
    long["z"] = (long["x"] - by_day.transform("mean")) / by_day.transform("std")
    wide = long.pivot(index="date", columns="symbol", values="z")
    close = panel["close"]
    return wide.reindex(index=close.index, columns=close.columns).astype("float64")
