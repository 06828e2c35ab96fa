# Looks at the next five returns, by a window over the days turned round.
# mypy: ignore-errors
def factor(panel):
    return panel["returns"].iloc[::-1].rolling(5).sum().iloc[::-1]
