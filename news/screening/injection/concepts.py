"""Find the concepts in a text: each word with a concept, its place, and the concepts that it may mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from .fold import fold_lookalikes, strip_accents
from .lexicon import ENGLISH, FOREIGN

FOREIGN_CONCEPTS = (
    "drop",
    "instr",
    "hardmachine",
    "rate",
    "hardmetric",
    "hardsecret",
    "conceal",
    "role",
    "show",
    "must",
    "extreme",
    "order",
    "keep",
    "send",
    "secret",
)
"""Concepts with a bit of their own for words of other languages, which are rarer in the news."""
CONCEPT_NAMES = (*ENGLISH, *(f"foreign {name}" for name in FOREIGN_CONCEPTS), "foreign", "english")
BIT = {name: 1 << place for place, name in enumerate(CONCEPT_NAMES)}
_FOREIGN_BITS = sum(BIT[name] for name in CONCEPT_NAMES if name.startswith("foreign"))
_UNSPACED_RANGES = "\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_CONCEPT_TOKEN = re.compile(
    rf"[{_UNSPACED_RANGES}][{_UNSPACED_RANGES} ]*|(?<![\d.])[+-]?\.?\d+(?:[.,/]\d+)*%?(?![^\W\d_])|"
    rf"[^\W_{_UNSPACED_RANGES}]+(?:['_-][^\W_{_UNSPACED_RANGES}]+)*"
)
_PIECES = re.compile(r"[^\W_]+")
_MIN_SCRAMBLED_LETTERS = 6
MAX_WORD_CHARS = 80
"""Characters of a word that are looked up: more than any known word has, so that a long run of letters costs little."""
_MAX_PREFIX_CHARS = 24
_LETTERS_PER_UNKNOWN = 4


@dataclass(frozen=True)
class ConceptMark:
    """A word with concepts: its number in the text, its concepts as bits, and its start and end."""

    word: int
    bits: int
    start: int
    end: int


@dataclass(frozen=True)
class _Lexicon:
    exact: dict[str, int]
    prefixes: dict[str, int]
    phrases: dict[str, list[tuple[tuple[str, ...], int]]]
    runs: dict[str, list[tuple[str, int]]]
    scrambled: dict[str, int]


def find_concepts(text: str) -> list[ConceptMark]:
    """Return the words of a text that have concepts, in order."""
    lexicon = _build_lexicon()
    words = list(_iterate_words(text))
    plain = [strip_accents(word) for word, _, _ in words]
    marks = []
    for place, (word, start, end) in enumerate(words):
        bits = _find_bits(word)
        for rest, more in lexicon.phrases.get(plain[place], ()):
            following = plain[place + 1 : place + 1 + len(rest)]
            if len(following) == len(rest) and all(map(_is_match, following, rest)):
                bits |= more
        if bits:
            marks.append(ConceptMark(place, bits, start, end))
    return marks


def segment_words(run: str) -> str:
    """Return a run of letters without spaces as the known words that it is made of (`ignoreallprevious`)."""
    return " ".join(match[0] for match in _build_word_pattern().finditer(run.lower()))


def _iterate_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each word in lower case with its start and end; a run of a script without spaces as its known terms."""
    for match in _CONCEPT_TOKEN.finditer(text.lower()):
        word, start = match[0], match.start()
        if word[0] >= "\u0600" and re.match(f"[{_UNSPACED_RANGES}]", word):
            yield from _iterate_terms(word, start)
        elif _find_bits(word) or not any(mark in word for mark in "-_"):
            yield word, start, match.end()
        else:
            yield from ((piece[0], start + piece.start(), start + piece.end()) for piece in _PIECES.finditer(word))


