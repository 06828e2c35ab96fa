# Looks at the mean return of the whole year.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    return r - r.groupby(r.index.year).transform("mean")
