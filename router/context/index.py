"""The index of one document: the places of its chunks, their vectors, and the words of their windows."""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...ledger import JSON, compute_digest
from .chunks import CHUNK_TOKENS, OVERLAP_TOKENS, TOKEN_RULE, count_tokens, find_headings, split_chunks
from .terms import StemCounts
from .vectors import VECTOR_LENGTH, VECTORS_NAME, TextVectors, embed_texts

WINDOW_TOKENS = 48
INDEX_FORMAT = 1
"""Increased whenever the same document would give other bytes, so that old cached indices are not read."""


def find_index_key(document: str) -> str:
    """Return the key of a document's index: the hash of everything that the index depends on."""
    parts: JSON = [INDEX_FORMAT, document, CHUNK_TOKENS, OVERLAP_TOKENS, TOKEN_RULE, VECTORS_NAME, VECTOR_LENGTH]
    return f"index:{compute_digest(parts)}"


@dataclass(frozen=True)
class Index:
    """The chunks of one document, and the words of their windows (a sentence or two each).

    A chunk has several subjects, and distant words in it are hardly related, so words are counted by window. Chunks and
    windows are embedded and counted together with the heading above them, which names what they call "the company".
    """

    places: NDArray[np.int64]
    """First, stop and tokens of each chunk, ``[chunks, 3]``."""
    tokens: int
    vectors: TextVectors
    terms: StemCounts
    owners: NDArray[np.int64]
    """The chunk of each window, ``[windows]``."""

    @classmethod
    def of(cls, text: str) -> Index:
        """Cut a text, embed its chunks, and count the words of their windows."""
        chunks = split_chunks(text)
        bodies = [text[chunk.first : chunk.stop] for chunk in chunks]
        above = _find_headings_above(text, [chunk.first for chunk in chunks])
        windows, owners = _cut_windows(bodies, above)
        return cls(
            np.array(chunks, dtype=np.int64).reshape(len(chunks), 3),
            count_tokens(text),
            embed_texts([f"{head}\n{body}" for head, body in zip(above, bodies, strict=True)]),
            StemCounts.of(windows),
            np.array(owners, dtype=np.int64),
        )

    def packed(self) -> bytes:
        """Return the index as bytes."""
        out = io.BytesIO()
        np.savez(
            out,
            places=self.places,
            tokens=np.int64(self.tokens),
            vectors=self.vectors,
            codes=self.terms.codes,
            counts=self.terms.counts,
            bounds=self.terms.bounds,
            owners=self.owners,
        )
        return out.getvalue()

    @classmethod
    def unpacked(cls, body: bytes) -> Index:
        """Return the index that was packed."""
        with np.load(io.BytesIO(body), allow_pickle=False) as archive:
            terms = StemCounts(archive["codes"], archive["counts"], archive["bounds"])
            return cls(archive["places"], int(archive["tokens"]), archive["vectors"], terms, archive["owners"])


def _find_headings_above(text: str, firsts: Sequence[int]) -> list[str]:
    """Return the heading above each chunk; empty where there is none, or the chunk begins with it."""
    headings = find_headings(text)
    starts = [start for start, _ in headings]
    places = [bisect_left(starts, first) - 1 for first in firsts]
    within = [at + 1 < len(starts) and starts[at + 1] == first for at, first in zip(places, firsts, strict=True)]
    return [headings[at][1] if at >= 0 and not own else "" for at, own in zip(places, within, strict=True)]


def _cut_windows(bodies: Sequence[str], above: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the windows of all chunks under their headings, and the chunk of each."""
    windows, owners = [], []
    for owner, (body, head) in enumerate(zip(bodies, above, strict=True)):
        headings = find_headings(body)
        for first, stop, _ in split_chunks(body, most_tokens=WINDOW_TOKENS, overlap=0):
            before = [words for start, words in headings if start < first]
            windows.append(f"{before[-1] if before else head}\n{body[first:stop]}")
            owners.append(owner)
    return windows, owners
