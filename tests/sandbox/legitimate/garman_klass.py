# Range-based volatility.
# mypy: ignore-errors
def factor(panel):
    high_low = np.log(panel["high"] / panel["low"]) ** 2
    close_open = np.log(panel["close"] / panel["open"]) ** 2
    return -(0.5 * high_low - (2 * np.log(2) - 1) * close_open).rolling(20).mean()
