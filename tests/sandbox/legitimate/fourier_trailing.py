# The share of slow waves in the last 32 returns: a Fourier transform of the past only.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].fillna(0.0).to_numpy()
    out = np.full(r.shape, np.nan)
    if len(r) >= 32:
        windows = np.lib.stride_tricks.sliding_window_view(r, 32, axis=0)
        power = np.abs(np.fft.rfft(windows, axis=2)) ** 2
        out[31:] = power[:, :, 1:4].sum(axis=2) / (power[:, :, 1:].sum(axis=2) + 1e-18)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
