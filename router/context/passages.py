"""Retrieval: the passages of documents that match a query best, within a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..calls.task import Sensitivity
from .chunks import count_tokens
from .index import Index
from .terms import StemCounts, bm25_scores, split_words
from .vectors import TextVectors

FUSION_OFFSET = 60
"""The constant of reciprocal rank fusion, as in its paper."""
VERBATIM_CHUNKS = 50
"""Number of chunks, the best by BM25, that are searched for the query verbatim."""
WORDS_WEIGHT = 2
"""Votes of the words for each vote of the vectors; measured by bench/context.py."""
MIN_VERBATIM_WORDS = 3
"""Minimum words of a query for the verbatim search."""
MAX_MISFITS = 20
"""Number of chunks that may be too long for the remaining tokens before the search ends."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document, `text[first:stop]` of it, with the document's label.

    `rank` is the rank of its best chunk among all ranked chunks, from 1; a passage may contain several chunks.
    """

    document: str
    first: int
    stop: int
    text: str
    tokens: int
    sensitivity: Sensitivity
    rank: int


@dataclass(frozen=True)
class PassageSource:
    """A document with its index, to be searched."""

    document: str
    text: str
    sensitivity: Sensitivity
    index: Index


@dataclass(frozen=True)
class Ranked:
    """A chunk that matches the query: the number of its source, its first character and its stop."""

    source: int
    first: int
    stop: int


def rank_chunks(query: str, vector: TextVectors, sources: Sequence[PassageSource]) -> list[Ranked]:
    """Return the chunks that match a query, best first.

    Reciprocal rank fusion, the sum of 1 / (60 + rank) (Cormack, Clarke and Büttcher 2009), of BM25 of a chunk's best
    window, counted twice, and the cosine of its embedding. A chunk that contains the whole query verbatim gets two more
    first votes. Ties keep the order of sources and chunks.

    Parameters
    ----------
    query : str
    vector : array, float32, [dimension]
        Embedding of the query.
    sources : sequence of PassageSource
    """
    places = [(at, first, stop) for at, source in enumerate(sources) for first, stop, _ in source.index.places.tolist()]
    if not places:
        return []
    weight = score_by_words(query, sources)
    cosines = np.concatenate([source.index.vectors for source in sources]).astype(np.float64) @ vector
    score = WORDS_WEIGHT * (
        _count_votes(weight) + _count_verbatim_votes(query, weight, places, sources)
    ) + _count_votes(cosines)
    return [Ranked(*places[at]) for at in _order_positive(score)]


def interleave_orders(orders: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Return the chunks of several queries, the best of each first, then the second best; each chunk once."""
    places = range(max(map(len, orders), default=0))
    return list(dict.fromkeys(order[place] for place in places for order in orders if place < len(order)))


def score_by_words(query: str, sources: Sequence[PassageSource]) -> NDArray[np.float64]:
    """Return the BM25 of each chunk's best window, float64, ``[chunks of all sources]``; 0 without a common stem."""
    counts = [len(source.index.places) for source in sources]
    before = np.cumsum([0, *counts[:-1]])
    owners = np.concatenate([source.index.owners + start for source, start in zip(sources, before, strict=True)])
    best = np.zeros(sum(counts))
    np.maximum.at(best, owners, bm25_scores(query, StemCounts.joined([source.index.terms for source in sources])))
    return best


def gather_passages(order: Sequence[Ranked], sources: Sequence[PassageSource], most_tokens: int) -> list[Passage]:
    """Return the best chunks that fit into `most_tokens`, best first; adjacent and overlapping chunks are joined."""
    passages: list[Passage] = []
    misfits = 0
    for rank, chunk in enumerate(order, 1):
        source = sources[chunk.source]
        near = [passage for passage in passages if _touch(passage, source.document, chunk)]
        first, stop = (
            min([chunk.first, *(passage.first for passage in near)]),
            max([chunk.stop, *(passage.stop for passage in near)]),
        )
        text = source.text[first:stop]
        best = min([rank, *(passage.rank for passage in near)])
        joined = Passage(source.document, first, stop, text, count_tokens(text), source.sensitivity, best)
        others = [passage for passage in passages if passage not in near]
        if sum(passage.tokens for passage in others) + joined.tokens <= most_tokens:
            passages = [*others, joined]
        elif (misfits := misfits + 1) == MAX_MISFITS:
            break
    return sorted(passages, key=lambda passage: passage.rank)


def _touch(passage: Passage, document: str, chunk: Ranked) -> bool:
    return passage.document == document and passage.first <= chunk.stop and chunk.first <= passage.stop


def _order_positive(score: NDArray[np.float64]) -> list[int]:
    """Return the indices of the positive scores, highest first, ties in their order."""
    order = np.argsort(-score, kind="stable")
    return [int(at) for at in order[: int(np.count_nonzero(score > 0))]]


def _count_votes(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each chunk's vote by its rank; 0 where its score is not positive."""
    votes = np.zeros(len(score))
    order = _order_positive(np.round(score, 6))  # the last digits of a product depend on the machine
    votes[order] = 1.0 / (FUSION_OFFSET + 1.0 + np.arange(len(order)))
    return votes


def _count_verbatim_votes(
    query: str, weight: NDArray[np.float64], places: Sequence[tuple[int, int, int]], sources: Sequence[PassageSource]
) -> NDArray[np.float64]:
    """Return a first vote for each chunk that contains the whole query."""
    words = split_words(query)
    votes = np.zeros(len(weight))
    if len(words) >= MIN_VERBATIM_WORDS:
        for place in _order_positive(weight)[:VERBATIM_CHUNKS]:
            at, first, stop = places[place]
            if f" {' '.join(words)} " in f" {' '.join(split_words(sources[at].text[first:stop]))} ":
                votes[place] = 1.0 / (FUSION_OFFSET + 1.0)
    return votes
