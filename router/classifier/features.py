"""A prompt as numbers: hashed words, pairs of words and runs of letters; the same everywhere, and in microseconds."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .frames import strip_frames

FEATURE_BUCKETS = 1 << 18
"""Rows of the weights; what is hashed to one row shares it."""
HASHED_HEAD_CHARS, HASHED_TAIL_CHARS = 3_000, 1_000
"""Characters of a long prompt that are looked at: its beginning, and its end, where the question often stands."""
RUN_LENGTHS = (2, 3, 4, 5)
"""Lengths of the runs, in bytes of UTF-8."""
MARK_BUCKETS, MARK_RUN_LENGTH = 1 << 16, 4
"""Numbers that a mark may have; length of the runs that are marks."""
_WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
_FACTOR, _MIX = np.uint32(0x01000193), np.uint32(0x85EBCA6B)


@dataclass(frozen=True)
class Features:
    """Rows of the weights that a prompt touches, and how strongly; its words have length one together, and so have its runs."""

    rows: NDArray[np.int64]
    weights: NDArray[np.float32]


def features(prompt: str, rarity: NDArray[np.float32]) -> Features:
    """Return the features of a prompt; case, spacing and the digits of its numbers are left out of account.

    `rarity` has a number for each bucket: what is in few prompts tells more (inverse document frequency).
    """
    return weigh_text(normalise_prompt(prompt), rarity)


def weigh_text(text: str, rarity: NDArray[np.float32]) -> Features:
    """Return the features of a text in its one spelling, see `features`."""
    words, runs = _weigh_hashes(_words(text), rarity), _weigh_hashes(_runs(text), rarity)
    return Features(np.concatenate([words.rows, runs.rows]), np.concatenate([words.weights, runs.weights]))


def buckets(prompt: str) -> NDArray[np.int64]:
    """Return the rows that a prompt touches, each once: of these the rarity is counted."""
    text = normalise_prompt(prompt)
    return np.unique(np.concatenate([_words(text), _runs(text)]) % np.uint32(FEATURE_BUCKETS)).astype(np.int64)


def marks(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the words and pairs, and the runs of four letters, by which a text in its one spelling is found; each once."""
    words, runs = (
        np.unique(each % np.uint32(MARK_BUCKETS)).astype(np.int64)
        for each in (_words(text), _runs(text, (MARK_RUN_LENGTH,)))
    )
    return words, runs


def normalise_prompt(prompt: str) -> str:
    """Return the part of a prompt that is looked at, in the one spelling in which it is."""
    cut = (
        prompt
        if len(prompt) <= HASHED_HEAD_CHARS + HASHED_TAIL_CHARS
        else f"{prompt[:HASHED_HEAD_CHARS]} {prompt[-HASHED_TAIL_CHARS:]}"
    )
    folded = unicodedata.normalize("NFKC", strip_frames(cut)).lower()
    return re.sub(r"\d", "0", " ".join(folded.split()))


def _words(text: str) -> NDArray[np.uint32]:
    """Return the hash of each word and of each pair of neighbours."""
    words = [crc32(word.encode(errors="replace")) for word in _WORD_OR_SIGN.findall(text)]
    single = np.array([0, *words, 0], dtype=np.uint32)
    pairs = _mix_bits(single[:-1] * _FACTOR + single[1:])
    return np.concatenate([single[1:-1], pairs])


def _runs(text: str, lengths: tuple[int, ...] = RUN_LENGTHS) -> NDArray[np.uint32]:
    """Return the hash of each run of letters; every length has hashes of its own."""
    letters = np.frombuffer(f" {text} ".encode(errors="replace"), dtype=np.uint8).astype(np.uint32)
    found = [np.zeros(0, dtype=np.uint32)]
    for length in lengths:
        if len(letters) < length:
            break
        hashed = np.full(len(letters) - length + 1, length, dtype=np.uint32)
        for place in range(length):
            hashed = hashed * _FACTOR + letters[place : place + len(hashed)]
        found.append(_mix_bits(hashed))
    return np.concatenate(found)


def _mix_bits(hashed: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Spread what differs in a few bits over all of them."""
    spread = (hashed ^ (hashed >> np.uint32(15))) * _MIX
    return np.asarray(spread ^ (spread >> np.uint32(13)))


def _weigh_hashes(hashes: NDArray[np.uint32], rarity: NDArray[np.float32]) -> Features:
    """Return each row once, weighted by its rarity and the logarithm of how often it came; together of length one."""
    rows, counts = np.unique(hashes % np.uint32(FEATURE_BUCKETS), return_counts=True)
    weights = (1.0 + np.log(counts)) * rarity[rows]
    norm = float(np.sqrt(np.square(weights).sum())) or 1.0
    return Features(rows.astype(np.int64), (weights / norm).astype(np.float32))
