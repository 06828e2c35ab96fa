# A generator with a seed of its own, one draw for each day from its date alone.
# mypy: ignore-errors
def factor(panel):
    close = panel["close"]
    rows = []
    for day in close.index:
        rng = np.random.default_rng(int(day.value // 10**9))
        rows.append(rng.standard_normal(close.shape[1]))
    noise = pd.DataFrame(rows, index=close.index, columns=close.columns)
    return close.pct_change(fill_method=None).rolling(3).mean() + 1e-9 * noise
