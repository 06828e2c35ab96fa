"""One text taken in by hand: made harmless as texts of a shelf are, and judged by the same detector."""

from __future__ import annotations

from .cleaning import READ_CHARACTERS, sanitise
from .injection import examine

__all__ = ["screened"]


def screened(raw: str) -> tuple[str, str]:
    """Return a text without anything that is not for reading, and why it is held back; nothing where it is not."""
    clean = sanitise(raw, READ_CHARACTERS)
    verdict = examine(clean)
    return clean.text, ", ".join(dict.fromkeys(sign.name for sign in verdict.signs)) if verdict.injected else ""
