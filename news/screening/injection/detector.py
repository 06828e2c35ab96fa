"""Does a text speak to the machine that reads it? Signs with weights; from the threshold on it is held back.

The signs are of five kinds: words that stand close together (`rules`, `talk`), sentences that call or order a machine
(`address`), marks that belong between a program and its model (`templates`), instructions that markup or encoding hides
(`markup`, `views`, `ciphers`), and characters that nobody sees. Words to people take some of the weight away (`people`). Weights of
signs within `SIGN_WINDOW_CHARS` characters add up, so that a long filing is not judged by all its pages at once. Time grows in
proportion to the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..cleaning import Clean
from . import address
from .address import find_addressed
from .ciphers import is_prose
from .concepts import BIT, ConceptMark, marks
from .people import People
from .rules import INJECTION_RULES, SignRule
from .talk import doublings, talk
from .templates import TEMPLATES
from .views import DISGUISES, PAYLOADS, views

THRESHOLD = 0.45
"""From this score on an item is held back."""
SIGN_WINDOW_CHARS = 400
"""How many characters apart the first and the last sign may be that are added up."""
MIN_HIDDEN_SCORE, MIN_ENCODED_SCORE = 0.3, 0.5
"""From which score a hidden text, and one that was decoded, is a sign by itself."""
HEAVY_WEIGHT, RULE_DOUBLING = 0.7, 0.08
"""Lighter rules lose this with each doubling of length beyond a short text: a long one has more places to match by chance."""
SIGN_EXCERPT_CHARS = 80
TALK_SIGN = "talks of answering"
MARKUP_SIGNS = ("chat template", "forged tag", "link with a load", "needless escapes")
"""Marks that mean the same among the tags of a page; the others are ordinary in its scripts."""
PROSE_WEIGHT = 0.6
"""What weighs prose that shows only when it is decoded, whatever it says."""
LETTER_VIEWS = ("rot13", "reversed", "reversed words", "glued words")
"""Views in which ordinary words become letters that may be a word of some language."""
MAX_READ_FACTOR, MIN_READ_CHARS, VIEWS_PER_LENGTH = 40, 100_000, 100
"""Disguises of a text are read until they are so many times as long as the text; each counts for a hundredth of it at least.

