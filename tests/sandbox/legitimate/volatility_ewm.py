# The negative exponential spread of returns.
# mypy: ignore-errors
def factor(panel):
    return -panel["returns"].ewm(halflife=20, min_periods=20).std()
