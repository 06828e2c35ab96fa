# Against the rolling median, in units of the rolling quartiles.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    window = close.rolling(25)
    width = window.quantile(0.75) - window.quantile(0.25)
    return (close - window.median()) / width.where(width > 0)
