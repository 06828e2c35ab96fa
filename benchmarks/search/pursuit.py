"""An order of preference that a strong rival has: what each factor adds to those before it.

It imports numpy alone, so that rivals in environments of their own can use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["by_gain"]

Values = NDArray[np.float32]


def by_gain(columns: Sequence[Values], label: Values, *, most: int = 10, alike: float = 0.7) -> list[int]:
    """Return factors in the order in which each explains most of what those before it leave of the label.

    Ten of the strongest t are ten variants of the loudest effect; so a rival that is to be strong is given this order. It is
    orthogonal matching pursuit: after each choice the label is regressed on all that were chosen.

    Parameters
    ----------
    columns : sequence of arrays
        Centred ranks of the candidates on the same cells, ``[cells]`` each.
    label : array
        Centred ranks of the label, ``[cells]``.
    most : int
        How many to order; the rest is left out.
    alike : float
        Absolute correlation over all cells from which a candidate is skipped.

    Returns
    -------
    list of int
        Places in `columns`.
    """
    if not len(columns):
        return []
    matrix = np.stack(columns)
    length = np.linalg.norm(matrix, axis=1)
    open_ = length > 0
    taken: list[int] = []
    rest = label
    while open_.any() and len(taken) < most:
        gain = np.where(open_, np.abs(matrix @ rest) / np.where(length > 0, length, 1.0), -1.0)
        best = int(np.argmax(gain))
        taken.append(best)
        near = np.abs(matrix @ matrix[best]) / np.where(length > 0, length * length[best], 1.0)
        open_ &= near < alike
        open_[best] = False
        basis = matrix[taken]
        weights = np.linalg.lstsq(basis @ basis.T, basis @ label, rcond=1e-8)[0]
        rest = label - weights.astype(np.float32) @ basis
    return taken
