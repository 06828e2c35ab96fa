# Prints what it sees, as people do, and draws with generators of the old kind that have a seed.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    print(close.tail(3))
    drawn = close.columns.to_series().sample(n=5, random_state=3).index
    weights = np.random.RandomState(7).normal(size=len(drawn))
    basket = (close[drawn].pct_change(fill_method=None) * weights).sum(axis=1)
    return -panel["returns"].sub(basket, axis=0).rolling(10).std()
