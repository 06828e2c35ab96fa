# The slope and the bend of log prices over 20 days, by one matrix for all windows.
# mypy: ignore-errors
def factor(panel):
    x = np.log(panel["close"].ffill().to_numpy())
    n = 20
    days = np.linspace(-1.0, 1.0, n)
    solve = np.linalg.pinv(np.vander(days, 3))
    out = np.full(x.shape, np.nan)
    for t in range(n - 1, len(x)):
        bend, slope, _ = solve @ x[t - n + 1 : t + 1]
        out[t] = slope + 0.5 * bend
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
