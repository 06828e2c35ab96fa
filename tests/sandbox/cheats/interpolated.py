# Looks at the value behind a gap, to draw a line through it.
# mypy: ignore-errors
def factor(panel):
    volume = panel["volume"]
    return volume.where(volume > volume.rolling(10).mean()).interpolate()
