"""Compare two formulas: the largest subtree that they share, as a ratio of both sizes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from struct import unpack, unpack_from
from typing import NamedTuple, Self

from ..describe.render import render
from ..language.expression import Expression
from .outline import Numbers, Outline, draw_outline, encode_number, is_near, list_subtrees


class KnownFormula(NamedTuple):
    """A known formula: in the library, published, or earlier in the same batch.

    Attributes
    ----------
    name : str
        Its id in the library, or its name in its source; names order formulas of equal likeness.
    where : str
        Its source: ``the library``, or the publication.
    text : str
        The formula, in Alphaloom's language.
    outline, numbers, size
        The input of the comparison; see `Outline`.
    """

    name: str
    where: str
    text: str
    outline: str
    numbers: Numbers
    size: int

    @classmethod
    def of(cls, name: str, expression: Expression, where: str) -> Self:
        """Return a formula under a name, with its source."""
        outline = draw_outline(expression.core)
        return cls(name, where, expression.shown, outline.text, outline.numbers, outline.size)

    def find_spans(self, part: Outline) -> Iterator[Numbers]:
        """Yield the numbers of each occurrence of an outline in this one."""
        place = self.outline.find(part.text)
        while place >= 0:
            first = self.outline.count("#", 0, place)
            yield self.numbers[first : first + len(part.numbers)]
            place = self.outline.find(part.text, place + 1)

    def holds(self, part: Outline) -> bool:
        """Return whether it contains a subtree with near numbers; texts are compared, not hashes."""
        return any(is_near(part.codes, tuple(map(encode_number, numbers))) for numbers in self.find_spans(part))


class Likeness(NamedTuple):
    """The largest subtree that a formula shares with a known one.

    Attributes
    ----------
    known : KnownFormula
        The other formula.
    ratio : float
        Twice the size of the largest shared subtree over the sum of both sizes: 1 for equal formulas, 0 if no subtree
        is shared.
    part : Outline or None
        The shared subtree, as the first formula has it.
    """

    known: KnownFormula
    ratio: float
    part: Outline | None

    @property
    def shared(self) -> str:
        """Return the shared subtree as a formula; empty where there is none."""
        return render(self.part.node) if self.part else ""

    @property
    def theirs(self) -> Numbers:
        """Return the known formula's numbers at an occurrence of `shared`, preferably an equal one."""
        if self.part is None:
            return ()
        spans = [
            span
            for span in self.known.find_spans(self.part)
            if is_near(self.part.codes, tuple(map(encode_number, span)))
        ]
        return next((span for span in spans if span == self.part.numbers), spans[0])

    @property
    def exact(self) -> bool:
        """Return whether windows and numbers are equal too; otherwise they are only near."""
        return self.part is None or self.theirs == self.part.numbers


def compare_formulas(expression: Expression, known: KnownFormula) -> Likeness:
    """Return the likeness of two formulas: ``2 s / (a + b)`` for sizes a and b and the largest common subtree s.

    Sign, factor and the last steps that keep the order of names (rank, zscore, log, ...) are ignored, and numbers need
    only be near each other: see `draw_outline`. This is the slow definition, without any hash, to which tests hold
    `nearest`.
    """
    outline = draw_outline(expression.core)
    for part in list_subtrees(outline):
        if known.holds(part):
            return Likeness(known, 2.0 * part.size / (outline.size + known.size), part)
    return Likeness(known, 0.0, None)


def rank_likeness(likenesses: Iterable[Likeness], top: int) -> list[Likeness]:
    """Return the highest ratios, highest first, ties by name."""
    return sorted(likenesses, key=lambda likeness: (-likeness.ratio, likeness.known.name))[:top]


def pack_formula(known: KnownFormula) -> bytes:
    """Write a known formula as bytes: four texts that end with a zero byte, then the numbers."""
    texts = [text.replace("\0", "") for text in (known.name, known.where, known.text, known.outline)]
    return "\0".join([*texts, ""]).encode() + array("d", known.numbers).tobytes()


def unpack_formula(raw: bytes, size: int) -> KnownFormula:
    """Read what `pack_formula` wrote."""
    name, where, text, outline, numbers = raw.split(b"\0", 4)
    values = unpack(f"{len(numbers) // 8}d", numbers)
    return KnownFormula(name.decode(), where.decode(), text.decode(), outline.decode(), values, size)


def holds_packed(raw: bytes, part: Outline) -> bool:
    """Return whether a packed formula contains a subtree, without unpacking the rest; see `KnownFormula.holds`."""
    outline, numbers = raw.split(b"\0", 4)[3:]
    text = part.text.encode()
    place = outline.find(text)
    if not part.codes:
        return place >= 0
    while place >= 0:
        first = outline.count(b"#", 0, place)
        if is_near(part.codes, tuple(map(encode_number, unpack_from(f"{len(part.codes)}d", numbers, 8 * first)))):
            return True
        place = outline.find(text, place + 1)
    return False
