# Today's volume against all of the past.
# mypy: ignore-errors
def factor(panel):
    v = np.log1p(panel["volume"])
    past = v.expanding(min_periods=30)
    return (v - past.mean()) / past.std()
