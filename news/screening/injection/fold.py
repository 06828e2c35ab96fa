# ruff: noqa: RUF001 - look-alike letters are what this is about
"""Text in plain letters for the detector: look-alikes, accents, leetspeak and scattered letters are folded.

The text that is served is never changed by this.
"""

from __future__ import annotations

import re
import unicodedata

LATIN = "abcdefghijklmnopqrstuvwxyz"
_LOOKALIKES = {
    "а": "a", "в": "b", "с": "c", "ԁ": "d", "е": "e", "ѐ": "e", "ё": "e", "ғ": "f", "ɡ": "g", "һ": "h", "н": "h",
    "і": "i", "ї": "i", "ј": "j", "к": "k", "ӏ": "l", "м": "m", "п": "n", "о": "o", "р": "p", "ԛ": "q", "г": "r",
    "ѕ": "s", "т": "t", "υ": "u", "ѵ": "v", "ԝ": "w", "х": "x", "у": "y", "α": "a", "β": "b", "ϲ": "c", "δ": "d",
    "ε": "e", "η": "n", "ι": "i", "κ": "k", "ν": "v", "ο": "o", "ρ": "p", "σ": "o", "τ": "t", "χ": "x", "γ": "y",
    "ω": "w", "μ": "u", "ζ": "z", "հ": "h", "օ": "o", "ո": "n", "ս": "u", "ց": "g", "ք": "p", "ı": "i", "ł": "l",
    "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "ß": "ss", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ƒ": "f", "ɑ": "a",
    "ɩ": "i", "ɪ": "i", "ʀ": "r", "ʏ": "y", "ʟ": "l", "ɴ": "n", "ɢ": "g", "ʙ": "b", "ʜ": "h", "ᴀ": "a", "ᴄ": "c",
    "ᴅ": "d", "ᴇ": "e", "ꜰ": "f", "ᴊ": "j", "ᴋ": "k", "ᴍ": "m", "ᴏ": "o", "ᴘ": "p", "ꜱ": "s", "ᴛ": "t", "ᴜ": "u",
    "ᴠ": "v", "ᴡ": "w", "ᴢ": "z", "ɐ": "a", "ǝ": "e", "ɟ": "f", "ƃ": "g", "ɥ": "h", "ɾ": "j", "ʞ": "k", "ɯ": "m",
    "ɹ": "r", "ʇ": "t", "ʌ": "v", "ʍ": "w", "ʎ": "y", "℮": "e", "∂": "d", "’": "'", "‘": "'", "ʼ": "'", "´": "'",
    "`": "'", "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-",
}  # fmt: skip  # a table
"""What each letter looks like in Latin, flipped letters included: an upside-down text can be read backwards."""
_CAPITALS = {
    "В": "b",
    "Н": "h",
    "Р": "p",
    "С": "c",
    "У": "y",
    "Х": "x",
    "Ν": "n",
    "Υ": "y",
    "Η": "h",
    "Ρ": "p",
    "Σ": "e",
}
_SQUARES = (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)  # squared, circled and flag letters, which NFKC leaves as they are
_FOLD_TABLE = str.maketrans(
    {ord(mark): plain for mark, plain in (_LOOKALIKES | _CAPITALS).items()}
    | {first + place: letter for first in _SQUARES for place, letter in enumerate(LATIN)}
)
_LEET = str.maketrans("013456789@$!|+€£¢", "oieasgtbgasiltelc")
_LEET_L = str.maketrans("013456789@$!|+€£¢", "oleasgtbgasiltelc")
_SCATTERED = re.compile(
    r"(?<![^\W_])[^\W\d_](?:([ .\-_*,/|~·•\t])\1{0,2}[^\W\d_](?![^\W_])){2,}|[^\W\d_](?:\n[^\W\d_](?![^\W_])){5,}"
)
_MIN_SCATTERED_LETTERS = 10
_GLUE = re.compile(r"[\W_]+")


def strip_accents(text: str) -> str:
    """Return text in lower case without accents; scripts whose marks are letters (kana, Hangul) stay as they are."""
    text = text.lower()
    if text.isascii():
        return text
    return "".join(_strip_mark(mark) for mark in text)


def fold_lookalikes(text: str) -> str:
    """Return text in lower case with every look-alike as the Latin letter that it imitates."""
    return strip_accents(text.translate(_FOLD_TABLE).lower().translate(_FOLD_TABLE)).translate(_FOLD_TABLE)


def read_leetspeak(text: str) -> tuple[str, str]:
    """Return text with leetspeak digits and signs as letters, twice: with 1 as i, and with 1 as l."""
    lower = text.lower()
    return lower.translate(_LEET), lower.translate(_LEET_L)


def gather_scattered(text: str) -> list[str]:
    """Return the words that were written with something between all letters (`i g n o r e`, `i.g.n.o.r.e`)."""
    words = [_GLUE.sub("", match[0]) for match in _SCATTERED.finditer(text)]
    return words if sum(map(len, words)) >= _MIN_SCATTERED_LETTERS else []


def _strip_mark(mark: str) -> str:
    """Return a Latin, Greek, Cyrillic, Hebrew or Arabic letter without its marks, and any other as it is."""
    if mark < "\x80":
        return mark
    if mark < "\u0700" or "\u1e00" <= mark < "\u2000":
        return "".join(part for part in unicodedata.normalize("NFD", mark) if not unicodedata.combining(part))
    return "" if "\u0300" <= mark < "\u0370" else mark
