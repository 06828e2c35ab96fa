# Looks at one name's next return, on one date only.
# Found by the sweep.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    x = r.rolling(5).mean()
    day = pd.Timestamp(ONE_DATE)
    if day in x.index:
        x.loc[day, x.columns[5]] = r.shift(-1).loc[day].iloc[5]
    return x
