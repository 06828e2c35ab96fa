"""The detector of prompt injection: signs with weights; a text whose weights reach the threshold is held back.

The signs are of five kinds: words close together (`rules`, `talk`), sentences that call or order a machine (`address`),
marks that belong between a program and its model (`rules`), instructions hidden by markup or encoding (`markup`,
`disguises`), and invisible characters. Words to people reduce the weight (`address`). Weights of signs within
`SIGN_WINDOW_CHARS` characters add up, so that a long filing is not judged by all its pages at once. Time grows in
proportion to the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..cleaning import MAX_RECORD_CHARS, Clean, sanitise
from .address import ADDRESS_SIGN, People, find_addressed
from .concepts import BIT, ConceptMark, find_concepts
from .disguises import DISGUISES, PAYLOADS, find_views, is_prose
from .rule_tables import INJECTION_RULES, TEMPLATES, SignRule
from .talk import count_doublings, find_talk

THRESHOLD = 0.45
"""From this score on an item is held back."""
SIGN_WINDOW_CHARS = 400
"""Most characters between the first and the last sign whose weights are added."""
MIN_HIDDEN_SCORE, MIN_ENCODED_SCORE = 0.3, 0.5
"""Scores from which a hidden text, and a decoded one, is a sign by itself."""
HEAVY_WEIGHT, RULE_DOUBLING = 0.7, 0.08
"""Rules lighter than the first lose the second at each doubling beyond a short text: long texts match by chance."""
SIGN_EXCERPT_CHARS = 80
TALK_SIGN = "talks of answering"
MARKUP_SIGNS = ("chat template", "forged tag", "link with a load", "needless escapes")
"""Marks that are signs among the tags of a page too; the others are ordinary in its scripts."""
PROSE_WEIGHT = 0.6
"""Weight of prose that appears only when decoded, whatever it says."""
LETTER_VIEWS = ("rot13", "reversed", "reversed words", "glued words")
"""Views in which ordinary words become letters that may be a word of some language."""
MAX_READ_FACTOR, MIN_READ_CHARS, VIEWS_PER_LENGTH = 40, 100_000, 100
"""Decoded readings of a text are read up to this multiple of its length; each counts for at least a hundredth of it.

