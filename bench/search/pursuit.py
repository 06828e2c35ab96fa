"""An order of preference that a strong rival has: what each factor adds to those before it.

It imports numpy alone, so that rivals in environments of their own can use it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Distinct", "by_gain"]

Values = NDArray[np.float32]


class Distinct:
    """Keeps what is unlike all that was kept before, so that a crowd of near-copies does not fill the places.

    Parameters
    ----------
    most : int
        How many to keep.
    alike : float
        Absolute correlation of two sketches from which the later one is left out.
    """

    def __init__(self, most: int, alike: float = 0.9) -> None:
        self.most = most
        self.alike = alike
        self._kept: list[Values] = []

    @property
    def full(self) -> bool:
        """Tell whether all places are taken."""
        return len(self._kept) >= self.most

    def takes(self, sketch: Values) -> bool:
        """Keep a sketch, centred ranks of a few days ``[cells]``, and return True if nothing like it is kept."""
        length = float(np.linalg.norm(sketch))
        if self.full or length == 0:
            return False
        unit = (sketch / length).astype(np.float32)
        if any(abs(float(unit @ other)) >= self.alike for other in self._kept):
            return False
        self._kept.append(unit)
        return True


def by_gain(columns: Sequence[Values], label: Values, *, most: int = 10, alike: float = 0.7) -> list[int]:
    """Return factors in the order in which each explains most of what those before it leave of the label.

    Ten of the strongest t are ten variants of the loudest effect; so a rival that is to be strong is given this order.
    It is orthogonal matching pursuit: after each choice the label is regressed on all that were chosen.

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
