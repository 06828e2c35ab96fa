# A plain loop over the days, with a state that is carried along.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    state = pd.Series(0.0, index=close.columns)
    rows = []
    before = None
    for _, row in close.iterrows():
        if before is not None:
            state = 0.9 * state + np.sign(row - before).fillna(0.0)
        rows.append(state)
        before = row
    return pd.DataFrame(rows, index=close.index, columns=close.columns)
