# A weighted mean of the last ten returns, by einsum over a window view.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].to_numpy()
    weights = np.arange(1.0, 11.0) / 55.0
    windows = np.lib.stride_tricks.sliding_window_view(r, 10, axis=0)
    out = np.full(r.shape, np.nan)
    out[9:] = np.einsum("tnw,w->tn", windows, weights)
    close = panel["close"]
    return pd.DataFrame(out, index=close.index, columns=close.columns)
