"""Texts as vectors: hashed n-grams whose cosine measures similar spelling; without a model, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .terms import Codes, hash_words, mix_codes, split_words

TextVectors: TypeAlias = NDArray[np.float32]
HASHING_BATCH = 64
GRAM_LENGTHS = (3, 4, 5)
SHORT_WORD_LETTERS = 3
"""Words of so many letters or fewer count a quarter: most of them only hold a sentence together."""


class Embedder(Protocol):
    """What turns texts into vectors. The name is part of the key of every stored vector: another model, another name."""

    @property
    def name(self) -> str:
        """Return the name, with a version that changes whenever a vector would."""
        ...

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> TextVectors:
        """Return a row for each text, of length one; all zero where there is nothing to say of it."""
        ...


class HashedEmbedder:
    """Hashed n-grams of words and letters, weighed by 1 + log of their count, under a sparse signed random projection.

    It knows how words are written and not what they mean: "dividend" is near "dividends" and far from "payout".

    Parameters
    ----------
    dimension : int
        Length of a vector, a multiple of `SLOTS`.

    Notes
    -----
    Each n-gram is added to `SLOTS` coordinates with random signs, one in each block of a vector (Kane and Nelson 2014,
    "Sparser Johnson-Lindenstrauss Transforms", their block construction); no weight hangs on the other texts, so a
    vector never changes when the collection does.
    """

    SLOTS = 4
    WEIGHTS = (1.0, 0.5, 0.25)
    """Of a word, of two words in a row, and of a run of letters."""

    def __init__(self, dimension: int = 512) -> None:
        self.dimension = dimension
        self.name = f"alphaloom-hashed-1/{dimension}"

    def embed(self, texts: Sequence[str]) -> TextVectors:
        """Return a row for each text, of length one; all zero where there is no word."""
        rows = [self._batch(texts[at : at + HASHING_BATCH]) for at in range(0, len(texts), HASHING_BATCH)]
        return np.concatenate([np.zeros((0, self.dimension), np.float32), *rows])

    def _batch(self, texts: Sequence[str]) -> TextVectors:
        said = [split_words(text) for text in texts]
        numbers, counts = hash_words(said)
        owner = np.repeat(np.arange(len(texts)), counts)
        short = np.array(
            [len(word) <= SHORT_WORD_LETTERS and not word[0].isdigit() for each in said for word in each], dtype=bool
        )
        total = np.zeros((len(texts), self.dimension))
        one, two, letters = self.WEIGHTS
        for light in (False, True):
            chosen = short == light
            self._add(total, mix_codes(numbers[chosen], 1), owner[chosen], one / 4 if light else one)
        within = owner[1:] == owner[:-1]
        pairs = mix_codes(numbers[:-1], 2) ^ mix_codes(numbers[1:], 3)
        self._add(total, pairs[within], owner[1:][within], two)
        for size in GRAM_LENGTHS:
            self._add(total, *_grams(said, size), letters)
        lengths = np.linalg.norm(total, axis=1, keepdims=True)
        unit: TextVectors = np.divide(total, lengths, out=np.zeros_like(total), where=lengths > 0).astype(np.float32)
        return unit

    def _add(self, total: NDArray[np.float64], codes: Codes, owner: NDArray[np.int64], weight: float) -> None:
        """Add one kind of n-grams to the vectors of those that hold them."""
        order = np.lexsort((codes, owner))
        codes, owner = codes[order], owner[order]
        new = np.ones(len(codes), dtype=bool)
        new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(codes)))
        weights = weight * (1.0 + np.log(counts))
        block = self.dimension // self.SLOTS
        for slot in range(self.SLOTS):
            drawn = mix_codes(codes[starts], 10 + slot)
            place = (drawn >> np.uint64(1)) % np.uint64(block) + np.uint64(slot * block)
            signed = np.where(drawn & np.uint64(1), weights, -weights)
            cells = owner[starts] * self.dimension + place.astype(np.int64)
            total += np.bincount(cells, signed, total.size).reshape(total.shape)


def _grams(said: Sequence[Sequence[str]], size: int) -> tuple[Codes, NDArray[np.int64]]:
    """Return the numbers of all runs of so many bytes within the words of some texts, and whose they are."""
    bodies = [(" " + " ".join(each) + " ").encode("utf-8", "surrogatepass") for each in said]
    data = np.frombuffer(b"".join(bodies), dtype=np.uint8)
    owner = np.repeat(np.arange(len(bodies)), [len(body) for body in bodies])
    last = max(len(data) - size + 1, 0)
    codes, inner = np.zeros(last, dtype=np.uint64), np.ones(last, dtype=bool)
    for at in range(size):
        codes = codes << np.uint64(8) | data[at : at + last].astype(np.uint64)
        if 0 < at < size - 1:
            inner &= data[at : at + last] != ord(" ")  # a run may begin or end a word, not go over into the next
    inner &= owner[:last] == owner[size - 1 :]
    return mix_codes(codes[inner], 100 + size), owner[:last][inner]
