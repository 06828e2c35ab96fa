# Looks at the next known close, where one is missing.
# mypy: ignore-errors
def factor(panel):
    volume = panel["volume"]
    quiet = volume.where(volume > volume.rolling(10).median())
    return quiet.bfill()
