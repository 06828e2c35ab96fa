"""Which texts speak of what is asked: Okapi BM25 over word counts that were taken once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .words import Codes, hash_words, words

K1 = 1.2
B = 0.75


@dataclass(frozen=True)
class StemCounts:
    """The stems of each text with their counts, those of text i from `bounds[i]` to `bounds[i + 1]`."""

    codes: Codes
    counts: NDArray[np.int32]
    bounds: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> StemCounts:
        """Count the stems of some texts."""
        codes, lengths = hash_words([words(text) for text in texts])
        owner = np.repeat(np.arange(len(texts)), lengths)
        order = np.lexsort((codes, owner))
        codes, owner = codes[order], owner[order]
        new = np.ones(len(codes), dtype=bool)
        new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(codes))).astype(np.int32)
        bounds = np.searchsorted(owner[starts], np.arange(len(texts) + 1))
        return cls(codes[starts], counts, bounds.astype(np.int64))

    @classmethod
    def joined(cls, parts: Sequence[StemCounts]) -> StemCounts:
        """Return several collections in a row."""
        ends = np.cumsum([0, *(part.bounds[-1] for part in parts)])
        bounds = [part.bounds[:-1] + ends[at] for at, part in enumerate(parts)]
        return cls(
            np.concatenate([np.zeros(0, np.uint64), *(part.codes for part in parts)]),
            np.concatenate([np.zeros(0, np.int32), *(part.counts for part in parts)]),
            np.concatenate([*bounds, ends[-1:]]).astype(np.int64),
        )


def bm25_scores(query: str, terms: StemCounts) -> NDArray[np.float64]:
    """Return how much each text has to do with a query: 0 where no stem is shared.

    Notes
    -----
    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", with the idf that stays
    positive, `log(1 + (n - df + 0.5) / (df + 0.5))`. Each stem of the query counts once.
    """
    n = len(terms.bounds) - 1
    asked = np.unique(hash_words([words(query)])[0])
    held = np.flatnonzero(np.isin(terms.codes, asked))
    if not len(held):
        return np.zeros(n)
    place = np.searchsorted(asked, terms.codes[held])
    df = np.bincount(place, minlength=len(asked))
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    lengths = np.diff(np.concatenate([[0], np.cumsum(terms.counts)])[terms.bounds])
    owner = np.searchsorted(terms.bounds, held, side="right") - 1
    count = terms.counts[held]
    damp = K1 * (1.0 - B + B * lengths[owner] / lengths.mean())
    weights = idf[place] * count * (K1 + 1.0) / (count + damp)
    return np.bincount(owner, weights, n).astype(np.float64, copy=False)
