"""Long documents read once: cut, embedded and summarised, kept under the hash of their text, found again by passage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .cache import ContextCache as ContextCache, Document as Document
    from .documents import CampaignDocument as CampaignDocument, Screen as Screen, read_documents as read_documents
    from .passages import Passage as Passage
    from .settings import (
        ContextSettings as ContextSettings,
        DocumentSettings as DocumentSettings,
        open_store as open_store,
    )
    from .store import ByteStore as ByteStore
    from .summaries import (
        EXTRACT_SUMMARISER as EXTRACT_SUMMARISER,
        Summariser as Summariser,
        extract_sentences as extract_sentences,
    )
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "cache": "ContextCache Document",
            "documents": "CampaignDocument Screen read_documents",
            "passages": "Passage",
            "settings": "ContextSettings DocumentSettings open_store",
            "store": "ByteStore",
            "summaries": "EXTRACT_SUMMARISER Summariser extract_sentences",
        },
    )
