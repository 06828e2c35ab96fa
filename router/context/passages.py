"""Retrieval: the passages of some documents that match a query best, within a number of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..calls.task import Sensitivity
from .chunks import Tokenizer
from .index import Index
from .terms import StemCounts, bm25_scores, split_words
from .vectors import TextVectors

FUSION_OFFSET = 60
"""The constant of reciprocal rank fusion, as its authors have it."""
VERBATIM_CHUNKS = 50
"""Among so many chunks, those of most weight by their words, it is looked for the query itself."""
WORDS_WEIGHT = 2
"""Votes of the words, where the vectors have one: measured, see benchmarks/context.py."""
MIN_VERBATIM_WORDS = 3
"""Words of a query at least that it is looked for."""
MAX_MISFITS = 20
"""After so many chunks that are too long for what is left, no more are tried."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document, `text[first:stop]` of it, with the document's label.

    `rank` is the place of its best chunk among all that were asked, from 1; a passage may hold several chunks.
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
    """A document as it is searched."""

    document: str
    text: str
    sensitivity: Sensitivity
    index: Index


@dataclass(frozen=True)
class Ranked:
    """A chunk that has to do with the query: of which source, from where to where."""

    source: int
    first: int
    stop: int


def rank_chunks(query: str, vector: TextVectors, sources: Sequence[PassageSource]) -> list[Ranked]:
    """Return the chunks that have to do with a query, best first.

    BM25 of a chunk's best window, twice, and the cosine of its embedding are fused by their ranks, sum of 1 / (60 + rank)
    (Cormack, Clarke and Büttcher 2009); a chunk that holds the whole query word by word has two more votes. Ties go by the
    order of sources and chunks.
    """
    places = [(at, first, stop) for at, source in enumerate(sources) for first, stop, _ in source.index.places.tolist()]
    if not places:
        return []
    weight = score_by_words(query, sources)
    cosines = np.concatenate([source.index.vectors for source in sources]).astype(np.float64) @ vector
    score = WORDS_WEIGHT * (_votes(weight) + _verbatim_votes(query, weight, places, sources)) + _votes(cosines)
    return [Ranked(*places[at]) for at in _order_positive(score)]


def interleave_orders(orders: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Return the chunks of several queries, the best of each first, then the second best; each chunk once."""
    places = range(max(map(len, orders), default=0))
    return list(dict.fromkeys(order[place] for place in places for order in orders if place < len(order)))


def score_by_words(query: str, sources: Sequence[PassageSource]) -> NDArray[np.float64]:
    """Return the BM25 of each chunk's best window."""
    counts = [len(source.index.places) for source in sources]
    before = np.cumsum([0, *counts[:-1]])
    owners = np.concatenate([source.index.owners + start for source, start in zip(sources, before, strict=True)])
    best = np.zeros(sum(counts))
    np.maximum.at(best, owners, bm25_scores(query, StemCounts.joined([source.index.terms for source in sources])))
    return best


def gather_passages(
    order: Sequence[Ranked], sources: Sequence[PassageSource], most_tokens: int, counter: Tokenizer
) -> list[Passage]:
    """Return the best chunks that fit, those that touch or overlap made one, each character once, best first."""
    taken: list[Passage] = []
    misfits = 0
    for rank, chunk in enumerate(order, 1):
        source = sources[chunk.source]
        near = [each for each in taken if _touch(each, source.document, chunk)]
        first, stop = (
            min([chunk.first, *(each.first for each in near)]),
            max([chunk.stop, *(each.stop for each in near)]),
        )
        text = source.text[first:stop]
        best = min([rank, *(each.rank for each in near)])
        made = Passage(source.document, first, stop, text, counter.count(text), source.sensitivity, best)
        kept = [each for each in taken if each not in near]
        if sum(each.tokens for each in kept) + made.tokens <= most_tokens:
            taken = [*kept, made]
        elif (misfits := misfits + 1) == MAX_MISFITS:
            break
    return sorted(taken, key=lambda each: each.rank)


def _touch(passage: Passage, document: str, chunk: Ranked) -> bool:
    return passage.document == document and passage.first <= chunk.stop and chunk.first <= passage.stop


def _order_positive(score: NDArray[np.float64]) -> list[int]:
    """Return the places of what is above zero, highest first, ties in their order."""
    order = np.argsort(-score, kind="stable")
    return [int(at) for at in order[: int(np.count_nonzero(score > 0))]]


def _votes(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each chunk's vote by its rank; none where it has nothing to do with the query."""
    votes = np.zeros(len(score))
    order = _order_positive(np.round(score, 6))  # the last digits of a product hang on the machine
    votes[order] = 1.0 / (FUSION_OFFSET + 1.0 + np.arange(len(order)))
    return votes


def _verbatim_votes(
    query: str, weight: NDArray[np.float64], places: Sequence[tuple[int, int, int]], sources: Sequence[PassageSource]
) -> NDArray[np.float64]:
    """Return one more first vote for chunks that hold the whole query."""
    asked = split_words(query)
    votes = np.zeros(len(weight))
    if len(asked) >= MIN_VERBATIM_WORDS:
        for place in _order_positive(weight)[:VERBATIM_CHUNKS]:
            at, first, stop = places[place]
            if f" {' '.join(asked)} " in f" {' '.join(split_words(sources[at].text[first:stop]))} ":
                votes[place] = 1.0 / (FUSION_OFFSET + 1.0)
    return votes