def _iterate_terms(run: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the known terms of a run, the longest at each place."""
    table, place, unknown = _build_lexicon().runs, 0, 0
    bare = [(mark, at) for at, one in enumerate(run) for mark in strip_accents(one)]  # vowel signs go, places stay
    run = "".join(mark for mark, _ in bare)
    ats = [start + at for _, at in bare]
    while place < len(run):
        for term, _ in table.get(run[place], ()):
            if run.startswith(term, place):
                yield term, ats[place], ats[place + len(term) - 1] + 1
                place += len(term)
                break
        else:
            place += 1
            unknown += 1
            if unknown % _LETTERS_PER_UNKNOWN == 0:  # unknown letters are words too, in the span of a rule
                yield "", ats[place - 1], ats[place - 1]


def _find_bits(word: str) -> int:
    """Return the concepts of a word: as it is, without accents, and with look-alike letters read as Latin."""
    return _find_meaning(word) if len(word) <= MAX_WORD_CHARS else 0


@lru_cache(maxsize=1 << 16)
def _find_meaning(word: str) -> int:
    bits = 0
    for spelling in {word, strip_accents(word), fold_lookalikes(word)}:
        bits |= _look_up(spelling)
    if bits & BIT["english"]:
        bits &= ~_FOREIGN_BITS  # a word that is English too does not show another language
    return bits or _build_lexicon().scrambled.get(_compute_scramble_key(word), 0)


def _look_up(word: str) -> int:
    """Return the concepts of one spelling."""
    lexicon = _build_lexicon()
    bits = lexicon.exact.get(word, 0)
    for size in range(2, min(len(word), _MAX_PREFIX_CHARS) + 1):
        bits |= lexicon.prefixes.get(word[:size], 0)
    return bits


def _compute_scramble_key(word: str) -> str:
    """Return a spelling that does not change when the letters inside a long word change places."""
    if len(word) < _MIN_SCRAMBLED_LETTERS or not word.isalpha():
        return ""
    return word[0] + "".join(sorted(word[1:-1])) + word[-1]


def _is_match(plain: str, want: str) -> bool:
    """Return whether a word without accents matches one word of a phrase."""
    return plain.startswith(want[:-1]) if want.endswith("*") else plain == want


@cache
def _build_lexicon() -> _Lexicon:
    """Return the lookup tables of all concepts, built once."""
    lexicon = _Lexicon({}, {}, {}, {}, {})
    for concept, entries in ENGLISH.items():
        for entry in _split_entries(entries):
            _add_entry(lexicon, entry, BIT[concept] | BIT["english"])
    for language in FOREIGN.values():
        for concept, listed in language.items():
            for entry in _split_entries(listed):
                strange = BIT["foreign"] | (BIT[f"foreign {concept}"] if concept in FOREIGN_CONCEPTS else 0)
                _add_entry(lexicon, entry, BIT[concept] | strange)
    for word in _SCRAMBLED_WORDS:
        lexicon.scrambled[_compute_scramble_key(word)] = lexicon.exact.get(word, 0) | _find_prefix_bits(lexicon, word)
    for terms in lexicon.runs.values():
        terms.sort(key=lambda term: -len(term[0]))
    return lexicon


def _split_entries(listed: str) -> list[str]:
    """Return the entries of a line, without accents."""
    return [strip_accents(entry.strip()) for entry in listed.split(",") if entry.strip()]


def _add_entry(lexicon: _Lexicon, entry: str, bits: int) -> None:
    """Add one entry to the table in which it is looked up."""
    if re.match(f"[{_UNSPACED_RANGES}]", entry):
        run = lexicon.runs.setdefault(entry[0], [])
        run[:] = [term for term in run if term[0] != entry] + [(entry, bits)]
        lexicon.exact[entry] = lexicon.exact.get(entry, 0) | bits
        return
    first, *rest = [piece.strip(".") or piece for piece in entry.split()]
    if rest:
        lexicon.phrases.setdefault(first, []).append((tuple(rest), bits))
    elif first.endswith("*"):
        lexicon.prefixes[first[:-1]] = lexicon.prefixes.get(first[:-1], 0) | bits
    else:
        lexicon.exact[first] = lexicon.exact.get(first, 0) | bits


def _find_prefix_bits(lexicon: _Lexicon, word: str) -> int:
    """Return the concepts of all prefixes of a word."""
    bits = 0
    for size in range(2, len(word) + 1):
        bits |= lexicon.prefixes.get(word[:size], 0)
    return bits


_SCRAMBLED_WORDS = (
    "ignore", "ignoring", "disregard", "previous", "instruction", "instructions", "prompt", "system", "assistant",
    "override", "reveal", "password", "sentiment", "bullish", "positive", "maximum", "following", "guidelines",
    "approve", "directive", "directives", "instead", "output", "respond", "rating", "credentials", "hypothesis",
    "factor", "language", "summary",
)  # fmt: skip  # a table
"""Words that are recognised with their inner letters in another order too."""


@cache
def _build_word_pattern() -> re.Pattern[str]:
    """Return the pattern of the words to look for where the spaces were left out, long ones first."""
    words = {word for word in _build_lexicon().exact if word.isascii() and word.isalpha() and len(word) > 2} | set(
        _SCRAMBLED_WORDS
    )
    words |= {word for word in _build_lexicon().prefixes if word.isascii() and word.isalpha() and len(word) > 4}
    words |= {"all", "you", "your", "the", "this", "now", "and", "tool", "call"}
    endings: dict[str, list[str]] = {}  # by the first two letters: else each place is compared with every word
    for word in sorted(words, key=lambda word: (-len(word), word)):
        endings.setdefault(word[:2], []).append(word[2:])
    return re.compile("|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in sorted(endings.items())))
