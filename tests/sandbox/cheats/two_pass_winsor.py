# Looks at all days, for where it clips.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    return r.clip(r.quantile(0.05), r.quantile(0.95), axis=1)
