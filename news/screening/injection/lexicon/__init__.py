"""The words of each concept, in English and in 35 other languages.

Entries are separated by commas; `*` at the end stands for any ending, several words are a phrase. No word is a sign by
itself: signs are concepts close together (`rules`).

Words of other languages are written with or without accents; both are compared without. Words of scripts without spaces, or
with endings on both sides (Chinese, Japanese, Korean, Arabic, Hindi, Bengali, Tamil, Thai), are found inside a run of
letters. An `order` is a verb in its imperative form, which reports seldom contain.
"""

from __future__ import annotations

from .asian_african import ASIAN_AFRICAN
from .english import ENGLISH
from .european import EUROPEAN

__all__ = ["ENGLISH", "FOREIGN"]

FOREIGN: dict[str, dict[str, str]] = {**EUROPEAN, **ASIAN_AFRICAN}
"""Language to concept to words."""
