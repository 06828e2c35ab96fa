"""Weights from examples: the minimum of the stated loss, and the same each time."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from alphaloom.router.classifier.fit import digest_arrays, fit_softmax, load_arrays, save_arrays

ARRAYS = {"head": np.arange(6.0).reshape(2, 3), "limits": np.array([0.5, -1.0], dtype=np.float32)}


def test_the_weights_are_where_the_loss_is_flat() -> None:
    rng = np.random.default_rng(3)
    dense = rng.normal(size=(60, 5))
    wanted = rng.integers(0, 3, size=60)
    shares, penalty = rng.uniform(0.5, 2.0, size=60), 0.7
    weights, bias = fit_softmax(sp.csr_array(dense), wanted, shares, penalty)
    scores = dense @ weights + bias
    likely = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    error = (likely - np.eye(3)[wanted]) * (shares * 60 / shares.sum())[:, None]
    assert np.abs(dense.T @ error + penalty * weights).max() < 1e-3
    assert np.abs(error.sum(axis=0)).max() < 1e-3


def test_the_same_examples_give_the_same_weights() -> None:
    rows, wanted = sp.csr_array(np.eye(4)), np.array([0, 1, 0, 1])
    one, other = (fit_softmax(rows, wanted, np.ones(4), 0.1) for _ in range(2))
    assert np.array_equal(one[0], other[0])


def test_what_is_kept_comes_back_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "new" / "one.npz"
    save_arrays(path, ARRAYS)
    arrays = load_arrays(path)
    assert arrays is not None
    assert digest_arrays(arrays) == digest_arrays(ARRAYS)
    assert [*path.parent.iterdir()] == [path]
    assert load_arrays(tmp_path / "none.npz") is None


@pytest.mark.parametrize(
    "other",
    [
        {"head": np.zeros((2, 3))},
        {"head": ARRAYS["head"].reshape(3, 2)},
        {"limits": np.array([0.5, -1.0])},
        {"more": np.ones(1)},
    ],
)
def test_other_numbers_under_the_same_digest_are_not_believed(tmp_path: Path, other: dict[str, Any]) -> None:
    assert digest_arrays(ARRAYS | other) != digest_arrays(ARRAYS)
    np.savez(tmp_path / "one.npz", **ARRAYS | other, digest=np.array(digest_arrays(ARRAYS)))
    assert load_arrays(tmp_path / "one.npz") is None


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    save_arrays(tmp_path / "one.npz", ARRAYS)
    assert [*tmp_path.iterdir()] == []
