# Beta to the mean of all names over 40 days, by sums.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    m = r.mean(axis=1)
    window = 40
    mean_r, mean_m = r.rolling(window).mean(), m.rolling(window).mean()
    cov = r.mul(m, axis=0).rolling(window).mean().sub(mean_r.mul(mean_m, axis=0))
    var = (m * m).rolling(window).mean() - mean_m**2
    return -cov.div(var, axis=0)
