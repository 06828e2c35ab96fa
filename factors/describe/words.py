"""Compare texts by the stems of their words: mentions, overlap, and relevance to a query (Okapi BM25).

It stands in this room because agents and evidence both compare words, and this is the lowest room that both import.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

STEM_WORD_PATTERN = re.compile(r"[a-z0-9]+")
DIGITS_PATTERN = re.compile(r"([0-9]+)")
STEM_SUFFIXES = ("edly", "ing", "ity", "ed", "ly", "al", "e")
MIN_STEM_LETTERS = 3
MAX_STEM_LETTERS = 7
"""Letters that a suffix must leave, and that a stem has at most."""

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
)  # fmt: skip
"""Stop words, and words that do not distinguish mechanisms."""


def replace_invisible(text: str, instead: str = " ") -> str:
    """Replace each invisible character of a text; line breaks and tabs stay.

    Invisible are control codes of terminals, marks of writing direction and characters without width.
    """
    return "".join(instead if unicodedata.category(c) in HIDDEN_CATEGORIES and c not in "\n\t" else c for c in text)


@lru_cache(maxsize=65_536)
def find_stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words in their order, stop words left out.

    A stem is a word in lower case without a plural's s and its last common ending, seven letters at most: volatile and volatility, price
    and prices meet. It is a rule of thumb for English, not a dictionary.
    """
    return tuple(_stem(word) for word in STEM_WORD_PATTERN.findall(text.lower()) if word not in STOP_WORDS)


def _stem(word: str) -> str:
    if len(word) > MIN_STEM_LETTERS and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    ending = next(
        (suffix for suffix in STEM_SUFFIXES if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM_LETTERS),
        "",
    )
    return word.removesuffix(ending)[:MAX_STEM_LETTERS]


def mentions(text: str, what: str) -> bool:
    """Return whether the stems of a word or phrase follow each other in a text; False for an empty phrase."""
    wanted, present = find_stems(what), find_stems(text)
    size = len(wanted)
    return bool(wanted) and any(present[at : at + size] == wanted for at in range(len(present) - size + 1))


def find_mention(texts: Iterable[str], entries: Iterable[str]) -> str:
    """Return the first of some words or phrases that any of the texts mentions, empty where there is none."""
    searched = tuple(texts)
    return next((entry for entry in entries if any(mentions(text, entry) for text in searched)), "")


def measure_stem_overlap(one: str, other: str) -> float:
    """Return the share of stems that two texts have in common, of all that either has: 1 for the same words, 0 for none.

    Source: the Jaccard index. Two texts without a stem are alike.
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

    A word counts for more the fewer texts contain it; repetitions count for less and less, and less in a long text.

    Parameters
    ----------
    query
        Plain words; each counts once.
    texts
        The texts to score; may be empty.

    Returns
    -------
    list of float
        One score a text, at least 0; equal input, equal scores to the last bit.

    Notes
    -----
    Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework: BM25 and Beyond", with the idf that stays
    positive, `log(1 + (n - df + 0.5) / (df + 0.5))`.
    """
    documents = [Counter(find_stems(text)) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    weights = _weights(query, documents)
    return [
        _score(document, size / mean if mean else 0.0, weights)
        for document, size in zip(documents, lengths, strict=True)
    ]


def _weights(query: str, documents: Sequence[Counter[str]]) -> dict[str, float]:
    """Return the inverse document frequency of each stem of a query, in the order of the alphabet."""
    wanted = sorted(set(find_stems(query)))
    counts = {stem: sum(1 for document in documents if stem in document) for stem in wanted}
    return {stem: math.log1p((len(documents) - count + 0.5) / (count + 0.5)) for stem, count in counts.items()}


def _score(document: Counter[str], length: float, weights: dict[str, float]) -> float:
    """Return one text's score; `length` is its own over the mean."""
    damp = BM25_K1 * (1.0 - BM25_B + BM25_B * length)
    return sum(
        weight * document[stem] * (BM25_K1 + 1.0) / (document[stem] + damp)
        for stem, weight in weights.items()
        if stem in document
    )
