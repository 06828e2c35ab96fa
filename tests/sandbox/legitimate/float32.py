# Half the memory: the answer is float32.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"].astype(np.float32)
    return (r.rolling(15).mean() / r.rolling(15).std()).astype(np.float32)