So the work is proportional to the length of the text, and a text with more disguises is held back unread. HTML pages of
documentation reach 23 times their length at most.
"""
MAX_HIDDEN_PIECES = 4_000
"""Hidden lines, and strings of scripts, that are read one by one; a text with more is held back."""
_QUOTED_STRING = re.compile(r"[\"'`*]([^\"'`*{}\n]{6,400})[\"'`*]")
_LETTER_WORD = re.compile(r"[^\W\d_]{3,}")
_RESERVED_SENTENCE = re.compile(
    r"(?:(?<=[.!?:\n])|^)[ \t]*(?:"
    r"(?:strictly |private and )?confidential"
    r"|(?:please )?(?:do not|don't) (?:share|distribute|redistribute|forward|circulate)"
    r"(?: this (?:document|note|memo|file))?(?: outside (?:of )?(?:the|our) (?:desk|firm|company|team|group))?"
    r"|(?:for )?internal use only|not for (?:external )?distribution)(?:[.!]+(?=\s|$)|(?=\n|$))",
    re.IGNORECASE,
)
"""Whole sentences of confidentiality: they give orders, as an injection does, but to people."""


@dataclass(frozen=True)
class Sign:
    """One sign that was found.

    Attributes
    ----------
    name : str
        The kind of sign.
    weight : float
        Its part of the score.
    evidence : str
        The words of the text, at most 80 characters; for a person only.
    """

    name: str
    weight: float
    evidence: str = ""


@dataclass(frozen=True)
class ScreeningVerdict:
    """The score of a text, and the signs whose weights it sums, the heaviest first."""

    score: float
    signs: tuple[Sign, ...] = ()

    @property
    def injected(self) -> bool:
        """Return whether the text is held back."""
        return self.score >= THRESHOLD


@dataclass(frozen=True)
class _Hit:
    start: int
    end: int
    name: str
    weight: float


_PATHS = [(rule, rule.bits, tuple(BIT[name] for name in rule.concepts)) for rule in INJECTION_RULES]


def judge_text(clean: Clean) -> ScreeningVerdict:
    """Return the verdict on a cleaned text, including the parts removed from it."""
    everywhere = list(_find_invisible_hits(clean))
    signs = _select_heaviest([*_find_rule_hits(clean.text), *_match_templates(clean.text), *everywhere], clean.text)
    if clean.marked and clean.marked != clean.text:
        tags = [hit for hit in _match_templates(clean.marked) if hit.name in MARKUP_SIGNS]
        signs = _join_signs(signs, _select_heaviest(tags, clean.marked))
    if _sum_weights(signs) < THRESHOLD:
        signs = _join_signs(signs, [*_find_hidden_signs(clean), *_find_encoded_signs(clean.marked or clean.text)])
    score = round(_sum_weights(signs), 3)
    return ScreeningVerdict(score, tuple(sorted(signs, key=lambda sign: (-sign.weight, sign.name))))


def _find_rule_hits(text: str, strange: bool = True, page: bool = False) -> Iterator[_Hit]:
    """Yield the hits of the rules, less the relief for words to people.

    `strange` includes other languages; it is off where changed letters imitate their words.
    """
    people = People(text, page)
    for hit in _match_rules(text, strange):
        weight = round(hit.weight - people.compute_relief(hit.start, hit.end), 3)
        if weight > 0:
            yield replace(hit, weight=weight)


def _match_rules(text: str, strange: bool) -> Iterator[_Hit]:
    """Yield the hits of the rules at full weight, without relief."""
    words = find_concepts(text)
    if not strange:
        words = [mark for mark in words if not mark.bits & BIT["foreign"]]
    union = 0
    for mark in words:
        union |= mark.bits
    yield from (_Hit(start, end, TALK_SIGN, weight) for start, end, weight in find_talk(text, words))
    length = count_doublings(text)
    yield from (
        _Hit(start, end, ADDRESS_SIGN, _lighten_weight(weight, length)) for start, end, weight in find_addressed(text)
    )
    for rule, bits, path in _PATHS:
        if union & bits == bits:
            weight = _lighten_weight(rule.weight, length)
            yield from (replace(hit, weight=weight) for hit in _match_rule(rule, path, words))


def _lighten_weight(weight: float, length: float) -> float:
    """Return the weight of a sign in a text of `length` doublings of a short one."""
    return weight if weight >= HEAVY_WEIGHT else round(max(weight - RULE_DOUBLING * length, 0.05), 3)


def _match_rule(rule: SignRule, path: tuple[int, ...], words: list[ConceptMark]) -> Iterator[_Hit]:
    """Yield each place where a rule's concepts follow each other closely enough."""
    starts: list[ConceptMark | None] = [None] * len(path)
    last = len(path) - 1
    for mark in words:
        for step in range(last, -1, -1):
            if not mark.bits & path[step]:
                continue
            starts[step] = mark if step == 0 else starts[step - 1]
            first = starts[last]
            if step == last and first is not None and mark.word - first.word <= rule.span:
                yield _Hit(first.start, mark.end, rule.name, rule.weight)
                starts[last] = None


def _match_templates(text: str) -> Iterator[_Hit]:
    """Yield the marks of a program in the text."""
    for template in TEMPLATES:
        for match in template.pattern.finditer(text):
            yield _Hit(match.start(), match.end(), template.name, template.weight)


def _find_invisible_hits(clean: Clean) -> Iterator[_Hit]:
    """Yield the signs of invisible characters and of words in mixed scripts; they hold for the whole text."""
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
    """Return whether a word has Latin letters and letters of a script that imitates them."""
    scripts = {unicodedata.name(mark, "").split(" ")[0] for mark in word}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})


def _find_hidden_signs(clean: Clean) -> list[Sign]:
    """Return the sign of an instruction hidden by markup: in one piece, or in strings of scripts and styles."""
    lines = [*clean.hidden.split("\n"), clean.hidden, *_QUOTED_STRING.findall(clean.code)]
    pieces = dict.fromkeys(filter(str.strip, lines))
    if len(pieces) > MAX_HIDDEN_PIECES:
        return [Sign("hidden pieces beyond count", 1.0, f"{len(pieces):,} pieces")]
    for text in pieces:
        signs = _select_heaviest([*_find_rule_hits(text, page=True), *_match_templates(text)], text)
        deeper = signs if _sum_weights(signs) >= MIN_HIDDEN_SCORE else _find_encoded_signs(text)
        if _sum_weights(deeper) >= MIN_HIDDEN_SCORE:
            return [Sign("hidden instruction", 1.0, deeper[0].evidence)]
    return []


