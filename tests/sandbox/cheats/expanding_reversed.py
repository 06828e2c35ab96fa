# Looks at all later days, by expanding from the end.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    return r[::-1].expanding(min_periods=5).mean()[::-1]
