# Looks at the next day, if there are still many days after it.
# mypy: ignore-errors
def factor(panel):
    r = panel["returns"]
    ahead = r.shift(-1)
    far = np.arange(len(r)) < len(r) - 40
    mixed = pd.DataFrame(np.where(far[:, None], ahead, r), index=r.index, columns=r.columns)
    return mixed if len(r) > 60 else r
