"""The check of a model's words for an account of the record: nothing wrong, nothing added, no refusal left out.

`find_retelling_fault` is a pure function. It is strict, since a rephrasing that is thrown away costs nothing and one
that is wrong misleads a reader:

- Each sentence must follow one sentence of the account. It has all figures and days of that sentence in their order,
  rounded at most, or none of them; its names and verdicts are among those of that sentence; both or none are negated.
- For each refusal, failed step, verdict and alarm of the account, one sentence must have the words that tell which.
- A sentence has no word that neither the account nor the list of common words has.
- What follows a word such as "because" has a figure or name of the sentence of the account that it follows.

A cause that is made of words of the account and names something of it is not caught.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING

from ..factors.describe import find_stems

if TYPE_CHECKING:
    from ..ledger.account import DecisionAccount, Sentence

END_OF_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)")
TOKEN = re.compile(r"[^\s\"“”„«»()\[\]{},;]+")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
FIGURE = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
EDGES = ".:!?'\u2019\u2018`*_~<>"
MINUS_SIGNS = {0x2212: "-", 0x2013: "-"}
_FIGURES_IN_WORDS = """
zero nil
one once single first
two twice second double both pair
three thrice third triple
four fourth quarter
five fifth
six sixth
seven seventh
eight eighth
nine ninth
ten tenth
eleven
twelve dozen
thirteen
fourteen
fifteen
sixteen
seventeen
eighteen
nineteen
twenty
"""
FIGURE_WORDS = {
    "half": "0.5", "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000",
    **{word: str(value) for value, line in enumerate(_FIGURES_IN_WORDS.split("\n")[1:]) for word in line.split()},
}  # fmt: skip  # a table
_VERDICTS = """
accepted rejected refused approved denied declined vetoed passed failed proven unproven retired halted resumed agreed
allowed blocked acknowledged permitted succeeded watchlist decaying forbidden cleared dismissed
"""
VERDICT_STEMS = frozenset(stem for word in _VERDICTS.split() for stem in find_stems(word))
_NEGATIONS = "not no never none nobody nothing without neither nor cannot hardly nowhere lacks lacking"
NEGATIONS = frozenset(_NEGATIONS.split())
SHORT_NEGATIONS = ("n't", "n\u2019t")
CAUSE = re.compile(
    r"\b(because|since|due to|owing to|thanks to|caused?|causes|causing|reasons?|therefore|thus|hence|as a result|"
    r"led to|driven|result(s|ed|ing)? (from|in)|so that|in order to|stem(s|med)? from|after all|explain(s|ed)?|"
    r"on account of|given|following|amid|in light of|reflecting|under pressure|as)\b",
    re.IGNORECASE,
)
_COMMON = """
the a an it its this that these those there here in on at by for from of to with and or but as if then than is was were
are be been has had have did does do which who whose what when while where because since so also both all any each other
another under over above below exceeded exceeds exceed higher lower larger smaller greater less more most least than
against compared beyond within required requires needed needs met meets meet reached missed short fell between after
before during according however although though therefore thus overall finally next further additionally moreover only
still yet per via about into out up down they their them he she his her we our you your model models record records
recorded named name names state stated states says said shows shown gives given made make makes using used use held
holds hold number value values test tested tests factor signal decision gate step rule check checked checks measured
found came come went receive received obtained happened put asked score result results question answer people person
"""
COMMON_WORDS = frozenset(_COMMON.split())
"""Words that a retelling may use of its own: they name nothing, and give no cause alone."""


@dataclass(frozen=True)
class ReadSentence:
    """What a sentence claims: figures in their order, names, verdicts, whether it is negated, and its other words."""

    text: str
    figures: tuple[str, ...]
    names: frozenset[str]
    verdicts: frozenset[str]
    negated: bool
    stems: frozenset[str]


@dataclass(frozen=True)
class AccountReading:
    """An account as the check reads it."""

    account: DecisionAccount

    @cached_property
    def sentences(self) -> tuple[ReadSentence, ...]:
        """Its sentences."""
        return tuple(self.read(sentence.text) for sentence in self.account.sentences)

    def read(self, text: str) -> ReadSentence:
        """Return what a sentence claims, in the words of the account."""
        return _read_sentence(text, self.words, self.labels)

    @cached_property
    def labels(self) -> frozenset[str]:
        """Single words that are values of the record, such as a rule, a step, a status or a person, in lower case."""
        values = [value for sentence in self.account.sentences for value in sentence.values.values()]
        texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
        words = {text.casefold() for text in texts if isinstance(text, str) and text.isidentifier()}
        return frozenset(words - COMMON_WORDS - NEGATIONS)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of the account, as it is written there and in lower case."""
        tokens = [token for sentence in self.account.sentences for token in _split_tokens(sentence.text)]
        return frozenset(tokens) | frozenset(map(str.casefold, tokens))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all its words."""
        return frozenset(find_stems(self.account.text)) | frozenset(find_stems(" ".join(COMMON_WORDS)))


def find_retelling_fault(text: str, account: DecisionAccount) -> str:
    """Return why a model's words for an account are not shown; empty where they may be."""
    reading = AccountReading(account)
    if any(
        unicodedata.category(letter) in ("Nl", "No") or (letter.isdigit() and not letter.isascii()) for letter in text
    ):
        return "wrote figures in other signs than 0 to 9"
    told = [reading.read(part) for part in split_sentences(text)]
    if not told:
        return "wrote nothing"
    supports = []
    for sentence in told:
        found = [place for place, given in enumerate(reading.sentences) if _follows(sentence, given)]
        if fault := _find_sentence_fault(sentence, reading, found):
            return fault
        supports.append(found)
    for place, given in enumerate(account.sentences):
        if given.kept and not _is_mentioned(given, place, told, supports):
            return f"left out: {given.text}"
    return ""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [part.strip() for part in END_OF_SENTENCE.split(text) if part.strip()]


