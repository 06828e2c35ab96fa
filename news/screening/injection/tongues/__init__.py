"""The concepts of `lexicon` in other languages, each with the words that instructions are made of.

Written with or without accents: both are compared without. Words of scripts that leave no spaces, or that put endings on both
sides (Chinese, Japanese, Korean, Arabic, Hindi, Bengali, Tamil, Thai), are looked for inside a run of letters. An `order` is a
verb in the form in which somebody is told to do something: reports seldom hold one.
"""

from __future__ import annotations

from .eastern import EASTERN
from .germanic import GERMANIC
from .romance import ROMANCE
from .slavic import SLAVIC
from .southern import SOUTHERN

__all__ = ["TONGUES"]

TONGUES: dict[str, dict[str, str]] = {**GERMANIC, **ROMANCE, **SLAVIC, **EASTERN, **SOUTHERN}
"""Language to concept to words."""
