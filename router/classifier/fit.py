"""Penalised logistic regression, and a file of fitted arrays with their digest, written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ledger.files import make_folder
from .prompt_reading import INTENTS

if TYPE_CHECKING:
    import scipy.sparse as sp

    from .features import Features
    from .training_prompts import Example

MAX_FIT_ITERATIONS = 150
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
_DIGEST_KEY = "digest"


def fit_softmax(
    rows: sp.csr_array, wanted: NDArray[np.int64], shares: NDArray[np.float64], penalty: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights ``[features, classes]`` and the bias ``[classes]`` of a softmax regression.

    Parameters
    ----------
    rows : sparse array, float64, [examples, features]
    wanted : array, int64, [examples]
        The class of each example, from 0 on.
    shares : array, float64, [examples]
        Relative weight of each example; scaled here to sum to the number of examples.
    penalty : float
        Factor of half the squared norm of the weights; the bias is not penalised.

    Notes
    -----
    L-BFGS from zero. The problem is convex, so the same examples give the same weights.
    """
    from scipy.optimize import minimize  # a third of a second, hence late

    examples, columns = rows.shape
    classes = int(wanted.max()) + 1
    example_weights = shares * (examples / shares.sum())
    one_hot = np.zeros((examples, classes))
    one_hot[np.arange(examples), wanted] = 1.0

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = flat.reshape(columns + 1, classes)
        scores = rows @ table[:-1] + table[-1]
        scores -= scores.max(axis=1, keepdims=True)
        probabilities = np.exp(scores)
        total = probabilities.sum(axis=1, keepdims=True)
        probabilities /= total
        surprise = (np.log(total[:, 0]) - scores[np.arange(examples), wanted]) @ example_weights
        error = (probabilities - one_hot) * example_weights[:, None]
        slope = np.vstack([rows.T @ error + penalty * table[:-1], error.sum(axis=0)[None, :]])
        return float(surprise + 0.5 * penalty * np.square(table[:-1]).sum()), slope.ravel()

    start = np.zeros((columns + 1) * classes)
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_FIT_ITERATIONS, "maxcor": 10})
    table = solution.x.reshape(columns + 1, classes)
    return table[:-1], table[-1]


def fit_examples(
    rows: sp.csr_array, examples: Sequence[Example], penalty: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights ``[features, intents + 1]`` and the bias ``[intents + 1]``; the last column is hardness.

    The rows may be several copies of the examples, one after the other. All classes have the same total weight.
    """
    copies = rows.shape[0] // len(examples)
    intents = np.array([INTENTS.index(example.intent) for example in examples] * copies)
    hard = np.array([int(example.hard) for example in examples] * copies)
    by_intent, bias_intent = fit_softmax(rows, intents, weigh_classes(intents), penalty)
    by_hard, bias_hard = fit_softmax(rows, hard, weigh_classes(hard), penalty)
    weights = np.column_stack([by_intent, by_hard[:, 1] - by_hard[:, 0]])
    return weights, np.array([*bias_intent, bias_hard[1] - bias_hard[0]])


def weigh_classes(classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of each example, such that all classes have the same total."""
    return np.asarray(1.0 / np.bincount(classes)[classes], dtype=np.float64)


def stack_features(features: Sequence[Features], width: int) -> sp.csr_array:
    """Return sparse vectors as the rows of a matrix, float64, ``[features, width]``."""
    import scipy.sparse as sp

    ends = np.cumsum([0, *(len(row.rows) for row in features)])
    values = np.concatenate([row.weights for row in features]).astype(np.float64)
    return sp.csr_array((values, np.concatenate([row.rows for row in features]), ends), shape=(len(features), width))


def find_cache(kind: str) -> Path:
    """Return the folder of the user's cache for fitted arrays of one kind."""
    from platformdirs import user_cache_path

    return user_cache_path("alphaloom") / kind


def digest_arrays(arrays: Arrays) -> str:
    """Return the SHA-256 (hex) of arrays with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def load_arrays(path: Path) -> Arrays | None:
    """Return the saved arrays; None where the file is missing, damaged, or does not match its digest."""
    unusable = suppress(OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile)
    with unusable, np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files if name != _DIGEST_KEY}
        return arrays if str(archive[_DIGEST_KEY]) == digest_arrays(arrays) else None
    return None


def load_or_fit(path: Path, shapes: Mapping[str, tuple[int, ...]], fit: Callable[[], Arrays]) -> Arrays:
    """Return the saved arrays; without finite ones of these shapes, fit and save them."""
    arrays = load_arrays(path) or {}
    fits = {name: array.shape for name, array in arrays.items()} == shapes
    if not fits or not all(np.isfinite(array).all() for array in arrays.values()):
        arrays = fit()
        save_arrays(path, arrays)
    return arrays


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Save arrays, whole or not at all. A write error is ignored: the arrays are then computed again next time."""
    with suppress(OSError):
        make_folder(path.parent)
        entries: dict[str, Any] = {**arrays, _DIGEST_KEY: np.array(digest_arrays(arrays))}
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **entries)
            os.replace(part, path)
        finally:
            Path(part).unlink(missing_ok=True)  # still there after a failed write, such as on a full disk
