"""What is worked out of a document once: where its chunks are, their vectors and their words."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...ledger import JSON, digest
from .chunks import ByteTokenizer, Chunk, Tokenizer, split
from .embedding import Embedder, Vectors
from .terms import Terms

FORMAT = 1
"""Goes up whenever the same document would give other bytes, so that what is cached of old is not read."""


@dataclass(frozen=True)
class Cutting:
    """How documents are cut: the most tokens of a chunk, how many it repeats of the one before, and what counts them."""

    most_tokens: int = 400
    overlap: int = 40
    tokenizer: Tokenizer = field(default_factory=ByteTokenizer)

    def key(self, document: str, embedder: Embedder) -> str:
        """Return the key of a document's index; whatever the index hangs on is in it."""
        parts: JSON = [FORMAT, document, self.most_tokens, self.overlap, self.tokenizer.name, embedder.name, embedder.dimension]  # fmt: skip
        return f"index:{digest(parts)}"


@dataclass(frozen=True)
class Index:
    """The chunks of one document, a row each."""

    places: NDArray[np.int64]
    """First, stop and tokens."""
    tokens: int
    vectors: Vectors
    terms: Terms

    @classmethod
    def of(cls, text: str, cutting: Cutting, embedder: Embedder) -> Index:
        """Cut a text, and embed and count its chunks."""
        chunks = split(text, most_tokens=cutting.most_tokens, overlap=cutting.overlap, tokenizer=cutting.tokenizer)
        texts = [text[chunk.first : chunk.stop] for chunk in chunks]
        places = np.array(chunks, dtype=np.int64).reshape(len(chunks), 3)
        return cls(places, cutting.tokenizer.count(text), embedder.embed(texts), Terms.of(texts))

    @property
    def chunks(self) -> Sequence[Chunk]:
        """Return the chunks, in order."""
        return [Chunk(*row) for row in self.places.tolist()]

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
        )
        return out.getvalue()

    @classmethod
    def unpacked(cls, body: bytes) -> Index:
        """Return the index that was packed."""
        with np.load(io.BytesIO(body), allow_pickle=False) as kept:
            terms = Terms(kept["codes"], kept["counts"], kept["bounds"])
            return cls(kept["places"], int(kept["tokens"]), kept["vectors"], terms)
