# np.roll forwards, with the rows that wrapped round taken out.
# mypy: ignore-errors
def factor(panel):
    values = panel["close"].to_numpy()
    before = np.roll(values, 7, axis=0)
    before[:7] = np.nan
    return pd.DataFrame(values / before - 1, index=panel["close"].index, columns=panel["close"].columns)
