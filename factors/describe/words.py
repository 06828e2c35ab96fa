"""Compare texts by the stems of their words: mentions, overlap, and relevance to a query (Okapi BM25).

It is in this room because agents and evidence both compare words, and this is the lowest room that both import.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

FIRST_GREEK_LETTER = "\u0370"
"""The first letter after those of Latin alphabets, with their accents."""
STEM_WORD_PATTERN = re.compile(r"[a-z0-9]+")
DIGITS_PATTERN = re.compile(r"([0-9]+)")
STEM_SUFFIXES = ("edly", "ing", "ity", "ed", "ly", "al", "e")
MIN_STEM_LETTERS = 3
MAX_STEM_LETTERS = 7
"""The least letters that removing a suffix must leave, and the most letters of a stem."""

BM25_K1 = 1.2
BM25_B = 0.75

HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
"""Unicode categories of invisible characters: control, format, unassigned, private use, surrogate."""

STOP_WORDS = frozenset(
    [
        "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "because", "been", "before", "but",
        "by", "can", "could", "did", "do", "does", "down", "each", "for", "from", "had", "has", "have", "he", "her",
        "here", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "like", "may", "me", "more", "most",
        "much", "must", "my", "no", "nor", "not", "of", "off", "on", "once", "only", "or", "other", "our", "out",
        "over", "own", "should", "so", "some", "such", "than", "that", "the", "their", "them", "then", "there",
        "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "very", "was", "we",
        "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "would", "you", "your",
        "stock", "stocks", "name", "names", "share", "shares", "company", "companies", "factor", "factors", "signal",
        "signals", "horizon", "look", "find", "idea",
    ]
)  # fmt: skip  # a table
"""Stop words, and words that do not distinguish mechanisms."""


def replace_invisible(text: str, instead: str = " ") -> str:
    """Replace each invisible character of a text; line breaks and tabs stay.

    Invisible characters are control codes of terminals, marks of writing direction and zero-width characters.
    """
    return "".join(instead if unicodedata.category(c) in HIDDEN_CATEGORIES and c not in "\n\t" else c for c in text)


@lru_cache(maxsize=65_536)
def find_stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words in their order, stop words left out.

    A stem is a word in lower case without a plural's s and its last common ending, at most seven letters: volatile and
    volatility have one stem, and so have price and prices. It is a rule of thumb for English, not a dictionary.
    """
    return tuple(_stem(word) for word in STEM_WORD_PATTERN.findall(text.lower()) if word not in STOP_WORDS)


def has_other_letters(text: str) -> bool:
    """Return whether a text has letters that are not Latin, of whose words `find_stems` knows nothing."""
    return any(letter >= FIRST_GREEK_LETTER and letter.isalpha() for letter in text)


def _stem(word: str) -> str:
    if len(word) > MIN_STEM_LETTERS and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    ending = next(
        (suffix for suffix in STEM_SUFFIXES if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM_LETTERS),
        "",
    )
    return word.removesuffix(ending)[:MAX_STEM_LETTERS]


def mentions(text: str, what: str) -> bool:
    """Return whether the stems of a word or phrase occur in sequence in a text; False for an empty phrase."""
    phrase, present = find_stems(what), find_stems(text)
    size = len(phrase)
    return bool(phrase) and any(present[at : at + size] == phrase for at in range(len(present) - size + 1))


def find_mention(texts: Iterable[str], entries: Iterable[str]) -> str:
    """Return the first of some words or phrases that any of the texts mentions; empty if there is none."""
    searched = tuple(texts)
    return next((entry for entry in entries if any(mentions(text, entry) for text in searched)), "")


def measure_stem_overlap(one: str, other: str) -> float:
    """Return the share of stems that two texts have in common: 1 for the same words, 0 for none.

    It is the Jaccard index of their stems; 1 for two texts without stems.
    """
    mine, theirs = set(find_stems(one)), set(find_stems(other))
    both = mine | theirs
    return len(mine & theirs) / len(both) if both else 1.0


def natural_sort_key(key: str) -> tuple[tuple[str, int], ...]:
    """Return a sort key that orders numbers by value: `r9/h02` before `r10/h01`."""
    parts = [*DIGITS_PATTERN.split(key), ""]
    return tuple((text, int(digits or 0)) for text, digits in zip(parts[::2], parts[1::2], strict=True))


def score_relevance(query: str, texts: Sequence[str]) -> list[float]:
    """Return the relevance of each text to a query, in the order of the texts: 0 where no word is shared.

    A word that fewer texts contain counts more; repetitions count less and less, and less in a long text.

    Parameters
    ----------
    query : str
        Plain words; each counts once.
    texts : sequence of str
        The texts to score; may be empty.

    Returns
    -------
    list of float
        One score per text, at least 0; deterministic to the last bit.

    Notes
    -----
    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", with the idf that stays
    positive, `log(1 + (n - df + 0.5) / (df + 0.5))`.
    """
    documents = [Counter(find_stems(text)) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    weights = _weigh_stems(query, documents)
    return [
        _score_document(document, size / mean if mean else 0.0, weights)
        for document, size in zip(documents, lengths, strict=True)
    ]


def _weigh_stems(query: str, documents: Sequence[Counter[str]]) -> dict[str, float]:
    """Return the inverse document frequency of each stem of a query, in the order of the alphabet."""
    stems = sorted(set(find_stems(query)))
    counts = {stem: sum(1 for document in documents if stem in document) for stem in stems}
    return {stem: math.log1p((len(documents) - count + 0.5) / (count + 0.5)) for stem, count in counts.items()}


def _score_document(document: Counter[str], length: float, weights: dict[str, float]) -> float:
    """Return one text's score; `length` is its own over the mean."""
    damp = BM25_K1 * (1.0 - BM25_B + BM25_B * length)
    return sum(
        weight * document[stem] * (BM25_K1 + 1.0) / (document[stem] + damp)
        for stem, weight in weights.items()
        if stem in document
    )
