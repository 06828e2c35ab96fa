"""The scored formulas held against the whole sample of the language, kept from one time to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .basis import Basis

__all__ = ["Reach"]


@dataclass(eq=False)
class Reach:
    """Keeps products of ranks, so that each is worked out once.

    Attributes
    ----------
    ids : tuple of str
        The scored formulas, ``K``, of the last time.
    products : list of NDArray[np.float32]
        ``[K, rows]`` for each part of the sample.
    """

    ids: tuple[str, ...] = ()
    products: list[NDArray[np.float32]] = field(default_factory=list)

    def follow(self, basis: Basis, parts: Sequence[NDArray[np.int8]]) -> None:
        """Work out what is new: formulas that were scored since, and further parts of the sample, ``[rows, cells]`` each."""
        old = {name: row for row, name in enumerate(self.ids)}
        stay = [place for place, name in enumerate(basis.ids) if name in old]
        rows = [old[basis.ids[place]] for place in stay]
        fresh = [place for place, name in enumerate(basis.ids) if name not in old]
        for at, part in enumerate(parts):
            known = at < len(self.products)
            if known and self.ids == basis.ids:
                continue
            found = np.empty((len(basis.ids), len(part)), np.float32)
            asked = fresh if known else list(range(len(basis.ids)))
            found[asked] = basis.looks[asked] @ part.T.astype(np.float32) if asked else 0.0
            if known:
                found[stay] = self.products[at][rows]
                self.products[at] = found
            else:
                self.products.append(found)
        self.ids = basis.ids
