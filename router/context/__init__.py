"""Long documents read once: cut, embedded and summarised, kept under the hash of their text, found again by passage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .cache import CacheLimits as CacheLimits, ContextCache as ContextCache, Document as Document
    from .chunks import ByteTokenizer as ByteTokenizer, split_chunks as split_chunks
    from .documents import CampaignDocument as CampaignDocument, Screen as Screen, read_documents as read_documents
    from .index import Cutting as Cutting
    from .passages import Passage as Passage
    from .redis_store import RedisStore as RedisStore
    from .settings import (
        ContextSettings as ContextSettings,
        DocumentSettings as DocumentSettings,
        open_store as open_store,
    )
    from .store import ByteStore as ByteStore, Size as Size, SqliteStore as SqliteStore
    from .summaries import (
        EXTRACT_SUMMARISER as EXTRACT_SUMMARISER,
        Summariser as Summariser,
        extract_sentences as extract_sentences,
    )
    from .vectors import HashedEmbedder as HashedEmbedder
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "cache": "CacheLimits ContextCache Document",
            "chunks": "ByteTokenizer split_chunks",
            "documents": "CampaignDocument Screen read_documents",
            "index": "Cutting",
            "passages": "Passage",
            "redis_store": "RedisStore",
            "settings": "ContextSettings DocumentSettings open_store",
            "store": "ByteStore Size SqliteStore",
            "summaries": "EXTRACT_SUMMARISER Summariser extract_sentences",
            "vectors": "HashedEmbedder",
        },
    )
