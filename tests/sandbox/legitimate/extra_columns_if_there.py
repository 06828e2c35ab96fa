# Uses a further column where the panel has it.
# mypy: ignore-errors
def factor(panel):
    paid = panel["vwap"] if "vwap" in panel else (panel["high"] + panel["low"]) / 2
    return panel["close"] / paid - 1
