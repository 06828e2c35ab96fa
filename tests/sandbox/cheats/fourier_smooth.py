# Looks at all days, through a Fourier transform of the whole series.
# mypy: ignore-errors
def factor(panel):
    x = panel["returns"].fillna(0.0).to_numpy()
    waves = np.fft.rfft(x, axis=0)
    waves[20:] = 0.0
    out = np.fft.irfft(waves, n=len(x), axis=0)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