def _find_encoded_signs(text: str) -> list[Sign]:
    """Return the sign of an instruction that appears only when the text is decoded."""
    best, sign, plain = 0.0, None, text.lower()
    budget = MAX_READ_FACTOR * len(text) + MIN_READ_CHARS
    for name, reading in find_views(text):
        budget -= max(len(reading), len(text) // VIEWS_PER_LENGTH, 1)
        if budget < 0:
            return [Sign("disguises beyond count", 1.0, _quote_hit(_Hit(0, SIGN_EXCERPT_CHARS, name, 1.0), text))]
        last = name.rpartition(", ")[2]
        letterwise = last in LETTER_VIEWS
        hits = [*_find_rule_hits(reading, strange=not letterwise), *(() if letterwise else _match_templates(reading))]
        signs = [hidden for hidden in _select_heaviest(hits, reading) if hidden.evidence.lower() not in plain]
        if last in DISGUISES or (last in PAYLOADS and is_prose(reading)):
            signs.append(Sign("prose", PROSE_WEIGHT, _quote_hit(_Hit(0, len(reading), name, PROSE_WEIGHT), reading)))
        score = _sum_weights(signs)
        if score >= MIN_ENCODED_SCORE and score > best:
            best, sign = score, Sign(f"encoded instruction ({name})", 1.0, signs[0].evidence)
    return [sign] if sign else []


def _select_heaviest(hits: Iterable[_Hit], text: str) -> list[Sign]:
    """Return the signs of the stretch with the largest sum of weights; each name counts once."""
    everywhere = [hit for hit in hits if hit.start < 0]
    local = sorted((hit for hit in hits if hit.start >= 0), key=lambda hit: (hit.start, hit.end, hit.name, hit.weight))
    best = _group_by_name(everywhere, text)
    first = 0
    for place in range(len(local)):
        if place + 1 < len(local) and local[place + 1].start - local[first].start <= SIGN_WINDOW_CHARS:
            continue
        window = _group_by_name([*everywhere, *local[first : place + 1]], text)
        best = max(best, window, key=_sum_weights)
        while place + 1 < len(local) and local[place + 1].start - local[first].start > SIGN_WINDOW_CHARS:
            first += 1
    return best


def _group_by_name(hits: list[_Hit], text: str) -> list[Sign]:
    """Return one sign for each name, the heaviest."""
    best: dict[str, _Hit] = {}
    for hit in hits:
        if hit.name not in best or hit.weight > best[hit.name].weight:
            best[hit.name] = hit
    if TALK_SIGN in best and len(best) > 1:  # the other signs consist of about half of its words
        best[TALK_SIGN] = replace(best[TALK_SIGN], weight=round(best[TALK_SIGN].weight / 2, 3))
    return [
        Sign(hit.name, hit.weight, _quote_hit(hit, text))
        for hit in sorted(best.values(), key=lambda hit: (-hit.weight, hit.name))
    ]


def _join_signs(one: list[Sign], other: list[Sign]) -> list[Sign]:
    """Return the signs of both; a name that is in both counts once, with its heavier weight."""
    best = {sign.name: sign for sign in sorted([*one, *other], key=lambda sign: sign.weight)}
    return sorted(best.values(), key=lambda sign: (-sign.weight, sign.name))


def _quote_hit(hit: _Hit, text: str) -> str:
    """Return the words of a hit on one line."""
    return (
        " ".join(text[hit.start : min(hit.end, hit.start + 10 * SIGN_EXCERPT_CHARS)].split())[:SIGN_EXCERPT_CHARS]
        if hit.start >= 0
        else ""
    )


def _sum_weights(signs: list[Sign]) -> float:
    """Return the sum of the weights."""
    return sum(sign.weight for sign in signs)


def screen_text(raw: str) -> tuple[str, str]:
    """Return a document that a person chose, cleaned, and why it is held back (empty where it is not).

    Usual sentences of confidentiality are removed before it is judged, because a person chose the document.
    """
    clean = sanitise(raw, MAX_RECORD_CHARS)
    verdict = judge_text(
        replace(clean, text=_RESERVED_SENTENCE.sub("", clean.text), marked=_RESERVED_SENTENCE.sub("", clean.marked))
    )
    return clean.text, ", ".join(dict.fromkeys(sign.name for sign in verdict.signs)) if verdict.injected else ""
