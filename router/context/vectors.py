"""Texts as vectors of hashed n-grams, whose cosine measures similar spelling; no model, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .terms import Codes, count_codes, hash_words, mix_codes, split_words

TextVectors: TypeAlias = NDArray[np.float32]
VECTOR_LENGTH = 512
VECTORS_NAME = f"alphaloom-hashed-1/{VECTOR_LENGTH}"
"""A part of the key of stored vectors; its number increases whenever vectors change."""
SLOTS = 4
WEIGHTS = (1.0, 0.5, 0.25)
"""Weights of a word, of two adjacent words, and of a run of letters."""
HASHING_BATCH = 64
GRAM_LENGTHS = (3, 4, 5)
SHORT_WORD_LETTERS = 3
"""Words of at most so many letters have a quarter of the weight: most are function words."""


def embed_texts(texts: Sequence[str]) -> TextVectors:
    """Return rows of length 1, float32, ``[texts, VECTOR_LENGTH]``; all zero for a text without words.

    They are hashed n-grams of words and letters, weighted by 1 + log(count), under a sparse signed random projection.
    They measure spelling, not meaning: "dividend" is near "dividends" and far from "payout".

    Notes
    -----
    Each n-gram is added to `SLOTS` coordinates with random signs, one in each block of a vector (Kane and Nelson 2014,
    "Sparser Johnson-Lindenstrauss Transforms", block construction). No weight depends on other texts, so vectors do not
    change with the collection.
    """
    rows = [_embed_batch(texts[at : at + HASHING_BATCH]) for at in range(0, len(texts), HASHING_BATCH)]
    return np.concatenate([np.zeros((0, VECTOR_LENGTH), np.float32), *rows])


def _embed_batch(texts: Sequence[str]) -> TextVectors:
    words = [split_words(text) for text in texts]
    codes, counts = hash_words(words)
    owner = np.repeat(np.arange(len(texts)), counts)
    short = np.array(
        [len(word) <= SHORT_WORD_LETTERS and not word[0].isdigit() for line in words for word in line], dtype=bool
    )
    total = np.zeros((len(texts), VECTOR_LENGTH))
    one, two, letters = WEIGHTS
    for is_short in (False, True):
        chosen = short == is_short
        _add(total, mix_codes(codes[chosen], 1), owner[chosen], one / 4 if is_short else one)
    within = owner[1:] == owner[:-1]
    pairs = mix_codes(codes[:-1], 2) ^ mix_codes(codes[1:], 3)
    _add(total, pairs[within], owner[1:][within], two)
    for size in GRAM_LENGTHS:
        _add(total, *_hash_grams(words, size), letters)
    lengths = np.linalg.norm(total, axis=1, keepdims=True)
    unit: TextVectors = np.divide(total, lengths, out=np.zeros_like(total), where=lengths > 0).astype(np.float32)
    return unit


def _add(total: NDArray[np.float64], codes: Codes, owner: NDArray[np.int64], weight: float) -> None:
    """Add n-grams of one kind to the vectors `total` of their texts (`owner`), in place."""
    codes, owner, counts = count_codes(codes, owner)
    weights = weight * (1.0 + np.log(counts))
    block = VECTOR_LENGTH // SLOTS
    for slot in range(SLOTS):
        drawn = mix_codes(codes, 10 + slot)
        place = (drawn >> np.uint64(1)) % np.uint64(block) + np.uint64(slot * block)
        signed = np.where(drawn & np.uint64(1), weights, -weights)
        cells = owner * VECTOR_LENGTH + place.astype(np.int64)
        total += np.bincount(cells, signed, total.size).reshape(total.shape)


def _hash_grams(words: Sequence[Sequence[str]], size: int) -> tuple[Codes, NDArray[np.int64]]:
    """Return the hashes of all runs of `size` bytes within words, and the text of each run."""
    bodies = [(" " + " ".join(line) + " ").encode("utf-8", "surrogatepass") for line in words]
    data = np.frombuffer(b"".join(bodies), dtype=np.uint8)
    owner = np.repeat(np.arange(len(bodies)), [len(body) for body in bodies])
    last = max(len(data) - size + 1, 0)
    codes, inner = np.zeros(last, dtype=np.uint64), np.ones(last, dtype=bool)
    for at in range(size):
        codes = codes << np.uint64(8) | data[at : at + last].astype(np.uint64)
        if 0 < at < size - 1:
            inner &= data[at : at + last] != ord(" ")  # a run may touch a word's edge, but not cross into the next word
    inner &= owner[:last] == owner[size - 1 :]
    return mix_codes(codes[inner], 100 + size), owner[:last][inner]
