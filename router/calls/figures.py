"""Figures of a model's text that are in nothing that it was given: a frequent failure of small models.

Digits and English number words are compared by value, so "1,200", "1200" and "1200.0" are one figure, and "five" is 5.
Signs, units and what a figure is said of are not compared.
"""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {
    **{word: Decimal(value) for value, word in enumerate(f"{_UNITS} seventeen eighteen nineteen".split())},
    **{word: Decimal(10 * value) for value, word in enumerate(_TENS.split(), 2)},
    "hundred": Decimal(100),
    "thousand": Decimal(1_000),
    "million": Decimal(10**6),
    "billion": Decimal(10**9),
}
_PLAIN_WORDS = frozenset({"zero", "one"})
"""Words that are often no figure ("no one"): they count as given and are never missed."""
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_WORD = re.compile(r"[a-z]+")


def find_unfounded_figures(text: str, given: str) -> list[str]:
    """Return the figures of a text, as they are written there, whose value is not among those of `given`."""
    known = {value for value, _ in _list_figures(given)}
    missed = (word for value, word in _list_figures(text) if value not in known and word not in _PLAIN_WORDS)
    return list(dict.fromkeys(missed))


def _list_figures(text: str) -> list[tuple[Decimal, str]]:
    """Return the figures of a text with their values: those in digits, then those in words."""
    digits = [(_parse(word), word) for word in _DIGITS.findall(text)]
    words = [(_WORDS[word], word) for word in _WORD.findall(text.casefold()) if word in _WORDS]
    return digits + words


def _parse(word: str) -> Decimal:
    """Return the value of digits; a comma before one to two, or over three, digits is a decimal comma."""
    if _THOUSANDS.fullmatch(word):
        return Decimal(word.replace(",", ""))
    whole, *rest = re.split("[.,]", word)
    return Decimal(f"{whole}.{''.join(rest)}" if rest else whole)
