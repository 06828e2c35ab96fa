"""Weights from examples: the minimum of the stated loss, and the same each time."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from alphaloom.router.classifier.fit import fit_softmax


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
