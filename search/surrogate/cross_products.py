"""The scored formulas held against the whole sample of the language, kept from one time to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .basis import Basis, lengths
from .candidate_pool import CandidatePool

__all__ = ["CrossProducts"]

Frame = NDArray[np.float64]


@dataclass(eq=False)
class CrossProducts:
    """Keeps products of ranks, so that each is worked out once.

    Attributes
    ----------
    sample : Population
        Its parts are followed.
    ids : tuple of str
        The scored formulas, ``K``, of the last time.
    products : list of NDArray[np.float32]
        ``[rows, K]`` for each part of the sample: whole numbers, so exact.
    """

    sample: CandidatePool
    ids: tuple[str, ...] = ()
    products: list[NDArray[np.float32]] = field(default_factory=list)
    _lengths: list[Frame] = field(default_factory=list, init=False)

    def follow(self, basis: Basis) -> None:
        """Work out what is new: formulas that were scored since, and further parts of the sample."""
        old = {name: place for place, name in enumerate(self.ids)}
        stay = [place for place, name in enumerate(basis.ids) if name in old]
        before = [old[basis.ids[place]] for place in stay]
        fresh = [place for place, name in enumerate(basis.ids) if name not in old]
        products, own = list(self.products), list(self._lengths)
        for at, part in enumerate(self.sample.parts):
            known = at < len(self.products)
            if known and self.ids == basis.ids:
                continue
            ranks = part.astype(np.float32)
            asked = fresh if known else range(len(basis.ids))
            found = np.empty((len(part), len(basis.ids)), np.float32)
            if len(asked):
                found[:, asked] = ranks @ basis.looks[asked].T
            if known:
                found[:, stay] = self.products[at][:, before]
                products[at] = found
            else:
                products.append(found)
                own.append(lengths(ranks))
        self.products, self._lengths, self.ids = products, own, basis.ids  # all or, where memory ends before, nothing

    def across(self, basis: Basis, part: int) -> Frame:
        """Return the rank correlations of a part with the scored formulas that were followed last, ``[rows, K]``."""
        return np.asarray(self.products[part] / np.outer(self._lengths[part], basis.lengths), np.float64)

    def rows(self, basis: Basis, places: Sequence[int]) -> Frame:
        """Return those of some members, ``[places, K]``."""
        found, own = np.zeros((len(places), len(basis.ids))), np.zeros(len(places))
        for row, (part, at) in enumerate(map(self.sample.place, places)):
            found[row], own[row] = self.products[part][at], self._lengths[part][at]
        return found / np.outer(own, basis.lengths) if basis.ids else found
