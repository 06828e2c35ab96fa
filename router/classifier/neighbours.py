"""The intents and difficulty of the nearest training prompts, found in an index of words and runs of letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .features import MARK_BUCKETS, hash_marks
from .prompt_reading import INTENTS

NEAREST_COUNT = 7
SHARPNESS = 4
"""Exponent of the likeness in a neighbour's weight."""
MIN_PROMPTS_PER_MARK, MAX_PROMPTS_PER_MARK = 2, 300
"""Bounds of the prompts in which an indexed mark occurs: a mark of all prompts is uninformative, and the slowest."""
SCORE_WEIGHTS = np.array([0.2] * len(INTENTS) + [0.5])
"""Weights of the neighbours' log-odds beside the linear scores: lowest log loss on writers left out in turn."""
MIN_INTENT_SHARE, MIN_HARD_SHARE = 0.02, 0.05
"""Lower bounds of the neighbours' shares, since there are few neighbours."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Index:
    """The prompts of each mark: the next ``counts[mark]`` of the `owners`, in the order of the marks."""

    counts: NDArray[np.uint16]
    owners: NDArray[np.uint16]
    prompts: int

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts, dtype=np.int64)])

    @cached_property
    def _squared_idf(self) -> Numbers:
        """The squared inverse document frequency of each mark; 0 for a mark of no prompt."""
        rarity = 1.0 + np.log((1 + self.prompts) / (1.0 + self.counts))
        return np.where(self.counts > 0, np.square(rarity), 0.0)

    @cached_property
    def _lengths(self) -> Numbers:
        summed = np.bincount(self.owners, np.repeat(self._squared_idf, self.counts), self.prompts)
        return np.sqrt(np.maximum(summed, 1e-12))

    def likeness(self, marks: NDArray[np.int64]) -> Numbers:
        """Return the cosine ``[prompts]`` of each prompt and a text with these marks, each given once."""
        squared = self._squared_idf[marks]
        indexed = marks[squared > 0]
        if not len(indexed):
            return np.zeros(self.prompts)
        counts = self.counts[indexed].astype(np.int64)
        ends = np.cumsum(counts)
        at = np.repeat(self._starts[indexed] - ends + counts, counts) + np.arange(ends[-1])
        summed = np.bincount(self.owners[at], np.repeat(self._squared_idf[indexed], counts), self.prompts)
        return np.asarray(summed / self._lengths / np.sqrt(squared.sum()))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Training prompts with their classes, found by the words and runs of letters that they share with a text.

    Attributes
    ----------
    intents : array, uint8, [prompts]
        Numbers of `INTENTS`.
    hard : array, bool, [prompts]
    words, runs : _Index
    """

    intents: NDArray[np.uint8]
    hard: NDArray[np.bool_]
    words: _Index
    runs: _Index

    def scores(self, text: str) -> Numbers:
        """Return the weighted log-odds ``[intents + 1]`` of a normalised text by its neighbours; zeros without any."""
        likeness = sum(
            (index.likeness(marks) for index, marks in zip((self.words, self.runs), hash_marks(text), strict=True)), 0.0
        )
        likeness = np.asarray(likeness)
        least = np.partition(likeness, -NEAREST_COUNT)[-NEAREST_COUNT] if len(likeness) > NEAREST_COUNT else 0.0
        near = np.flatnonzero((likeness >= least) & (likeness > 0))  # ties included, so that no order matters
        if not len(near):
            return np.zeros(len(SCORE_WEIGHTS))
        share = np.power(likeness[near], SHARPNESS)
        share /= share.sum()
        intent_shares = np.bincount(self.intents[near], share, len(INTENTS))
        hard = float(np.clip(share @ self.hard[near], MIN_HARD_SHARE, 1.0 - MIN_HARD_SHARE))
        return np.asarray(
            SCORE_WEIGHTS * np.r_[np.log(np.maximum(intent_shares, MIN_INTENT_SHARE)), np.log(hard / (1.0 - hard))]
        )

    @classmethod
    def of(cls, texts: Sequence[str], intents: Sequence[int], hard: Sequence[bool]) -> Self:
        """Return the index of normalised texts."""
        marks = [hash_marks(text) for text in texts]
        words, runs = (_build_index([pair[kind] for pair in marks]) for kind in (0, 1))
        return cls(np.array(intents, np.uint8), np.array(hard, bool), words, runs)

    @classmethod
    def held(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Return the neighbours whose `arrays` were saved.

        Raises
        ------
        KeyError, ValueError
            The arrays are not those of neighbours.
        """
        intents, hard = np.asarray(arrays["near_intents"], np.uint8), np.asarray(arrays["near_hard"], bool)
        indices = [
            _Index(
                np.asarray(arrays[f"near_{kind}"], np.uint16),
                np.asarray(arrays[f"near_{kind}_in"], np.uint16),
                len(hard),
            )
            for kind in ("words", "runs")
        ]
        for index in indices:
            if len(index.counts) != MARK_BUCKETS or int(index.counts.sum()) != len(index.owners):
                raise ValueError("an index whose counts are not those of its prompts")
        return cls(intents, hard, *indices)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays to save, by name."""
        return {
            "near_intents": self.intents,
            "near_hard": self.hard,
            "near_words": self.words.counts,
            "near_words_in": self.words.owners,
            "near_runs": self.runs.counts,
            "near_runs_in": self.runs.owners,
        }


def _build_index(marks: Sequence[NDArray[np.int64]]) -> _Index:
    rows = np.concatenate(marks)
    owners = np.repeat(np.arange(len(marks)), [len(prompt_marks) for prompt_marks in marks])
    counts = np.bincount(rows, minlength=MARK_BUCKETS)
    informative = (counts >= MIN_PROMPTS_PER_MARK) & (counts <= MAX_PROMPTS_PER_MARK)
    selected = informative[rows]
    order = np.lexsort((owners[selected], rows[selected]))
    return _Index(
        np.where(informative, counts, 0).astype(np.uint16), owners[selected][order].astype(np.uint16), len(marks)
    )
