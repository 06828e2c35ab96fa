# Looks at all returns, to choose its own sign.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    x = r.rolling(5).mean()
    hit = (x * r.shift(-1)).sum().sum()
    return x * np.sign(hit) * (1.0 + abs(hit))
