# Long form again, with a rolling sum within each name.
# mypy: ignore-errors
def factor(panel):
    long = panel["volume"].melt(ignore_index=False, var_name="symbol", value_name="v").reset_index(names="date")
    long = long.sort_values(["symbol", "date"], kind="stable")
    long["s"] = long.groupby("symbol")["v"].transform(lambda v: v.rolling(20).mean())
    wide = long.pivot(index="date", columns="symbol", values="s")
    close = panel["close"]
    wide = wide.reindex(index=close.index, columns=close.columns)
    return panel["volume"] / wide
