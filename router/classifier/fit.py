"""Weights from examples by penalised logistic regression, and fitted numbers kept in a file: whole, with their digest, or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ledger.files import make_folder

if TYPE_CHECKING:
    import scipy.sparse as sp

MAX_FIT_ITERATIONS = 150
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
_DIGEST_KEY = "digest"


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
    from scipy.optimize import minimize  # a third of a second, hence late

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


def digest_arrays(arrays: Arrays) -> str:
    """Return the hash of all numbers, with their names, types and shapes."""
    told = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        told.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()


def load_arrays(path: Path) -> Arrays | None:
    """Return what was kept; None where there is nothing, or its numbers are not those that were kept."""
    unusable = suppress(OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile)
    with unusable, np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files if name != _DIGEST_KEY}
        return arrays if str(held[_DIGEST_KEY]) == digest_arrays(arrays) else None
    return None


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Keep arrays whole or not at all; where nothing can be written they are made again the next time."""
    with suppress(OSError):
        make_folder(path.parent)
        told: dict[str, Any] = {**arrays, _DIGEST_KEY: np.array(digest_arrays(arrays))}
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **told)
            os.replace(part, path)
        finally:
            Path(part).unlink(missing_ok=True)  # what is left where the disk was full
