"""Weights from examples: two penalised logistic regressions, one over the intents and one over hardness."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

MAX_FIT_ITERATIONS = 150


def fit_softmax(
    rows: sp.csr_array, wanted: NDArray[np.int64], shares: NDArray[np.float64], penalty: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights ``[features, classes]`` and the bias ``[classes]`` of a softmax regression.

    Parameters
    ----------
    rows : sparse array, [examples, features]
    wanted : array of int, [examples]
        The class of each.
    shares : array of float, [examples]
        What each example counts, such that classes count alike; scaled to sum to the number of examples.
    penalty : float
        Of half the squared length of the weights; the bias is free.

    Notes
    -----
    L-BFGS from nothing: the problem is convex, so the same examples give the same weights.
    """
    examples, columns = rows.shape
    classes = int(wanted.max()) + 1
    weights_of = shares * (examples / shares.sum())
    told = np.zeros((examples, classes))
    told[np.arange(examples), wanted] = 1.0

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = flat.reshape(columns + 1, classes)
        scores = rows @ table[:-1] + table[-1]
        scores -= scores.max(axis=1, keepdims=True)
        likely = np.exp(scores)
        total = likely.sum(axis=1, keepdims=True)
        likely /= total
        surprise = (np.log(total[:, 0]) - scores[np.arange(examples), wanted]) @ weights_of
        error = (likely - told) * weights_of[:, None]
        slope = np.vstack([rows.T @ error + penalty * table[:-1], error.sum(axis=0)[None, :]])
        return float(surprise + 0.5 * penalty * np.square(table[:-1]).sum()), slope.ravel()

    start = np.zeros((columns + 1) * classes)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_FIT_ITERATIONS, "maxcor": 10})
    table = found.x.reshape(columns + 1, classes)
    return table[:-1], table[-1]
