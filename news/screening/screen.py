"""One text taken in by hand: made harmless as texts of a shelf are, and judged by the same detector."""

from __future__ import annotations

import re
from dataclasses import replace

from .cleaning import MAX_RECORD_CHARS, sanitise
from .injection.detector import judge_text

__all__ = ["screen_text"]


_RESERVED_SENTENCE = re.compile(
    r"(?:(?<=[.!?:\n])|^)[ \t]*(?:"
    r"(?:strictly |private and )?confidential"
    r"|(?:please )?(?:do not|don't) (?:share|distribute|redistribute|forward|circulate)"
    r"(?: this (?:document|note|memo|file))?(?: outside (?:of )?(?:the|our) (?:desk|firm|company|team|group))?"
    r"|(?:for )?internal use only|not for (?:external )?distribution)(?:[.!]+(?=\s|$)|(?=\n|$))",
    re.IGNORECASE,
)
"""Whole sentences by which people keep a paper among themselves: they order readers, as an injection does, and mean people."""


def screen_text(raw: str) -> tuple[str, str]:
    """Return a text without anything that is not for reading, and why it is held back; nothing where it is not.

    A person chose it, so usual words of confidence are not judged; what stands around them is, and stands the closer.
    """
    clean = sanitise(raw, MAX_RECORD_CHARS)
    verdict = judge_text(
        replace(clean, text=_RESERVED_SENTENCE.sub("", clean.text), marked=_RESERVED_SENTENCE.sub("", clean.marked))
    )
    return clean.text, ", ".join(dict.fromkeys(sign.name for sign in verdict.signs)) if verdict.injected else ""
