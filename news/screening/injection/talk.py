# ruff: noqa: RUF001 - look-alike letters are what this is about
"""Talk of reading, judging and answering: words that weigh little alone and much together.

News reports events; an instruction says what to write. Each word below adds its weight once within `TALK_SPAN_WORDS`
words, verbs that open a sentence as an order add more, and from `MIN_TALK_WEIGHT` on the sum is a sign. The rarer a
word is in headlines and tweets, the larger its weight.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from .concepts import BIT, MAX_WORD_CHARS, ConceptMark
from .fold import fold_lookalikes

TALK_SPAN_WORDS = 28
MIN_TALK_WEIGHT = 0.4
TALK_SHARE = 0.61
"""Weight of the sign as a share of the sum: from a sum of 0.82 on such talk alone holds a short text back."""
SHORT_TEXT_WORDS, DOUBLING_LOSS = 60, 0.12
"""Each doubling beyond this length reduces the weight: a longer text has more stretches, and the densest counts."""
_TALK_WORDS: tuple[tuple[float, str], ...] = (
    (
        0.45,
        (
            "disregard* instructions prompt* llm* chatgpt gpt* verbatim annotator* summaris* summariz* summarizer* "
            "jailbreak* obey* pretend* roleplay* persona preprompt chatbot* guardrail* json unconditionally "
            "irrespective scraper* scraping labeller* labeler* hypothes* superlative* outrank* rationale exfiltrat* "
            "credential* password* sudo webhook* toolchain whichever whoever classifier* caveat* caveats instruction "
            "directive directives supersede* evaluator* grader* reviewer* placeholder unquestioning* reply replies "
            "hereby "
        ),
    ),
    (
        0.3,
        (
            "respond* assistant assistants sentiment label labels labelled labeled verdict wording evaluat* ignor* "
            "overrid* bypass* forget* harness invoke* parse* parsing parser* classif* polarity score scoring scored "
            "paste quoting confidential* secret* kindly mention* omit* reveal* disclos* feed machine machines ai bot "
            "bots agent agents model models algorithm* pipeline* systems formula* factor factors approved approve* "
            "accepted accept quarantine* calibration drill output* generate* memory remember* sessions operator* "
            "administrator* developer* rules guidelines policy context conversation message following followed "
            "describe* portray* conclude* conclusion regard* treat treated mark marked tag tagged rate rated assign* "
            "gate gates backtest* significance originality database query queries function tool tools endpoint  words "
            "sentence sentences paragraph* text texts passage* headline headlines document documents entry dataset "
            "sample maximum maximal* maximis* maximiz* ceiling bullishness exceptional extraordinarily favourab* "
            "favorab* favour configur* reward* grant* exceed* confidence moonshot gospel stellar tone mood stance "
            "language freely upgrading permitted overrule* superiors amended policies ledger sealed thresholds "
            "holdings wallet vetted certified uncritical* favourably favorably upside downside* automated automatic* "
            "trained helpful honest permission authoris* authoriz* task role objective job duty instead nothing else "
            "otherwise regardless unless whenever answer answers answering summary summaries rating user reader "
            "readers reading read process analyst analysts reviewing vetted verified trustworthy validated count "
            "counted decision checks check human humans private hidden internal replace* append include* insert* "
            "prefix begin direction "
        ),
    ),
    (
        0.15,
        (
            "you your you're yourself must should ought shall always never only simply without when if sure surely "
            "clearly obviously ensure correct right proper positive negative neutral dear attention fyi this every "
            "without until once any article story item tweet release don't do not please 1.0 +1 premium call list "
            "steps "
        ),
    ),
    (
        0.1,
        (
            "from these our us we next time strong top best highest 1 buy note hey hello full real would could need "
            "report news "
        ),
    ),
)
_ORDER_WORDS = (
    "speak trigger transfer treat write post query run invoke attach encode leak set store replace flip promote "
    "describe summarise summarize rate score mark label tag call respond answer reply return output put skip remember "
    "ignore disregard forget obey follow give assign classify recommend include mention begin say state conclude "
    "approve accept copy print reveal tell send forward fetch pretend act consider ensure please never always do don't "
    "kindly append insert quote repeat leave stop override bypass disable insert translate decode raise file log "
    "record regard record produce emit generate execute upload download paste weigh bump overwrite omit avoid favour "
    "favor refrain drop cancel delete reset assume imagine behave adopt switch proceed comply confirm waive clear pass "
    "reject register value"
)
_FOREIGN_WEIGHTS = {
    "foreign drop": 0.4, "foreign instr": 0.35, "foreign hardmachine": 0.45, "foreign rate": 0.25,
    "foreign hardmetric": 0.3, "foreign extreme": 0.15, "foreign order": 0.35, "foreign keep": 0.2,
    "foreign send": 0.15, "foreign show": 0.2, "foreign hardsecret": 0.5, "foreign conceal": 0.5, "foreign role": 0.5,
    "foreign must": 0.2, "outverb": 0.2, "outnoun": 0.15, "readv": 0.1, "thistext": 0.25, "your": 0.15, "heading": 0.1,
    "task": 0.2, "new": 0.1, "follow": 0.2, "reader": 0.15, "approve": 0.15, "hardpipe": 0.2, "prior": 0.1,
}  # fmt: skip  # a table
_ADDRESS_WORDS = frozenset(
    (
        "an order", "you", "your", "yourself", "you're", "please", "kindly", "dear", "thi", "whoever", "whichever",
        "fyi", "attention", "annotator", "hereby", "reviewer", "evaluator", "grader", "json", "foreign drop",
        "foreign hardmachine", "foreign role", "foreign conceal", "thistext", "heading", "outverb", "foreign instr",
    )
)  # fmt: skip  # a table
"""Words that address a reader; talk without them is a report."""
_TALK_TOKEN = re.compile(r"[+-]?\d+(?:\.\d+)?|(?<![^\W\d]_)[^\W\d_]+(?:['’][^\W\d_]+)?|[.!?:;\n(\"“—{>]")
_ORDER_WEIGHT = 0.3


def find_talk(text: str, marks: Sequence[ConceptMark]) -> Iterator[tuple[int, int, float]]:
    """Yield the densest stretch of talk in English, and of marks in other languages: begin, end and weight.

    Nothing is yielded where the sum stays below `MIN_TALK_WEIGHT`.
    """
    length = count_doublings(text)
    for weighted_words in (_iter_english(text), _iter_foreign(marks)):
        start, end, total = _find_densest(weighted_words)
        weight = TALK_SHARE * total - DOUBLING_LOSS * length
        if total >= MIN_TALK_WEIGHT and weight > 0:
            yield start, end, round(weight, 2)


def count_doublings(text: str) -> float:
    """Return how often a text of `SHORT_TEXT_WORDS` words must be doubled to be as long; 0 for a shorter one."""
    return max(math.log2(max(text.count(" "), 1) / SHORT_TEXT_WORDS), 0.0)


def _iter_english(text: str) -> Iterator[tuple[int, int, int, str, float]]:
    """Yield each word with a weight: its number in the text, start, end, the name that it counts as, and its weight."""
    opens, place = True, 0
    for match in _TALK_TOKEN.finditer(text):
        word = match[0]
        if not (word[0].isalnum() or word[0] in "+-"):
            opens = True
            continue
        name, weight, order = _weigh_word(word.lower())
        place += 1
        if opens and order:
            yield place, match.start(), match.end(), "an order", _ORDER_WEIGHT
        if weight:
            yield place, match.start(), match.end(), name, weight
        opens = False


def _iter_foreign(marks: Sequence[ConceptMark]) -> Iterator[tuple[int, int, int, str, float]]:
    """Yield the concepts of words that are not English, in the same form."""
    for mark in (mark for mark in marks if mark.bits & BIT["foreign"]):
        for name, weight in _FOREIGN_WEIGHTS.items():
            if mark.bits & BIT[name]:
                yield mark.word, mark.start, mark.end, name, weight


def _find_densest(weighted_words: Iterator[tuple[int, int, int, str, float]]) -> tuple[int, int, float]:
    """Return start, end and weight of the heaviest `TALK_SPAN_WORDS` words that address a reader.

    Each name counts once.
    """
    window: deque[tuple[int, int, str, float]] = deque()
    counts: dict[str, int] = {}
    total, best, addressed = 0.0, (0, 0, 0.0), 0
    for place, start, end, name, weight in weighted_words:
        while window and place - window[0][0] > TALK_SPAN_WORDS:
            _, _, old, lost = window.popleft()
            counts[old] -= 1
            addressed -= old in _ADDRESS_WORDS
            total -= lost if not counts[old] else 0.0
        window.append((place, start, name, weight))
        counts[name] = counts.get(name, 0) + 1
        addressed += name in _ADDRESS_WORDS
        total += weight if counts[name] == 1 else 0.0
        if addressed and total > best[2] + 1e-9:
            best = (window[0][1], end, total)
    return best


@cache
def _build_tables() -> tuple[dict[str, float], dict[str, float], frozenset[str]]:
    """Return words, beginnings of words, and verbs that open an order."""
    exact: dict[str, float] = {}
    prefixes: dict[str, float] = {}
    for weight, listed in _TALK_WORDS:
        for word in listed.split():
            (prefixes if word.endswith("*") else exact).setdefault(word.rstrip("*"), weight)
    return exact, prefixes, frozenset(_ORDER_WORDS.split())


def _weigh_word(word: str) -> tuple[str, float, bool]:
    """Return the name that a word counts as, its weight, and whether it opens an order; a very long word is cut."""
    return _weigh_known(word[:MAX_WORD_CHARS])


@lru_cache(maxsize=1 << 16)
def _weigh_known(word: str) -> tuple[str, float, bool]:
    exact, prefixes, orders = _build_tables()
    plain = fold_lookalikes(word)
    if plain in exact:
        return plain.rstrip("s"), exact[plain], plain in orders
    stem = next((plain[:size] for size in range(len(plain), 2, -1) if plain[:size] in prefixes), "")
    return stem, prefixes.get(stem, 0.0), plain in orders