def _find_sentence_fault(sentence: ReadSentence, reading: AccountReading, found: Sequence[int]) -> str:
    """Return what is wrong with one sentence, given the sentences of the account that it follows."""
    if not found:
        return f"wrote what no sentence of the account has: {sentence.text}"
    if own := sorted(stem for stem in sentence.stems if stem not in reading.stems):
        return f"gave words of its own ({', '.join(own)}): {sentence.text}"
    if sentence.text in {given.text for given in reading.sentences}:
        return ""
    for cause in CAUSE.finditer(sentence.text):
        named = reading.read(f"it {sentence.text[cause.end() :]}")
        if not (named.figures or named.names):
            return f"gave a cause that names nothing of the account: {sentence.text}"
    return ""


def _follows(told: ReadSentence, given: ReadSentence) -> bool:
    """Return whether a sentence claims nothing that a sentence of the account does not."""
    return (
        told.names <= given.names
        and told.verdicts <= given.verdicts
        and told.negated == given.negated
        and _agree(told.figures, given.figures)
    )


def _agree(told: Sequence[str], given: Sequence[str]) -> bool:
    """Return whether figures are none, or those given in their order, rounded at most."""
    return not told or (len(told) == len(given) and all(map(_is_rounded, told, given)))


def _is_rounded(told: str, given: str) -> bool:
    if told == given or DAY.fullmatch(told) or DAY.fullmatch(given):
        return told == given
    try:
        value, exact = Decimal(told), Decimal(given)
        if value == exact:
            return True
        digits = len(value.as_tuple().digits)
        step = Decimal(1).scaleb(int(value.as_tuple().exponent))
        return digits > 1 and abs(exact - value) <= step / 2 and value != 0
    except InvalidOperation:
        return False


def _is_mentioned(given: Sentence, place: int, told: Sequence[ReadSentence], supports: Sequence[Sequence[int]]) -> bool:
    """Return whether a sentence that follows this one has all words that must be kept."""
    return any(
        place in found and all(_has_words(sentence.text, words) for words in given.kept)
        for sentence, found in zip(told, supports, strict=True)
    )


def _has_words(text: str, words: str) -> bool:
    pattern = rf"(?<![\w.]){re.escape(' '.join(words.split()))}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) is not None


def _read_sentence(text: str, known: frozenset[str], labels: frozenset[str]) -> ReadSentence:
    """Return what a sentence claims; `known` are the words of the account, `labels` those that are values."""
    figures, names = [], set[str]()
    tokens = list(_split_tokens(text))
    for place, token in enumerate(tokens):
        if figure := _read_figure(token):
            figures.append(figure)
        elif token.casefold() in labels:
            names.add(token.casefold())
        elif _is_name(token, first=place == 0, known=known):
            names.add(token)
    words = [token.casefold() for token in tokens]
    negated = any(word in NEGATIONS or word.endswith(SHORT_NEGATIONS) for word in words)
    stems = frozenset(find_stems(" ".join(word for word in tokens if word not in names and not _read_figure(word))))
    return ReadSentence(text, tuple(figures), frozenset(names), stems & VERDICT_STEMS, negated, stems)


def _split_tokens(text: str) -> Iterator[str]:
    """Yield the words, figures and names of a text without the marks around them."""
    plain = unicodedata.normalize("NFKC", text).translate(MINUS_SIGNS)
    for match in TOKEN.finditer(plain):
        if token := match[0].strip(EDGES):
            yield from token.split("%") if token.rstrip("%") and FIGURE.fullmatch(token.rstrip("%")) else [token]


def _read_figure(token: str) -> str:
    """Return a figure or a day as it is compared; empty for another word."""
    if DAY.fullmatch(token):
        return token
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", token)
    if FIGURE.fullmatch(plain):
        return plain.lstrip("+")
    return FIGURE_WORDS.get(token.casefold(), "")


def _is_name(token: str, *, first: bool, known: frozenset[str]) -> bool:
    """Return whether a word names something: it has a digit, a sign within, or a capital that starts no sentence."""
    if any(letter.isdigit() or letter in "_/\\@=<>#" for letter in token) or "." in token:
        return True
    if first and token.casefold() in known | COMMON_WORDS:
        return token in known and not token.istitle()
    return any(letter.isupper() for letter in token)
