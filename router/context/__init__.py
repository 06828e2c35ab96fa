"""Long documents read once: cut, embedded and summarised, kept under the hash of their text, found again by passage."""

from __future__ import annotations

from .cache import ContextCache, Document, Limits
from .chunks import ByteTokenizer, Chunk, Tokenizer, split
from .embedding import Embedder, HashedEmbedder
from .index import Cutting
from .passages import Passage
from .redis_store import RedisStore
from .statistics import Statistics
from .store import Size, SqliteStore, Store
from .summaries import Summariser, Summary

__all__ = [
    "ByteTokenizer",
    "Chunk",
    "ContextCache",
    "Cutting",
    "Document",
    "Embedder",
    "HashedEmbedder",
    "Limits",
    "Passage",
    "RedisStore",
    "Size",
    "SqliteStore",
    "Statistics",
    "Store",
    "Summariser",
    "Summary",
    "Tokenizer",
    "split",
]
