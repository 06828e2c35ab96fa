# The week's losers, as a rank of the day.
# mypy: ignore-errors
def factor(panel):
    week = panel["close"].pct_change(5, fill_method=None)
    return -week.rank(axis=1, pct=True)
