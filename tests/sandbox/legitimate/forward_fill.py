# Gaps filled from the past before a return is taken.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"].ffill(limit=5)
    return -(close / close.shift(10) - 1)
