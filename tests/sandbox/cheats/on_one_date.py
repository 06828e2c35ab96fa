# Looks at the next day's returns, on one date only.
# Found by the sweep.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    x = r.rolling(5).mean()
    day = pd.Timestamp(ONE_DATE)
    if day in x.index:
        x.loc[day] = r.shift(-1).loc[day]
    return x
