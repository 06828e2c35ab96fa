"""Hansen's test of superior predictive ability: whether the best of many candidates has a mean return above zero.

The candidates' returns are resampled in blocks, all together, so that their dependence is kept. Three p-values bracket
the result by the treatment of bad candidates: none counts (lower), the clearly bad do not (consistent), all do (upper).
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
    """Hansen's p-values for the best of K candidates, and the settings of the bootstrap.

    Attributes
    ----------
    lower, consistent, upper
        P-values in ascending order, each in [1 / (replications + 1), 1].
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
    """Test whether any candidate's mean return is above zero, given that the best of all was selected.

    Parameters
    ----------
    returns
        Returns per period, shape ``[D, K]``, one column per candidate. A NaN counts as no position, a return of 0. A
        column without variation cannot be studentised and is left out.
    block_days
        Mean block length of the stationary bootstrap, at least 1: the range of the returns' dependence.
    replications
        Number of samples.
    seed
        Seed of the bootstrap; equal input gives equal output.

    Returns
    -------
    Superior

    Raises
    ------
    ValueError
        For fewer than 16 days, no column with variation, or a block that is not shorter than the series.

    Notes ----- The statistic is the largest mean over its own standard error. `arch` computes standard errors but does
    not divide by them. Each column is therefore divided here by its own, computed with the kernel of the stationary
    bootstrap; the test on such columns is the studentised one. Where no mean is above zero the statistic is zero by
    definition, and every p-value 1; `arch` would continue with the negative maximum and return about one half. One is
    added to the count and to the samples, so that no p-value is 0.

    References ---------- Hansen (2005), Journal of Business and Economic Statistics 23, 365-380; Politis and Romano
    (1994), JASA 89, 1303-1313.
    """
    table = np.nan_to_num(np.asarray(returns, dtype=np.float64))
    if table.ndim != 2 or len(table) < 16 or not 1 <= block_days < len(table):
        raise ValueError(f"needs [D, K] with D >= 16 and 1 <= block_days < D, got {table.shape} and {block_days}")
    errors = long_run_deviation(table, block_days)
    varies = errors > 1e-12 * np.abs(table).max(axis=0, initial=0.0)
    if not varies.any():
        raise ValueError("no candidate's returns vary")
    studentised = table[:, varies] / errors[varies]
    if studentised.mean(axis=0).max() <= 0:
        return Superior(1.0, 1.0, 1.0, studentised.shape[1], len(table), block_days, replications)
    return _bootstrap(studentised, block_days, replications, seed)


def long_run_deviation(table: NDArray[np.float64], block_days: int) -> NDArray[np.float64]:
    """Return the long-run standard deviation of each column: the error of its mean times the root of the days.

    Parameters
    ----------
    table
        Returns ``[D, K]``, without NaN.
    block_days
        Mean block length of the stationary bootstrap, at least 1.

    Returns
    -------
    NDArray[np.float64]
        ``[K]``, in the units of the columns; 0 for a column without variation.

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
    # arch imports matplotlib, whose messages about fonts a user need not see.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.WARNING)
    from arch.bootstrap import SPA  # takes a second to import

    days, candidates = studentised.shape
    test = SPA(np.zeros(days), -studentised, block_size=block_days, reps=replications, studentize=False, seed=seed)
    test.compute()
    p = {name: (float(value) * replications + 1) / (replications + 1) for name, value in test.pvalues.items()}
    rounded = {str(name): math.floor(value * 1e9 + 0.5) / 1e9 for name, value in p.items()}
    return Superior(**rounded, candidates=candidates, days=days, block_days=block_days, replications=replications)
