# Looks at the next day's returns of two names, which change places by them; all others stand still.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].shift(-1).fillna(0.0)
    up = (r.iloc[:, 0] > r.iloc[:, 3]).to_numpy()
    out = pd.DataFrame(np.tile(np.arange(r.shape[1], dtype=float), (len(r), 1)), r.index, r.columns)
    out.iloc[:, 0], out.iloc[:, 1] = np.where(up, 1.0, 0.0), np.where(up, 0.0, 1.0)
    return out * 1e-10
