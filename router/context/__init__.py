"""Long documents read once: cut, embedded and summarised, kept under the hash of their text, found again by passage."""

from __future__ import annotations

from .cache import CacheLimits, ContextCache, Document
from .chunks import ByteTokenizer, Chunk, Tokenizer, split_chunks
from .embedding import Embedder, HashedEmbedder
from .extract import EXTRACT_SUMMARISER, extract_sentences
from .index import Cutting
from .passages import Passage
from .reading import Given, Screen, read_documents
from .secrecy import strictest
from .settings import ContextSettings, DocumentSettings
from .statistics import Statistics
from .store.opening import open_store
from .store.redis_store import RedisStore
from .store.store import ByteStore, Size, SqliteStore
from .summaries import Summariser, Summary

__all__ = [
    "EXTRACT_SUMMARISER",
    "ByteStore",
    "ByteTokenizer",
    "CacheLimits",
    "Chunk",
    "ContextCache",
    "ContextSettings",
    "Cutting",
    "Document",
    "DocumentSettings",
    "Embedder",
    "Given",
    "HashedEmbedder",
    "Passage",
    "RedisStore",
    "Screen",
    "Size",
    "SqliteStore",
    "Statistics",
    "Summariser",
    "Summary",
    "Tokenizer",
    "extract_sentences",
    "open_store",
    "read_documents",
    "split_chunks",
    "strictest",
]
