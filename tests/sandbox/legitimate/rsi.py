# Wilder's relative strength.
# mypy: ignore-errors
def factor(panel):
    move = panel["close"].diff()
    up = move.clip(lower=0.0).ewm(alpha=1 / 14, adjust=False, min_periods=14).mean()
    down = (-move.clip(upper=0.0)).ewm(alpha=1 / 14, adjust=False, min_periods=14).mean()
    return -(100 - 100 / (1 + up / down.where(down > 0)))
