"""Which texts speak of what is asked: Okapi BM25 over the stems of their words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from .words import stems

__all__ = ["relevance"]

BM25_K1 = 1.2
BM25_B = 0.75


def relevance(query: str, texts: Sequence[str]) -> list[float]:
    """Return how much each text has to do with a query: 0 where no word is shared, in the order of the texts.

    A word counts for more the fewer texts hold it, for less the more often it stands there, and for less in a long text.

    Parameters
    ----------
    query
        Plain words; each counts once.
    texts
        What is searched; any number, none too.

    Returns
    -------
    list of float
        One score a text, at least 0; equal input, equal scores to the last bit.

    Notes
    -----
    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", with the idf that stays
    positive, `log(1 + (n - df + 0.5) / (df + 0.5))`.
    """
    documents = [Counter(stems(text)) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    weights = _weights(query, documents)
    return [
        _score(document, size / mean if mean else 0.0, weights)
        for document, size in zip(documents, lengths, strict=True)
    ]


def _weights(query: str, documents: Sequence[Counter[str]]) -> dict[str, float]:
    """Return the inverse document frequency of each stem of a query, in the order of the alphabet."""
    wanted = sorted(set(stems(query)))
    counts = {stem: sum(1 for document in documents if stem in document) for stem in wanted}
    return {stem: math.log1p((len(documents) - count + 0.5) / (count + 0.5)) for stem, count in counts.items()}


def _score(document: Counter[str], length: float, weights: dict[str, float]) -> float:
    """Return one text's score; `length` is its own over the mean."""
    damp = BM25_K1 * (1.0 - BM25_B + BM25_B * length)
    return sum(
        weight * document[stem] * (BM25_K1 + 1.0) / (document[stem] + damp)
        for stem, weight in weights.items()
        if stem in document
    )
