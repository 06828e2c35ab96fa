"""Texts as they could be known: read from files, cleaned, judged, and kept on a shelf that answers as of an instant.

`read_news` takes a file in, `NewsStore` keeps the items and holds back what speaks to machines (`injection`) or is shouted by a crowd
(`crowd`). `judge_text(sanitise(text))` judges a single text, `screen_text` a document that a person names.
"""

from __future__ import annotations

from ..market.errors import NewsError, NewsFileError, NewsFinding, ShelfError
from .intake import read_news
from .item import NewsItem, Provenance
from .query import ItemPage, QuarantinedItem, Release
from .records import NewsSource
from .screening.cleaning import Clean, sanitise
from .screening.injection.detector import THRESHOLD, ScreeningVerdict, Sign, judge_text
from .screening.screen import screen_text
from .store import NewsStore

NEWS_FOLDER = "news"
"""The folder of a workspace in which the shelf lies."""

__all__ = [
    "NEWS_FOLDER",
    "THRESHOLD",
    "Clean",
    "ItemPage",
    "NewsError",
    "NewsFileError",
    "NewsFinding",
    "NewsItem",
    "NewsSource",
    "NewsStore",
    "Provenance",
    "QuarantinedItem",
    "Release",
    "ScreeningVerdict",
    "ShelfError",
    "Sign",
    "judge_text",
    "read_news",
    "sanitise",
    "screen_text",
]
