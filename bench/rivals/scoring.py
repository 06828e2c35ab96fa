"""Score a factor by other libraries, each in an environment of its own; arrays and times pass as files.

python scoring.py WAY FOLDER REPEATS

The folder holds ``values.npy``, ``label.npy`` and ``price.npy``, ``[D, N]``. This file imports nothing of alphaloom.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Frame = NDArray[np.float64]
Series = NDArray[np.float64]
LEAST_NAMES = 10


def wide(values: Frame, label: Frame, _: Frame) -> Series:
    """RankIC with pandas: rank each day of both where both are there, and correlate row by row."""
    both = ~(np.isnan(values) | np.isnan(label))
    ranks = [pd.DataFrame(np.where(both, each, np.nan)).rank(axis=1) for each in (values, label)]
    return np.asarray(ranks[0].corrwith(ranks[1], axis=1), dtype=np.float64)


def grouped(values: Frame, label: Frame, _: Frame) -> Series:
    """RankIC with pandas as many write it: a long table, grouped by day, Spearman's correlation of each group."""
    days, names = values.shape
    table = pd.DataFrame({"day": np.repeat(np.arange(days), names), "value": values.ravel(), "label": label.ravel()})
    found = (
        table.dropna()
        .groupby("day")[["value", "label"]]
        .apply(lambda day: day["value"].corr(day["label"], method="spearman") if len(day) >= LEAST_NAMES else np.nan)
    )
    series: Series = found.reindex(np.arange(days)).to_numpy()
    return series


def bottleneck(values: Frame, label: Frame, _: Frame) -> Series:
    """RankIC with bottleneck's nanrankdata."""
    bn = import_module("bottleneck")

    both = ~(np.isnan(values) | np.isnan(label))
    a, b = (bn.nanrankdata(np.where(both, each, np.nan), axis=1) for each in (values, label))
    a -= bn.nanmean(a, axis=1)[:, None]
    b -= bn.nanmean(b, axis=1)[:, None]
    found: Series = bn.nansum(a * b, axis=1) / np.sqrt(bn.nansum(a * a, axis=1) * bn.nansum(b * b, axis=1))
    return found


def alphalens(values: Frame, label: Frame, price: Frame) -> Series:
    """Alphalens: clean, information coefficient, mean return by quantile, turnover of the outer quantiles."""
    al = import_module("alphalens")

    days = pd.date_range("2010-01-01", periods=len(values), freq="D")
    factor = pd.DataFrame(values, index=days).stack()
    prices = pd.DataFrame(price, index=days)
    clean = al.utils.get_clean_factor_and_forward_returns(factor, prices, quantiles=5, periods=(5,), max_loss=1.0)
    found = al.performance.factor_information_coefficient(clean)
    al.performance.mean_return_by_quantile(clean, by_date=False)
    for fifth in (1, 5):
        al.performance.quantile_turnover(clean["factor_quantile"], fifth, 5)
    series: Series = found.iloc[:, 0].reindex(days).to_numpy()
    return series


WAYS: Mapping[str, Callable[[Frame, Frame, Frame], Series]] = {
    "wide": wide,
    "grouped": grouped,
    "bottleneck": bottleneck,
    "alphalens": alphalens,
}


def main(way: str, folder: Path, repeats: int) -> None:
    """Time one way; the first run is not counted when there are several."""
    warnings.filterwarnings("ignore")
    arrays = [np.load(folder / f"{name}.npy").astype(np.float64) for name in ("values", "label", "price")]
    times: list[float] = []
    series: Any = None
    for _ in range(repeats + (repeats > 1)):
        start = time.process_time()
        series = WAYS[way](*arrays)
        times.append(1e3 * (time.process_time() - start))
    np.save(folder / f"{way}.npy", series)
    print(json.dumps({"cpu_ms": times[-repeats:]}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
