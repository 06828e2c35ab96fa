"""Whether the best of many candidates beats doing nothing: Hansen's test of superior predictive ability.

The candidates' returns are drawn again in blocks, all together, so that how alike they are is kept. Three p-values bracket
the answer by what is believed of bad candidates: none matters (lower), the clearly bad do not (consistent), all do (upper).
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

REPLICATIONS = 1000
SPA_SEED = 20_050_101


@dataclass(frozen=True)
class Superior:
    """Hansen's p-values for the best of K candidates, and how they were drawn.

    Attributes
    ----------
    lower, consistent, upper
        In this order never falling; each in [1 / (replications + 1), 1].
    block_days
        Mean length of a block of the stationary bootstrap.
    """

    lower: float
    consistent: float
    upper: float
    candidates: int
    days: int
    block_days: int
    replications: int


def run_superiority_test(
    returns: ArrayLike, block_days: int, *, replications: int = REPLICATIONS, seed: int = SPA_SEED
) -> Superior:
    """Test whether any candidate's mean return is above zero, given that the best of all of them was picked.

    Parameters
    ----------
    returns
        Shape ``[D, K]``, one column a candidate, per period. A NaN counts as no position, a return of 0. A column that
        never varies cannot be studentised and is left out.
    block_days
        Mean block length of the stationary bootstrap, at least 1: as long as returns depend on each other.
    replications
        Samples that are drawn.
    seed
        Where all chance comes from; equal input gives equal output.

    Returns
    -------
    Superior

    Raises
    ------
    ValueError
        For fewer than 16 days, no column that varies, or a block that is no shorter than the series.

    Notes
    -----
    The statistic is the largest mean over its own standard error. `arch` computes standard errors but does not divide by
    them, so each column is divided by its own here, with the kernel of the stationary bootstrap; the test on such columns
    is the studentised one. Where no mean is above zero the statistic is zero by definition, and every p-value 1; `arch`
    goes on with the negative maximum, and would say about one half. One is added to the count
    and to the samples, so that no p-value is 0.

    References
    ----------
    Hansen (2005), Journal of Business and Economic Statistics 23, 365-380; Politis and Romano (1994), JASA 89, 1303-1313.
    """
    table = np.nan_to_num(np.asarray(returns, dtype=np.float64))
    if table.ndim != 2 or len(table) < 16 or not 1 <= block_days < len(table):
        raise ValueError(f"needs [D, K] with D >= 16 and 1 <= block_days < D, got {table.shape} and {block_days}")
    errors = long_run_deviation(table, block_days)
    kept = errors > 1e-12 * np.abs(table).max(axis=0, initial=0.0)
    if not kept.any():
        raise ValueError("no candidate's returns vary")
    studentised = table[:, kept] / errors[kept]
    if studentised.mean(axis=0).max() <= 0:
        return Superior(1.0, 1.0, 1.0, studentised.shape[1], len(table), block_days, replications)
    return _bootstrap(studentised, block_days, replications, seed)


def long_run_deviation(table: NDArray[np.float64], block_days: int) -> NDArray[np.float64]:
    """Return the long-run standard deviation of each column: that of its mean, times the root of the days.

    Parameters
    ----------
    table
        ``[D, K]``, no NaN.
    block_days
        Mean block length of the stationary bootstrap, at least 1.

    Returns
    -------
    NDArray[np.float64]
        ``[K]``, in the units of the columns; 0 for a column that never varies.

    References
    ----------
    Politis and Romano (1994), JASA 89, 1303-1313: the variance of the stationary bootstrap.
    """
    days = len(table)
    centred = table - table.mean(axis=0)
    stay, steps = 1.0 - 1.0 / block_days, np.arange(1, days)
    weights = (1 - steps / days) * stay**steps + steps / days * stay ** (days - steps)
    size = 1 << (2 * days - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=0)[:days] / days
    return np.asarray(np.sqrt(np.maximum(covariance[0] + 2.0 * weights @ covariance[1:], 0.0)))


def _bootstrap(studentised: NDArray[np.float64], block_days: int, replications: int, seed: int) -> Superior:
    logging.getLogger("matplotlib.font_manager").setLevel(
        logging.WARNING
    )  # arch draws; its fonts are no news to a user
    from arch.bootstrap import SPA  # takes a second to import

    days, candidates = studentised.shape
    test = SPA(np.zeros(days), -studentised, block_size=block_days, reps=replications, studentize=False, seed=seed)
    test.compute()
    p = {name: (float(value) * replications + 1) / (replications + 1) for name, value in test.pvalues.items()}
    rounded = {str(name): math.floor(value * 1e9 + 0.5) / 1e9 for name, value in p.items()}
    return Superior(**rounded, candidates=candidates, days=days, block_days=block_days, replications=replications)
