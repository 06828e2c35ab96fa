# Noisy, with warnings of its own: logarithms of zero and means of nothing.
# mypy: ignore-errors
import warnings


def factor(panel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gap = np.log(panel["open"] / panel["close"].shift(1))
        typical = np.nanmean(np.stack([panel["high"].to_numpy(), panel["low"].to_numpy()]), axis=0)
    return gap.rolling(5).mean() + 0 * pd.DataFrame(typical, index=gap.index, columns=gap.columns)
