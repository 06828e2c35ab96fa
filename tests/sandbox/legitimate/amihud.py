# Price moved per unit of money traded.
# mypy: ignore-errors
def factor(panel):
    money = panel["close"] * panel["volume"]
    return np.log(
        (panel["returns"].abs() / money.where(money > 0)).rolling(20, min_periods=10).mean().where(lambda x: x > 0)
    )
