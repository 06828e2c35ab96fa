"""Texts as they could be known: read from files, cleaned, judged, and kept on a shelf that answers as of an instant.

`read_news` takes a file in, `NewsStore` keeps the items and holds back what speaks to machines (`injection`) or is shouted by a crowd
(`crowd`). `judge_text(sanitise(text))` judges a single text, `screen_text` a document that a person names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .errors import (
        NewsError as NewsError,
        NewsFileError as NewsFileError,
        NewsFinding as NewsFinding,
        ShelfError as ShelfError,
    )
    from .instants import ZONED_FORMAT as ZONED_FORMAT, format_instant as format_instant, from_iso as from_iso
    from .intake import read_news as read_news
    from .item import NewsItem as NewsItem, Provenance as Provenance
    from .query import ItemPage as ItemPage, QuarantinedItem as QuarantinedItem, Release as Release
    from .records import NewsSource as NewsSource
    from .screening.cleaning import Clean as Clean, sanitise as sanitise
    from .screening.injection.detector import (
        THRESHOLD as THRESHOLD,
        ScreeningVerdict as ScreeningVerdict,
        Sign as Sign,
        judge_text as judge_text,
    )
    from .screening.screen import screen_text as screen_text
    from .store import NEWS_FOLDER as NEWS_FOLDER, NewsStore as NewsStore
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "errors": "NewsError NewsFileError NewsFinding ShelfError",
            "instants": "ZONED_FORMAT format_instant from_iso",
            "intake": "read_news",
            "item": "NewsItem Provenance",
            "query": "ItemPage QuarantinedItem Release",
            "records": "NewsSource",
            "screening.cleaning": "Clean sanitise",
            "screening.injection.detector": "ScreeningVerdict Sign THRESHOLD judge_text",
            "screening.screen": "screen_text",
            "store": "NEWS_FOLDER NewsStore",
        },
    )
