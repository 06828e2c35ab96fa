# Looks at the next three days' move, by diff(-3).
# mypy: ignore-errors
def factor(panel):
    return -np.log(panel["close"]).diff(-3)
