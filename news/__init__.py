"""Texts as they could be known: read from files, cleaned, judged, and stored to be queried as of an instant.

`read_news` reads a file. `NewsStore` keeps the items and holds back prompt injection (`injection`) and coordinated
noise (`crowd`). `judge_text(sanitise(text))` judges a single text, `screen_text` a document that a person chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .errors import (
        NewsFileError as NewsFileError,
        NewsStoreError as NewsStoreError,
    )
    from .instants import ZONED_FORMAT as ZONED_FORMAT, format_instant as format_instant, parse_iso as parse_iso
    from .intake import read_news as read_news
    from .item import NewsItem as NewsItem, NewsSource as NewsSource, Provenance as Provenance
    from .query import ItemPage as ItemPage, QuarantinedItem as QuarantinedItem, Release as Release
    from .screening.cleaning import sanitise as sanitise
    from .screening.credibility import ItemKind as ItemKind
    from .screening.injection.detector import (
        THRESHOLD as THRESHOLD,
        ScreeningVerdict as ScreeningVerdict,
        judge_text as judge_text,
        screen_text as screen_text,
    )
    from .store import NEWS_FOLDER as NEWS_FOLDER, NewsStore as NewsStore
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "errors": "NewsFileError NewsStoreError",
            "instants": "ZONED_FORMAT format_instant parse_iso",
            "intake": "read_news",
            "item": "NewsItem NewsSource Provenance",
            "query": "ItemPage QuarantinedItem Release",
            "screening.cleaning": "sanitise",
            "screening.credibility": "ItemKind",
            "screening.injection.detector": "ScreeningVerdict THRESHOLD judge_text screen_text",
            "store": "NEWS_FOLDER NewsStore",
        },
    )
