"""Okapi BM25 over precomputed word counts; words are folded, stemmed and hashed, the same on every machine."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
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
"""Minimum letters of a word after its ending is removed."""


@dataclass(frozen=True)
class StemCounts:
    """The hashed stems of each text with their counts; those of text i are at `bounds[i]` to `bounds[i + 1]`.

    Attributes
    ----------
    codes : array, uint64, [stems of all texts]
    counts : array, int32, [stems of all texts]
    bounds : array, int64, [texts + 1]
    """

    codes: Codes
    counts: NDArray[np.int32]
    bounds: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> StemCounts:
        """Count the stems of texts."""
        codes, lengths = hash_words([split_words(text) for text in texts])
        codes, owner, counts = count_codes(codes, np.repeat(np.arange(len(texts)), lengths))
        bounds = np.searchsorted(owner, np.arange(len(texts) + 1))
        return cls(codes, counts.astype(np.int32), bounds.astype(np.int64))

    @classmethod
    def joined(cls, parts: Sequence[StemCounts]) -> StemCounts:
        """Concatenate collections of texts."""
        ends = np.cumsum([0, *(part.bounds[-1] for part in parts)])
        bounds = [part.bounds[:-1] + ends[at] for at, part in enumerate(parts)]
        return cls(
            np.concatenate([np.zeros(0, np.uint64), *(part.codes for part in parts)]),
            np.concatenate([np.zeros(0, np.int32), *(part.counts for part in parts)]),
            np.concatenate([*bounds, ends[-1:]]).astype(np.int64),
        )


def bm25_scores(query: str, terms: StemCounts) -> NDArray[np.float64]:
    """Return the BM25 score of each text for a query, float64, ``[texts]``; 0 without a common stem.

    Notes
    -----
    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", with the positive idf
    `log(1 + (n - df + 0.5) / (df + 0.5))`. Each stem of the query counts once.
    """
    n = len(terms.bounds) - 1
    stems = np.unique(hash_words([split_words(query)])[0])
    hits = np.flatnonzero(np.isin(terms.codes, stems))
    if not len(hits):
        return np.zeros(n)
    place = np.searchsorted(stems, terms.codes[hits])
    df = np.bincount(place, minlength=len(stems))
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    lengths = np.diff(np.concatenate([[0], np.cumsum(terms.counts)])[terms.bounds])
    owner = np.searchsorted(terms.bounds, hits, side="right") - 1
    count = terms.counts[hits]
    damp = K1 * (1.0 - B + B * lengths[owner] / lengths.mean())
    weights = idf[place] * count * (K1 + 1.0) / (count + damp)
    return np.bincount(owner, weights, n).astype(np.float64, copy=False)


def fold_text(text: str) -> str:
    """Return a text in NFKC and without case."""
    return unicodedata.normalize("NFKC", text).casefold()


def split_words(text: str) -> list[str]:
    """Return the words and numbers of a text, folded, in order."""
    return _WORD_OR_NUMBER.findall(fold_text(text))


def strip_ending(word: str) -> str:
    """Return a word without its English ending: a crude stemmer, so that forms of a word are counted together."""
    for ending in _WORD_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_HASHED_STEM_LETTERS:
            return word[: -len(ending)]
    return word


def hash_term(term: str) -> int:
    """Return the 64-bit hash of a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hash_words(texts: Sequence[Sequence[str]]) -> tuple[Codes, NDArray[np.int64]]:
    """Return the hashed stems of all words of the texts in a row, uint64, and the number of words of each, int64."""
    codes: dict[str, int] = {}
    hashes = [
        codes[word] if word in codes else codes.setdefault(word, hash_term(strip_ending(word)))
        for text in texts
        for word in text
    ]
    return np.array(hashes, dtype=np.uint64), np.array([len(text) for text in texts], dtype=np.int64)


def count_codes(codes: Codes, owner: NDArray[np.int64]) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """Return each text's codes once, in order, the text of each (`owner`), and how often it occurs there."""
    order = np.lexsort((codes, owner))
    codes, owner = codes[order], owner[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (codes[1:] != codes[:-1]) | (owner[1:] != owner[:-1])
    starts = np.flatnonzero(new)
    return codes[starts], owner[starts], np.diff(np.append(starts, len(codes)))


def mix_codes(codes: Codes, salt: int) -> Codes:
    """Return other hashes of the same terms, mixed over all bits by the finaliser of MurmurHash3; uint64."""
    with np.errstate(over="ignore"):
        out = codes ^ np.uint64(salt * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            out = (out ^ (out >> np.uint64(33))) * np.uint64(factor)
        spread: Codes = out ^ (out >> np.uint64(33))
        return spread