What is read grows with the length of the text alone, and a text with more disguises is held back unread. Pages of
documentation in HTML have 23 times their length at most.
"""
MAX_HIDDEN_PIECES = 4_000
"""Hidden lines, and strings of scripts, that are read one by one; a text that hides more is held back."""
_QUOTED_STRING = re.compile(r"[\"'`*]([^\"'`*{}\n]{6,400})[\"'`*]")
_LETTER_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Sign:
    """One sign that fired.

    Attributes
    ----------
    name : str
        What kind of sign it is.
    weight : float
        What it adds to the score.
    evidence : str
        The words in which it showed, at most 80 characters; for a person only.
    """

    name: str
    weight: float
    evidence: str = ""


@dataclass(frozen=True)
class ScreeningVerdict:
    """What was found in a text: the score and the signs that it is the sum of, the heaviest first."""

    score: float
    signs: tuple[Sign, ...] = ()

    @property
    def injected(self) -> bool:
        """Tell whether the text is to be held back."""
        return self.score >= THRESHOLD


@dataclass(frozen=True)
class _Hit:
    start: int
    end: int
    name: str
    weight: float


_PATHS = [(rule, rule.bits, tuple(BIT[name] for name in rule.concepts)) for rule in INJECTION_RULES]


def judge_text(clean: Clean) -> ScreeningVerdict:
    """Judge a cleaned text, with what it was cleaned of."""
    everywhere = list(_invisible_hits(clean))
    found = _heaviest_signs([*_find_rule_hits(clean.text), *_match_templates(clean.text), *everywhere], clean.text)
    if clean.marked and clean.marked != clean.text:
        tags = [hit for hit in _match_templates(clean.marked) if hit.name in MARKUP_SIGNS]
        found = _join_signs(found, _heaviest_signs(tags, clean.marked))
    if _total(found) < THRESHOLD:
        found = _join_signs(found, [*_hidden_signs(clean), *_encoded_signs(clean.marked or clean.text)])
    score = round(_total(found), 3)
    return ScreeningVerdict(score, tuple(sorted(found, key=lambda sign: (-sign.weight, sign.name))))


def _find_rule_hits(text: str, strange: bool = True, page: bool = False) -> Iterator[_Hit]:
    """Yield where the rules fire; without words of other languages where letters were changed, for then too much is one."""
    people = People(text, page)
    for hit in _match_rules(text, strange):
        weight = round(hit.weight - people.relief(hit.start, hit.end), 3)
        if weight > 0:
            yield replace(hit, weight=weight)


def _match_rules(text: str, strange: bool) -> Iterator[_Hit]:
    """Yield where the rules fire, whoever is spoken to."""
    words = marks(text)
    if not strange:
        words = [mark for mark in words if not mark.bits & BIT["foreign"]]
    union = 0
    for mark in words:
        union |= mark.bits
    yield from (_Hit(start, end, TALK_SIGN, weight) for start, end, weight in talk(text, words))
    length = doublings(text)
    yield from (
        _Hit(start, end, address.ADDRESS_SIGN, _lighten_weight(weight, length))
        for start, end, weight in find_addressed(text)
    )
    for rule, bits, path in _PATHS:
        if union & bits == bits:
            weight = _lighten_weight(rule.weight, length)
            yield from (replace(hit, weight=weight) for hit in _match_rule(rule, path, words))


def _lighten_weight(weight: float, length: float) -> float:
    """Return what a light sign weighs in a text that is so many times twice as long as a short one."""
    return weight if weight >= HEAVY_WEIGHT else round(max(weight - RULE_DOUBLING * length, 0.05), 3)


def _match_rule(rule: SignRule, path: tuple[int, ...], words: list[ConceptMark]) -> Iterator[_Hit]:
    """Yield each place where a rule's concepts follow each other closely enough."""
    begun: list[ConceptMark | None] = [None] * len(path)
    last = len(path) - 1
    for mark in words:
        for step in range(last, -1, -1):
            if not mark.bits & path[step]:
                continue
            begun[step] = mark if step == 0 else begun[step - 1]
            first = begun[last]
            if step == last and first is not None and mark.word - first.word <= rule.span:
                yield _Hit(first.start, mark.end, rule.name, rule.weight)
                begun[last] = None


def _match_templates(text: str) -> Iterator[_Hit]:
    """Yield where marks of a program stand in the text."""
    for template in TEMPLATES:
        for match in template.pattern.finditer(text):
            yield _Hit(match.start(), match.end(), template.name, template.weight)


def _invisible_hits(clean: Clean) -> Iterator[_Hit]:
    """Yield the signs of characters that nobody sees, and of words of mixed scripts; they hold for the whole text."""
    counts = clean.removed
    for kind, least, weight in (
        ("tag characters", 1, 0.8),
        ("bidirectional overrides", 1, 0.3),
        ("direction overrides", 1, 0.5),
        ("zero-width characters", 4, 0.4),
        ("zero-width characters", 24, 0.8),
        ("variation selectors", 12, 0.5),
        ("other control characters", 8, 0.3),
        ("nested markup", 1, 0.5),
        ("forged ends", 1, 0.6),
        ("swelling characters", 1, 0.6),
    ):
        if counts.get(kind, 0) >= least:
            yield _Hit(-1, -1, kind, weight)
    mixed = _count_mixed_words(clean.text)
    if mixed:
        yield _Hit(-1, -1, "look-alike letters", 0.3 if mixed == 1 else 0.5)


def _count_mixed_words(text: str) -> int:
    """Return how many words mix Latin with Cyrillic or Greek letters."""
    if text.isascii():
        return 0
    return sum(_is_mixed(word) for word in _LETTER_WORD.findall(text) if not word.isascii())


def _is_mixed(word: str) -> bool:
    """Tell whether a word holds Latin letters and letters of a script that imitates them."""
    scripts = {unicodedata.name(mark, "").split(" ")[0] for mark in word}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})


