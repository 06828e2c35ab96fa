"""Long documents read once: cut, embedded and summarised, kept under the hash of their text, found again by passage."""

from __future__ import annotations

from .cache import ContextCache, Document, Limits
from .chunks import ByteTokenizer, Chunk, Tokenizer, split
from .embedding import Embedder, HashedEmbedder
from .extract import EXTRACTING, extract
from .index import Cutting
from .passages import Passage
from .reading import Given, Screen, read_documents
from .secrecy import strictest
from .settings import ContextSettings, DocumentSettings
from .statistics import Statistics
from .store.opening import opened
from .store.redis_store import RedisStore
from .store.store import Size, SqliteStore, Store
from .summaries import Summariser, Summary

__all__ = [
    "EXTRACTING",
    "ByteTokenizer",
    "Chunk",
    "ContextCache",
    "ContextSettings",
    "Cutting",
    "Document",
    "DocumentSettings",
    "Embedder",
    "Given",
    "HashedEmbedder",
    "Limits",
    "Passage",
    "RedisStore",
    "Screen",
    "Size",
    "SqliteStore",
    "Statistics",
    "Store",
    "Summariser",
    "Summary",
    "Tokenizer",
    "extract",
    "opened",
    "read_documents",
    "split",
    "strictest",
]
