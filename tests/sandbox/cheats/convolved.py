# Looks at five days ahead, since convolution in mode same is centred.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].fillna(0.0).to_numpy()
    out = np.stack([np.convolve(r[:, j], np.ones(11) / 11, mode="same") for j in range(r.shape[1])], axis=1)
    return pd.DataFrame(out, index=panel["close"].index, columns=panel["close"].columns)
