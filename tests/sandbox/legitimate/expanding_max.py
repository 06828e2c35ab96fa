# How far below its highest close so far a name is.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    return close / close.cummax() - 1
