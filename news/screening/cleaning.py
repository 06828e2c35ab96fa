"""Cleaning of texts before a model reads them; removed characters and pieces are counted.

The result is plain text in NFKC: no control, zero-width, bidirectional or tag characters, no markup, no data URLs, no
encoded blobs, no Markdown images or links (their words stay). Letters are left as they are; look-alikes are folded for
detection only (`fold`). Cleaning a clean text changes nothing.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .markup import strip_markup

TITLE_CHARACTERS = 500
BODY_CHARACTERS = 1_000_000
MAX_RECORD_CHARS = 8_000_000
"""A record longer than this is refused, not cut."""
UNESCAPE_ROUNDS = 4
"""Rounds in which entities and markup are removed; the remains of deeper nesting are broken up."""
MAX_NFKC_GROWTH = 3
"""Growth of a text allowed in NFKC, where single characters may become eighteen; a longer text is cut and held back."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_DATA_URL = re.compile(r"data:[a-z]{1,20}/[a-z0-9.+-]{1,80}[a-z0-9;=,.+%/_-]*", re.IGNORECASE)
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{200,}={0,2}")
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]]{0,300})\](?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,100}\])")
_REFERENCE = re.compile(r"^ {0,3}\[[^\[\]\n]{1,100}\]: {0,3}\S{1,2000}[^\n]*$", re.MULTILINE)
_SCRIPT_URL = re.compile(r"(?:javascript|vbscript|file):(?=\S)", re.IGNORECASE)
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_STACKED = re.compile(
    "([\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{3})[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+"
)
_ZERO_WIDTH = frozenset(
    "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u180e\u034f\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5"
)
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_OVERRIDES = frozenset("\u202d\u202e")
_ODD_CHARACTER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U000e0000-\U0010ffff]|[\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00013430-\U0001343f]"
)


@dataclass(frozen=True)
class Clean:
    """A text that is safe to show, and the parts that were removed from it.

    Attributes
    ----------
    text : str
        Plain text in NFKC.
    marked : str
        The text before its markup was removed, for the detection of forged markup; never shown.
    hidden : str
        The invisible parts: comments, hidden elements, attributes, tag characters; never shown.
    code : str
        The content of scripts and styles; never shown.
    removed : Mapping[str, int]
        Number of characters or pieces removed, by kind; kinds that did not occur are absent.
    """

    text: str
    marked: str = ""
    hidden: str = ""
    code: str = ""
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass
class RemovedText:
    """Removed parts that are judged apart: hidden pieces, and scripts and styles."""

    pieces: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


def sanitise(raw: str, longest: int = BODY_CHARACTERS) -> Clean:
    """Return the readable text, without markup, invisible characters and encoded data.

    Parameters
    ----------
    raw : str
        The text as it came; markup is read as HTML.
    longest : int
        Most characters of the result.
    """
    removed: Counter[str] = Counter()
    hidden = RemovedText()
    text = marked = _remove_invisible(raw, removed, hidden)
    for _ in range(UNESCAPE_ROUNDS):
        before = text
        text = _remove_markup(text, removed, hidden)
        text = _neutralise_links(_remove_invisible(_ENTITY.sub(_decode_entity, text), removed, hidden), removed)
        if text == before:
            break
    else:
        text = _break_markup(text, removed, hidden)
    text = _collapse_spaces(text)
    if len(text) > longest:
        removed["characters cut"] += len(text) - longest
        text = text[:longest].rstrip()
    return Clean(text, marked, "\n".join(hidden.pieces), "".join(hidden.code), dict(sorted(removed.items())))


def _remove_markup(text: str, removed: Counter[str], hidden: RemovedText) -> str:
    if "<" not in text:
        return text
    visible = strip_markup(text)
    if visible.tags:
        removed["tags"] += visible.tags
    if visible.forged:
        removed["forged ends"] += visible.forged
    hidden.code += visible.code
    concealed = "".join(visible.hidden).strip()
    if concealed:
        hidden.pieces.append(concealed)
        removed["hidden pieces"] += 1
    return "".join(visible.shown)


def _decode_entity(match: re.Match[str]) -> str:
    return html.unescape(match[0])


def _remove_invisible(text: str, removed: Counter[str], hidden: RemovedText) -> str:
    """Return the text in NFKC without invisible characters; tag characters are collected, because they spell ASCII."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.isprintable():
        return text
    while True:
        before = text
        tags = (
            [chr(ord(mark) - 0xE0000) for mark in text if 0xE0020 <= ord(mark) < 0xE007F] if not text.isascii() else []
        )
        if tags:
            hidden.pieces.append("".join(tags))
        for mark, count in Counter(_ODD_CHARACTER.findall(text)).items():
            removed[_classify_odd(mark)] += count
        text = unicodedata.normalize("NFKC", _STACKED.sub(r"\1", _ODD_CHARACTER.sub(_replace_odd, text)))
        if len(text) > (most := MAX_NFKC_GROWTH * len(before) + 1_000):
            removed["swelling characters"] += len(text) - most
            text = text[:most]
        if text == before:
            return text


def _replace_odd(match: re.Match[str]) -> str:
    """Return the replacement of an odd character: a line break for a separator, nothing for the others."""
    return "\n" if match[0] in "\x0b\x0c\x85\u2028\u2029" else ""


@lru_cache(maxsize=4096)
def _classify_odd(mark: str) -> str:
    """Return what kind of odd character this is."""
    code = ord(mark)
    if 0xE0000 <= code < 0xE0080:
        return "tag characters"
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F:
        return "variation selectors"
    if mark in _ZERO_WIDTH:
        return "zero-width characters"
    if mark in _OVERRIDES:
        return "direction overrides"
    if mark in _BIDI:
        return "bidirectional overrides"
    return "other control characters"


def _neutralise_links(text: str, removed: Counter[str]) -> str:
    """Remove addresses and encoded data; the words of a link stay."""
    for kind, pattern, instead in (
        ("data URLs", _DATA_URL, "[data removed]"),
        ("encoded blobs", _BLOB, "[encoded text removed]"),
        ("Markdown links", _IMAGE_OR_LINK, r"\1"),
        ("Markdown links", _REFERENCE, ""),
        ("script URLs", _SCRIPT_URL, ""),
    ):
        text, count = pattern.subn(instead, text)
        if count:
            removed[kind] += count
    return text


def _break_markup(text: str, removed: Counter[str], hidden: RemovedText) -> str:
    """Break up the remains of markup that is nested so deeply that it can only be an evasion."""
    removed["nested markup"] += 1
    while True:
        before = text
        text = _neutralise_links(_remove_invisible(re.sub("[<&\\[\\]]", " ", text), removed, hidden), removed)
        text = text.replace("[data removed]", " ").replace("[encoded text removed]", " ")
        if text == before:
            return text


def _collapse_spaces(text: str) -> str:
    """Return the text with single spaces and at most one line break at a time."""
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def join_clean(one: Clean, other: Clean) -> Clean:
    """Return two cleaned texts as one, a line break between them."""
    texts = (
        "\n".join(part for part in pair if part) for pair in zip(_list_texts(one), _list_texts(other), strict=True)
    )
    return Clean(
        next(texts), next(texts), next(texts), next(texts), dict(Counter(one.removed) + Counter(other.removed))
    )


def _list_texts(clean: Clean) -> tuple[str, str, str, str]:
    """Return the texts of a cleaned text."""
    return clean.text, clean.marked, clean.hidden, clean.code