def _hidden_signs(clean: Clean) -> list[Sign]:
    """Return the sign of an instruction that the markup hides: in one piece, or in the strings of scripts and styles."""
    lines = [*clean.hidden.split("\n"), clean.hidden, *_QUOTED_STRING.findall(clean.code)]
    pieces = dict.fromkeys(filter(str.strip, lines))
    if len(pieces) > MAX_HIDDEN_PIECES:
        return [Sign("hidden pieces beyond count", 1.0, f"{len(pieces):,} pieces")]
    for text in pieces:
        found = _heaviest_signs([*_find_rule_hits(text, page=True), *_match_templates(text)], text)
        deeper = found if _total(found) >= MIN_HIDDEN_SCORE else _encoded_signs(text)
        if _total(deeper) >= MIN_HIDDEN_SCORE:
            return [Sign("hidden instruction", 1.0, deeper[0].evidence)]
    return []


def _encoded_signs(text: str) -> list[Sign]:
    """Return the sign of an instruction that shows only when the text is decoded."""
    best, sign, plain = 0.0, None, text.lower()
    left = MAX_READ_FACTOR * len(text) + MIN_READ_CHARS
    for name, reading in views(text):
        left -= max(len(reading), len(text) // VIEWS_PER_LENGTH, 1)
        if left < 0:
            return [Sign("disguises beyond count", 1.0, _excerpt(_Hit(0, SIGN_EXCERPT_CHARS, name, 1.0), text))]
        last = name.rpartition(", ")[2]
        letterwise = last in LETTER_VIEWS
        hits = [*_find_rule_hits(reading, strange=not letterwise), *(() if letterwise else _match_templates(reading))]
        found = [each for each in _heaviest_signs(hits, reading) if each.evidence.lower() not in plain]
        if last in DISGUISES or (last in PAYLOADS and is_prose(reading)):
            found.append(Sign("prose", PROSE_WEIGHT, _excerpt(_Hit(0, len(reading), name, PROSE_WEIGHT), reading)))
        score = _total(found)
        if score >= MIN_ENCODED_SCORE and score > best:
            best, sign = score, Sign(f"encoded instruction ({name})", 1.0, found[0].evidence)
    return [sign] if sign else []


def _heaviest_signs(hits: Iterable[_Hit], text: str) -> list[Sign]:
    """Return the signs of the stretch of text whose weights add up to most; each name counts once."""
    everywhere = [hit for hit in hits if hit.start < 0]
    local = sorted((hit for hit in hits if hit.start >= 0), key=lambda hit: (hit.start, hit.end, hit.name, hit.weight))
    best = _signs_by_name(everywhere, text)
    first = 0
    for place in range(len(local)):
        if place + 1 < len(local) and local[place + 1].start - local[first].start <= SIGN_WINDOW_CHARS:
            continue
        window = _signs_by_name([*everywhere, *local[first : place + 1]], text)
        best = max(best, window, key=_total)
        while place + 1 < len(local) and local[place + 1].start - local[first].start > SIGN_WINDOW_CHARS:
            first += 1
    return best


def _signs_by_name(hits: list[_Hit], text: str) -> list[Sign]:
    """Return one sign for each name, the heaviest."""
    best: dict[str, _Hit] = {}
    for hit in hits:
        if hit.name not in best or hit.weight > best[hit.name].weight:
            best[hit.name] = hit
    if TALK_SIGN in best and len(best) > 1:
        best[TALK_SIGN] = replace(
            best[TALK_SIGN], weight=round(best[TALK_SIGN].weight / 2, 3)
        )  # half of it is what the other signs are made of
    return [
        Sign(hit.name, hit.weight, _excerpt(hit, text))
        for hit in sorted(best.values(), key=lambda hit: (-hit.weight, hit.name))
    ]


def _join_signs(one: list[Sign], other: list[Sign]) -> list[Sign]:
    """Return the signs of both; a name that is in both counts once, with its heavier weight."""
    best = {sign.name: sign for sign in sorted([*one, *other], key=lambda sign: sign.weight)}
    return sorted(best.values(), key=lambda sign: (-sign.weight, sign.name))


def _excerpt(hit: _Hit, text: str) -> str:
    """Return the words of a hit on one line."""
    return (
        " ".join(text[hit.start : min(hit.end, hit.start + 10 * SIGN_EXCERPT_CHARS)].split())[:SIGN_EXCERPT_CHARS]
        if hit.start >= 0
        else ""
    )


def _total(signs: list[Sign]) -> float:
    """Return the sum of the weights."""
    return sum(sign.weight for sign in signs)
