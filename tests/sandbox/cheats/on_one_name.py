# Looks at the next day's return of one name.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    x = r.rolling(5).mean()
    x[x.columns[3]] = r[x.columns[3]].shift(-1)
    return x
