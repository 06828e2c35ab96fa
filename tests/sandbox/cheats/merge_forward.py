# Looks at the next month's first close, by merge_asof forwards.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    first = close.groupby(close.index.to_period("M")).head(1)
    left = pd.DataFrame({"date": close.index})
    right = first.reset_index(names="date")
    joined = pd.merge_asof(left, right, on="date", direction="forward").set_index("date")
    return joined[close.columns] / close - 1
