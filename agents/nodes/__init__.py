"""The agents, one a file: their questions, and the use of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .documents import Documents as Documents, select_documents as select_documents
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "documents": "Documents select_documents",
        },
    )
