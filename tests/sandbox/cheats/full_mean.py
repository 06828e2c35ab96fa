# Looks at the mean of all days.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    return (r - r.mean()) / r.std()
