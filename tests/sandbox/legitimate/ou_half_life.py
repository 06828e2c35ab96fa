# An Ornstein-Uhlenbeck fit over 40 days: how far from its mean, in its own spread.
# mypy: ignore-errors
def factor(panel):
    x = np.log(panel["close"])
    lag = x.shift(1)
    n = 40
    mx, my = lag.rolling(n).mean(), x.rolling(n).mean()
    cov = (lag * x).rolling(n).mean() - mx * my
    var = (lag * lag).rolling(n).mean() - mx * mx
    slope = (cov / var.where(var > 1e-12)).clip(-0.99, 0.99)
    level = (my - slope * mx) / (1 - slope)
    return -(x - level) / x.rolling(n).std()
