"""The words of a text as numbers: case folded, endings taken off, hashed, the same on every machine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.uint64]
_WORD_OR_NUMBER = re.compile(r"[^\W_]+(?:[.,]\d+)*")
_WORD_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "edly",
    "ness",
    "ies",
    "ers",
    "ed",
    "es",
    "er",
    "ly",
    "s",
)
MIN_HASHED_STEM_LETTERS = 4
"""Letters that remain at least when an ending is taken off."""


def fold_text(text: str) -> str:
    """Return a text as it is compared: one spelling of each sign, no case."""
    return unicodedata.normalize("NFKC", text).casefold()


def words(text: str) -> list[str]:
    """Return the words and numbers of a text, plain, in order."""
    return _WORD_OR_NUMBER.findall(fold_text(text))


def stem(word: str) -> str:
    """Return a word without its English ending, crudely: what is written alike should be counted alike."""
    for ending in _WORD_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_HASHED_STEM_LETTERS:
            return word[: -len(ending)]
    return word


def hash_term(term: str) -> int:
    """Return a term's number, of 64 bits."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hash_words(texts: Sequence[Sequence[str]]) -> tuple[Codes, NDArray[np.int64]]:
    """Return the numbers of all words of some texts in a row, and how many each text has."""
    known: dict[str, int] = {}
    numbers = [known[word] if word in known else known.setdefault(word, hash_term(stem(word))) for each in texts for word in each]  # fmt: skip
    return np.array(numbers, dtype=np.uint64), np.array([len(each) for each in texts], dtype=np.int64)


def mix_codes(codes: Codes, salt: int) -> Codes:
    """Return other numbers for the same terms, spread over all bits (the finisher of MurmurHash3)."""
    with np.errstate(over="ignore"):
        out = codes ^ np.uint64(salt * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            out = (out ^ (out >> np.uint64(33))) * np.uint64(factor)
        spread: Codes = out ^ (out >> np.uint64(33))
        return spread
