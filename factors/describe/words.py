"""Words of a text: their stems, whether a text speaks of something, and how alike two texts are.

It stands in this room because agents and evidence both compare words, and this is the lowest room that both know.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["find_mention", "mentions", "natural_sort_key", "replace_invisible", "stem_overlap", "stems"]

STEM_WORD_PATTERN = re.compile(r"[a-z0-9]+")
DIGITS_PATTERN = re.compile(r"([0-9]+)")
STEM_SUFFIXES = ("edly", "ing", "ity", "ed", "ly", "al", "e")
MIN_STEM_LETTERS = 3
MAX_STEM_LETTERS = 7
"""Letters that a suffix must leave, and that a stem has at most."""
STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "down",
        "each",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "here",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "like",
        "may",
        "me",
        "more",
        "most",
        "much",
        "must",
        "my",
        "no",
        "nor",
        "not",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "own",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "us",
        "very",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
        "stock",
        "stocks",
        "name",
        "names",
        "share",
        "shares",
        "company",
        "companies",
        "factor",
        "factors",
        "signal",
        "signals",
        "horizon",
        "look",
        "find",
        "idea",
    ]
)
"""Words that say nothing of a mechanism."""


HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
"""Unicode's kinds of characters that nobody sees: control, format, unassigned, private, half of a pair."""


def replace_invisible(text: str, instead: str = " ") -> str:
    """Return a text in which each character that nobody sees is another one; line breaks and tabs stay.

    Among them are the codes that steer a terminal, that turn the direction of writing, and that have no width.
    """
    return "".join(instead if unicodedata.category(c) in HIDDEN_CATEGORIES and c not in "\n\t" else c for c in text)


@lru_cache(maxsize=65_536)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words in their order, without those that say nothing.

    A stem is a word in lower case without a plural's s and its last common ending, seven letters at most: volatile and volatility, price
    and prices meet. It is a rule of thumb for English, not a dictionary.
    """
    return tuple(_stem(word) for word in STEM_WORD_PATTERN.findall(text.lower()) if word not in STOP_WORDS)


def _stem(word: str) -> str:
    if len(word) > MIN_STEM_LETTERS and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    ending = next(
        (each for each in STEM_SUFFIXES if word.endswith(each) and len(word) - len(each) >= MIN_STEM_LETTERS), ""
    )
    return word.removesuffix(ending)[:MAX_STEM_LETTERS]


def mentions(text: str, what: str) -> bool:
    """Tell whether the stems of a word or phrase stand in a text one after the other; nothing is never mentioned."""
    wanted, said = stems(what), stems(text)
    size = len(wanted)
    return bool(wanted) and any(said[at : at + size] == wanted for at in range(len(said) - size + 1))


def find_mention(texts: Iterable[str], entries: Iterable[str]) -> str:
    """Return the first of some words or phrases that any of the texts mentions, empty where there is none."""
    said = tuple(texts)
    return next((entry for entry in entries if any(mentions(text, entry) for text in said)), "")


def stem_overlap(one: str, other: str) -> float:
    """Return the share of stems that two texts have in common, of all that either has: 1 for the same words, 0 for none.

    Source: the Jaccard index. Two texts without a stem are alike.
    """
    mine, theirs = set(stems(one)), set(stems(other))
    both = mine | theirs
    return len(mine & theirs) / len(both) if both else 1.0


def natural_sort_key(key: str) -> tuple[tuple[str, int], ...]:
    """Return what sorts keys by the numbers in them: `r9/h02` before `r10/h01`."""
    parts = [*DIGITS_PATTERN.split(key), ""]
    return tuple((text, int(digits or 0)) for text, digits in zip(parts[::2], parts[1::2], strict=True))
