"""Texts as they could be known: read from files, cleaned, judged, and kept on a shelf that answers as of an instant.

`read_news` takes a file in, `Shelf` keeps the items and holds back what speaks to machines (`injection`) or is shouted by a crowd
(`crowd`). `examine(sanitise(text))` judges a single text, `screened` a document that a person names.
"""

from __future__ import annotations

from ..market.errors import NewsError, NewsFileError, NewsFinding, ShelfError
from .intake import read_news
from .item import NewsItem, Provenance
from .query import Held, Page, Release
from .records import NewsSource
from .screening.cleaning import Clean, sanitise
from .screening.injection.detector import THRESHOLD, Sign, Verdict, examine
from .screening.screen import screened
from .store import Shelf

NEWS = "news"
"""The folder of a workspace in which the shelf lies."""

__all__ = [
    "NEWS",
    "THRESHOLD",
    "Clean",
    "Held",
    "NewsError",
    "NewsFileError",
    "NewsFinding",
    "NewsItem",
    "NewsSource",
    "Page",
    "Provenance",
    "Release",
    "Shelf",
    "ShelfError",
    "Sign",
    "Verdict",
    "examine",
    "read_news",
    "sanitise",
    "screened",
]
