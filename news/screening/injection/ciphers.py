# ruff: noqa: RUF001 - letters that look like others are what this is about
"""Prose in disguise: what was decoded and reads as words, and letters that were shifted, mirrored, flipped or embossed.

News has no reason to hide words. So a stretch that makes sense only when it is decoded is a sign, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .fold import fold_lookalikes

MIN_ENGLISH_WORDS, MIN_ENGLISH_SHARE = 2, 0.4
ENGLISH_WINDOW_WORDS, MAX_RUN_WORDS = 6, 24
"""How many words are read at a time, and how many of a sentence at most."""
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_FREQUENT = (
    "the this that and your you rules all not for give say buy sell stock rate rating score ignore system from "
    "with have tell was are his her but they will its into has shares share fund bonds previous prior "
    "instructions prompt now never always put set make top highest best out any these their should must please "
    "review bank market agent assistant model output answer skip forget hide send long short strong print reveal "
    "nobody then when"
)
_COMMON = frozenset(_FREQUENT.split())
"""Frequent words of three letters and more, by which English is known."""
_LATIN_SENTENCE = re.compile(r"[A-Za-z][A-Za-z' ,;:-]{14,}")
_LATIN_WORD = re.compile(r"[a-z]{2,}")
_PROSE = re.compile(r"[^\W\d_]{2}[,;:]? [^\W\d_]")
_FLIPPED_TABLE = str.maketrans("ɐqɔpǝɟƃɥıɾʞןɯuodbɹsʇnʌʍxʎz", _LATIN)
_FLIPPED_LETTERS = re.compile("[ɐɔǝɟƃɥɾʞɯɹʇʌʍʎ]")
_BRAILLE = str.maketrans({0x2800 + code: letter for letter, code in zip(
    _LATIN,
    (1, 3, 9, 25, 17, 11, 27, 19, 10, 26, 5, 7, 13, 29, 21, 15, 31, 23, 14, 30, 37, 39, 58, 45, 61, 53),
    strict=True,
)})  # fmt: skip
_SQUARED = re.compile("[\U0001f130-\U0001f18a\U0001f1e6-\U0001f1ff]")
_EMBOSSED = re.compile("[\u2801-\u283f]{2,}")
_SHIFTS = [
    str.maketrans(_LATIN, _LATIN[by:] + _LATIN[:by]) for by in range(1, 26)
] + [str.maketrans(_LATIN, _LATIN[::-1])]  # fmt: skip


def is_prose(text: str) -> bool:
    """Tell whether what was decoded is prose: letters, and words with spaces between them."""
    if max(text) > "\u2fff":
        return False  # any two bytes are some letter of these scripts
    letters = sum(mark.isalpha() or mark in " ,.:;'\"!?-+%" or mark.isdigit() for mark in text)
    return bool(_PROSE.search(text)) and letters >= 0.9 * len(text)


def decipher_sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text that are English only when their letters are turned round, shifted or mirrored."""
    if len(_FLIPPED_LETTERS.findall(text)) > 3:
        yield "upside down", text.lower()[::-1].translate(_FLIPPED_TABLE)
    if len(_SQUARED.findall(text)) > 3:
        yield "squared letters", fold_lookalikes(text)
    if _EMBOSSED.search(text):
        yield "Braille", text.translate(_BRAILLE)
    for match in _LATIN_SENTENCE.finditer(text):
        plain = match[0].lower()
        yield from _turn_letters(" ".join(_odd_words(plain)))


def _odd_words(plain: str) -> list[str]:
    """Return the longest run of words in which none is a frequent one."""
    words = plain.split()
    first, best, size = 0, 0, 0
    for place, word in enumerate(words):
        if word.strip(" ,;:'-") in _COMMON:
            first = place + 1
        elif place + 1 - first > size:
            best, size = first, place + 1 - first
    return words[best : best + min(size, MAX_RUN_WORDS)] if size > 2 else []


def _turn_letters(run: str) -> Iterator[tuple[str, str]]:
    """Yield what a run of odd words says backwards, or with its letters shifted."""
    for name, said in (("reversed", run[::-1]), *(("shifted letters", run.translate(shift)) for shift in _SHIFTS)):
        words = _LATIN_WORD.findall(said)
        if any(
            _is_english(words[first : first + ENGLISH_WINDOW_WORDS])
            for first in range(0, max(len(words) - ENGLISH_WINDOW_WORDS, 0) + 1, 2)
        ):
            yield name, said


def _is_english(words: Sequence[str]) -> bool:
    """Tell whether enough of the words are frequent ones of English."""
    known = {word for word in words if word in _COMMON}
    return len(known) >= MIN_ENGLISH_WORDS and sum(word in known for word in words) >= MIN_ENGLISH_SHARE * len(words)
