"""The append-only record of everything a campaign tried, asked, decided and made."""

from __future__ import annotations

from .digest import JSON, canonical_json, digest
from .errors import AlphaloomError

__all__ = ["JSON", "AlphaloomError", "canonical_json", "digest"]
