"""The nearest training prompts, found in an index of words and runs of letters: their intents and difficulty."""

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
"""Power of the likeness by which a neighbour counts."""
MIN_PROMPTS_PER_MARK, MAX_PROMPTS_PER_MARK = 2, 300
"""Prompts in which a mark occurs that tells: one that is everywhere says nothing, and takes the most time."""
SCORE_WEIGHTS = np.array([0.2] * len(INTENTS) + [0.5])
"""Of what neighbours say beside the linear scores: least surprise on writers left out of the training prompts in turn."""
MIN_INTENT_SHARE, MIN_HARD_SHARE = 0.02, 0.05
"""Shares below which none is believed, of few neighbours."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Index:
    """In which prompts a mark occurs: ``counts[mark]`` of the `owners` after one another, in the order of the marks."""

    counts: NDArray[np.uint16]
    owners: NDArray[np.uint16]
    prompts: int

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts, dtype=np.int64)])

    @cached_property
    def _squared_idf(self) -> Numbers:
        """The square of each mark's inverse document frequency; 0 for one that no prompt has."""
        rarity = 1.0 + np.log((1 + self.prompts) / (1.0 + self.counts))
        return np.where(self.counts > 0, np.square(rarity), 0.0)

    @cached_property
    def _lengths(self) -> Numbers:
        summed = np.bincount(self.owners, np.repeat(self._squared_idf, self.counts), self.prompts)
        return np.sqrt(np.maximum(summed, 1e-12))

    def likeness(self, found: NDArray[np.int64]) -> Numbers:
        """Return the cosine of each prompt to a text of these marks, each once."""
        tells = self._squared_idf[found]
        known = found[tells > 0]
        if not len(known):
            return np.zeros(self.prompts)
        counts = self.counts[known].astype(np.int64)
        ends = np.cumsum(counts)
        at = np.repeat(self._starts[known] - ends + counts, counts) + np.arange(ends[-1])
        summed = np.bincount(self.owners[at], np.repeat(self._squared_idf[known], counts), self.prompts)
        return np.asarray(summed / self._lengths / np.sqrt(tells.sum()))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Prompts with their labels, found by the words and the runs of letters that they share with a text.

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
        """Return what the nearest say of a text in its one spelling, as `model.Vectors` does, weighed; zeros where none is near."""
        like = sum(
            (index.likeness(each) for index, each in zip((self.words, self.runs), hash_marks(text), strict=True)), 0.0
        )
        like = np.asarray(like)
        least = np.partition(like, -NEAREST_COUNT)[-NEAREST_COUNT] if len(like) > NEAREST_COUNT else 0.0
        near = np.flatnonzero((like >= least) & (like > 0))  # all that are equally near: no order to hang on
        if not len(near):
            return np.zeros(len(SCORE_WEIGHTS))
        share = np.power(like[near], SHARPNESS)
        share /= share.sum()
        wanted = np.bincount(self.intents[near], share, len(INTENTS))
        hard = float(np.clip(share @ self.hard[near], MIN_HARD_SHARE, 1.0 - MIN_HARD_SHARE))
        return np.asarray(
            SCORE_WEIGHTS * np.r_[np.log(np.maximum(wanted, MIN_INTENT_SHARE)), np.log(hard / (1.0 - hard))]
        )

    @classmethod
    def of(cls, texts: Sequence[str], intents: Sequence[int], hard: Sequence[bool]) -> Self:
        """Return the index of texts in their one spelling."""
        found = [hash_marks(text) for text in texts]
        words, runs = (_build_index([each[kind] for each in found]) for kind in (0, 1))
        return cls(np.array(intents, np.uint8), np.array(hard, bool), words, runs)

    @classmethod
    def held(cls, arrays: Mapping[str, NDArray[np.generic]]) -> Self:
        """Return what `arrays` gave.

        Raises
        ------
        KeyError, ValueError
            The arrays are of another kind.
        """
        intents, hard = np.asarray(arrays["near_intents"], np.uint8), np.asarray(arrays["near_hard"], bool)
        kinds = [
            _Index(
                np.asarray(arrays[f"near_{kind}"], np.uint16),
                np.asarray(arrays[f"near_{kind}_in"], np.uint16),
                len(hard),
            )
            for kind in ("words", "runs")
        ]
        for each in kinds:
            if len(each.counts) != MARK_BUCKETS or int(each.counts.sum()) != len(each.owners):
                raise ValueError("an index whose counts are not those of its prompts")
        return cls(intents, hard, *kinds)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all that is kept, by name."""
        return {
            "near_intents": self.intents, "near_hard": self.hard, "near_words": self.words.counts,
            "near_words_in": self.words.owners, "near_runs": self.runs.counts, "near_runs_in": self.runs.owners,
        }  # fmt: skip


def _build_index(found: Sequence[NDArray[np.int64]]) -> _Index:
    rows = np.concatenate(found)
    owners = np.repeat(np.arange(len(found)), [len(each) for each in found])
    counts = np.bincount(rows, minlength=MARK_BUCKETS)
    told = (counts >= MIN_PROMPTS_PER_MARK) & (counts <= MAX_PROMPTS_PER_MARK)
    kept = told[rows]
    order = np.lexsort((owners[kept], rows[kept]))
    return _Index(np.where(told, counts, 0).astype(np.uint16), owners[kept][order].astype(np.uint16), len(found))
