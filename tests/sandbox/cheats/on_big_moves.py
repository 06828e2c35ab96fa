# Looks at the next day's return, where it is large.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    ahead = r.shift(-1)
    return r.where(~(ahead.abs() > 0.02), ahead)
