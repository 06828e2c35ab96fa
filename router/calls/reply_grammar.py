"""The schema of a reply as a decoding grammar in which every reply ends, with exact bounds of numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from pydantic import BaseModel

from ..errors import RouterError

Json = dict[str, Any]
REPLY_BYTES_PER_TOKEN = 3
"""Bytes per token of JSON in English, a cautious value: tokenizers with large vocabularies reach four."""
MIN_TEXT_CHARS, MIN_LIST_ITEMS = 40, 1
"""Lowest bounds to which texts and lists are cut."""
ENOUGH_TEXT_CHARS, ENOUGH_LIST_ITEMS = 160, 6
"""Lists are cut to this many items first, then texts to this many characters, then lists again."""
MAX_TEXT_CHARS, MAX_REPLY_LIST_ITEMS = 8_000, 1_000
"""Bounds of texts and lists without a bound of their own."""
GRAMMAR_TEXT_BYTES = 300
"""Bytes counted for a text with a grammar of its own."""
MAX_CHARACTER_BYTES = 4
"""Maximum bytes of a character in UTF-8."""
BLOCK_CHARS = 100
"""Characters of a block of a text that may hold any characters."""
LINE_CHARS = 100
"""Most characters between two escapes of a text of lines."""
_NARROW_CLASS, _WIDE_CLASS = (
    r"\u0020-\u0021\u0023-\u005b\u005d-\u007e",
    r"\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff",
)
CHARACTER_RULES = {
    "narrow": f"[{_NARROW_CLASS}]",
    "character": f"[{_NARROW_CLASS}{_WIDE_CLASS}]",
    "block": f"character{{{BLOCK_CHARS},{BLOCK_CHARS}}}",
    "escape": r'"\\" ["\\/bfnrt]',
}
"""Rules of a character of one byte (narrow), of any, and of an escape.

A text repeats one class: xgrammar 0.2 counts the repetitions of a class in a millisecond a token, and those of
anything else, such as a choice of a class and an escape, in up to two seconds with a vocabulary of 49,152 tokens. So
prose has no escapes, and no straight quotes; a text of lines has them, and short lines. Of a class with characters of
three bytes, xgrammar counts 128 right and allows wrong tokens where the bound is higher; hence blocks.

Allowed characters are listed: with a negated class, xgrammar 0.2 writes lone surrogates, which count as three
characters when they are read, so that a length bound is exceeded. For the same reason there are no numeric escapes.
"""
NARROW_KEY = "x-narrow"
"""Key of a text's schema: the text is of narrow characters, or short."""
COMMA = ' ", " '
WHOLE_DIGITS, DEFAULT_PLACES = 15, 9
"""Digits before and after the decimal point, unless the bounds need more."""
MAX_NUMBER_DIGITS, MAX_NUMBER_PLACES = 40, 30
"""Maximum digits before and after the decimal point."""


@dataclass(frozen=True)
class ReplyShape:
    """The shape of a reply: its schema, and grammars for some of its texts.

    Attributes
    ----------
    schema : type of BaseModel
        The record that the reply must fit.
    items : int
        Maximum items of its outermost lists, 0 for the schema's own: a model can ignore a count that the prompt states.
    texts : mapping of str to str
        Grammar (EBNF, from ``root`` on) of a text or of a list of texts, by its place, such as ``Candidate.text``. Its
        output stands between the quotes as it is, so it must need no escape in JSON.
    lines : frozenset of str
        Places of texts with line breaks and quotes, such as code; any other text has neither.
    """

    schema: type[BaseModel]
    items: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)
    lines: frozenset[str] = frozenset()


def build_reply_grammar(shape: ReplyShape, max_tokens: int) -> str:
    """Return the grammar (EBNF for xgrammar, hence vLLM) of replies that end within `max_tokens`.

    Every sentence is JSON with all members in order and fixed white space, since free white space could go on without
    an end. It fits the schema's types, lengths and bounds. Patterns, formats, steps of numbers (`multipleOf`) and rules
    in code are left to validation.

    A sentence has at most three bytes per token, so it ends in time if the model's tokens have three bytes on average.
    Two things may exceed this: texts with a grammar of their own, which count as 300 bytes each, and the schema's own
    minimums.

    Raises
    ------
    RouterError
        If the schema is recursive, has an object with free keys, or bounds that no number satisfies; if a rule of a
        text's grammar is defined twice.
    """
    schema = shape.schema.model_json_schema()
    for member in schema.get("properties", {}).values() if shape.items else ():
        if member.get("type") == "array":
            member["maxItems"] = max(member.get("minItems", 0), min(member.get("maxItems", shape.items), shape.items))
    return _Writer(
        bound_schema(schema, max_tokens * REPLY_BYTES_PER_TOKEN, frozenset(shape.texts)),
        shape.texts,
        shape.lines,
    ).grammar()


def build_choice_grammar(words: Iterable[str]) -> str:
    """Return the grammar of a JSON text that is one of these words."""
    return f"root ::= {' | '.join(_quote(_quote(word)[1:-1]) for word in words)}\n"


def build_schema_grammar(schema: type[BaseModel], max_tokens: int) -> str:
    """Return the grammar of a schema's replies; empty where none can be written, and the schema itself is sent."""
    try:
        return build_reply_grammar(ReplyShape(schema), max_tokens)
    except RouterError:
        return ""


def bound_schema(schema: Json, room: int, own_grammars: frozenset[str] = frozenset()) -> Json:
    """Return a JSON schema whose longest reply has at most `room` bytes.

    Tighter bounds of the schema stay, and so do the texts in `own_grammars` (``Class.member``). If texts of wide
    characters do not fit, all texts are bounded for mainly narrow ones, which take a quarter of the bytes. If even the
    lowest bounds do not fit, they are returned.
    """
    texts, items, narrow = MAX_TEXT_CHARS, MAX_REPLY_LIST_ITEMS, False
    tight: Json
    while measure_longest_reply(tight := _cut_schema(schema, texts, items, narrow), own_grammars) > room:
        if not narrow:
            narrow = True
        elif items > ENOUGH_LIST_ITEMS:
            items = max(items * 3 // 4, ENOUGH_LIST_ITEMS)
        elif texts > ENOUGH_TEXT_CHARS or (items == MIN_LIST_ITEMS and texts > MIN_TEXT_CHARS):
            texts = max(texts * 7 // 8, MIN_TEXT_CHARS)
        elif items > MIN_LIST_ITEMS:
            items -= 1
        else:
            break
    return tight


def _cut_schema(schema: Any, texts: int, items: int, narrow: bool) -> Any:
    """Return a JSON schema with all texts and lists cut to a length, but not below their own minimums."""
    if isinstance(schema, list):
        return [_cut_schema(part, texts, items, narrow) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    cut = {name: _cut_schema(part, texts, items, narrow) for name, part in schema.items()}
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        cut["maxLength"] = max(schema.get("minLength", 0), min(schema.get("maxLength", texts), texts))
        cut[NARROW_KEY] = narrow
    if schema.get("type") == "array":
        cut["maxItems"] = max(schema.get("minItems", 0), min(schema.get("maxItems", items), items))
    return cut


def measure_longest_reply(schema: Json, own_grammars: frozenset[str] = frozenset()) -> int:
    """Return the bytes of a schema's longest reply under the grammar of `build_reply_grammar`."""
    return _measure_part(schema, schema.get("$defs", {}), "", own_grammars)


def _measure_part(
    part: Json, defined: Json, place: str, own_grammars: frozenset[str], open_refs: tuple[str, ...] = ()
) -> int:
    def below(inner: Json, name: str = "") -> int:
        return _measure_part(inner, defined, name, own_grammars, open_refs)

    if "$ref" in part:
        name = _read_ref(part)
        if name in open_refs:
            raise RouterError(f"{name} holds itself, so its replies need not end", field="schema", got=name)
        return _measure_part(defined[name], defined, "", own_grammars, (*open_refs, name))
    if fixed := _list_fixed_values(part):
        return max(len(value) for value in fixed)
    if "anyOf" in part:
        return max(below(option) for option in part["anyOf"])
    if part.get("type") == "object":
        sizes = [
            len(json.dumps(name)) + 4 + below(member, f"{part.get('title')}.{name}")
            for name, member in _list_members(part).items()
        ]
        return 2 + sum(sizes)
    if part.get("type") == "array":
        return 2 + int(part.get("maxItems", MAX_REPLY_LIST_ITEMS)) * (2 + below(part.get("items", {}), place))
    if part.get("type") == "string":
        return 2 + (GRAMMAR_TEXT_BYTES if place in own_grammars else _TextBounds.of(part).longest)
    return Numerals.of(part).longest


@dataclass(frozen=True)
class _TextBounds:
    """Bounds of a text in characters: `least` to `most` if all are narrow, at most `wide` if any is not."""

    least: int
    most: int
    wide: int

    @classmethod
    def of(cls, part: Json) -> Self:
        least, most = int(part.get("minLength", 0)), int(part.get("maxLength", MAX_TEXT_CHARS))
        wide = max(least, most // MAX_CHARACTER_BYTES) if part.get(NARROW_KEY) else most
        return cls(least, most, wide)

    @property
    def longest(self) -> int:
        """The bytes of the longest text."""
        return max(self.most, self.wide * MAX_CHARACTER_BYTES)

    def grammar(self, *, lines: bool) -> str:
        """Return the grammar of the text: any characters, a longer text of narrow ones, or `lines` of these."""
        mixed, narrow = self._write_mixed(), f"narrow{{{self.least},{self.most}}}"
        forms = [
            mixed,
            *([narrow] if self.most > min(self.wide, BLOCK_CHARS) else []),
            *([self._write_lines()] if lines else []),
        ]
        return f"({' | '.join(forms)})" if len(forms) > 1 else forms[0]

    def _write_mixed(self) -> str:
        """Return the grammar of a text of any characters: whole blocks, and a last one that may be shorter."""
        if self.wide <= BLOCK_CHARS:
            return f"character{{{self.least},{self.wide}}}"
        least = max(-(-self.least // BLOCK_CHARS) - 1, 0)
        blocks = max(least, self.wide // BLOCK_CHARS - 1)
        return f"block{{{least},{blocks}}} character{{{min(self.least, BLOCK_CHARS)},{BLOCK_CHARS}}}"

    def _write_lines(self) -> str:
        """Return the grammar of narrow lines: an escape counts as two bytes."""
        beginning = f"narrow{{{self.least},{self.least}}} " if self.least else ""
        breaks = max(self.most - self.least - LINE_CHARS, 0) // (LINE_CHARS + 2)
        return f"{beginning}(narrow{{0,{LINE_CHARS}}} escape){{0,{breaks}}} narrow{{0,{LINE_CHARS}}}"


def _read_ref(part: Json) -> str:
    return str(part["$ref"]).rpartition("/")[2]


def _list_members(part: Json) -> Json:
    """Return the members of an object; refuse an object with free keys."""
    if "properties" not in part or part.get("additionalProperties"):
        raise RouterError(
            f"{part.get('title', 'an object')} may hold any key, so no grammar can be written for it",
            field="schema",
            hint="Give the reply a record with named members; a mapping can be a list of pairs.",
        )
    members: Json = part["properties"]
    return members


def _list_fixed_values(part: Json) -> list[str]:
    """Return all allowed values of a part as JSON; empty where they cannot be listed."""
    values: Sequence[Any] = [part["const"]] if "const" in part else part.get("enum", [])
    words: dict[str, list[bool | None]] = {"boolean": [True, False], "null": [None]}
    return [json.dumps(value) for value in values or words.get(str(part.get("type")), [])]


class _Writer:
    """Writes a schema as grammar rules: one for each record, and those of texts with a grammar of their own."""

    def __init__(self, schema: Json, texts: Mapping[str, str], lines: frozenset[str]) -> None:
        self._schema, self._texts, self._lines = schema, texts, lines
        self._defined: Json = schema.get("$defs", {})
        self._rules: dict[str, str] = {}

    def grammar(self) -> str:
        """Return all rules, `root` first."""
        rules = {"root": self._write_value(self._schema, ""), **self._rules, **CHARACTER_RULES}
        return "".join(f"{name} ::= {body}\n" for name, body in rules.items())

    def _write_record(self, name: str) -> str:
        """Return the symbol of a record and add its rule; the number separates names with equal plain letters."""
        rule = f"record_{[*self._defined].index(name)}_{_make_symbol(name)}"
        if rule not in self._rules:
            self._rules[rule] = self._write_value(self._defined[name], "")
        return rule

    def _write_value(self, part: Json, place: str) -> str:
        """Return the expression of a part of the schema; `place` is its record and member."""
        if "$ref" in part:
            return self._write_record(_read_ref(part))
        if fixed := _list_fixed_values(part):
            return f"({' | '.join(map(_quote, fixed))})"
        if "anyOf" in part:
            return f"({' | '.join(self._write_value(option, place) for option in part['anyOf'])})"
        writers: dict[str, Callable[[], str]] = {
            "object": lambda: self._write_object(part),
            "array": lambda: self._write_array(part, place),
            "string": lambda: self._write_string(part, place),
            "integer": lambda: Numerals.of(part).grammar(),
            "number": lambda: Numerals.of(part).grammar(),
        }
        kind = str(part.get("type"))
        if kind not in writers:
            raise RouterError(f"no grammar can be written for {place or 'the reply'}: {kind}", field="schema", got=kind)
        return writers[kind]()

    def _write_object(self, part: Json) -> str:
        title = part.get("title")
        parts = [
            f"{_quote(f'{json.dumps(name)}: ')} {self._write_value(member, f'{title}.{name}')}"
            for name, member in _list_members(part).items()
        ]
        return f'"{{" {COMMA.join(parts)} "}}"'

    def _write_array(self, part: Json, place: str) -> str:
        least, most = int(part.get("minItems", 0)), int(part.get("maxItems", MAX_REPLY_LIST_ITEMS))
        item = self._write_value(part.get("items", {}), place)
        filled = f'"[" {item} (", " {item}){{{max(least - 1, 0)},{most - 1}}} "]"' if most else '"[]"'
        return filled if least else f'("[]" | {filled})'

    def _write_string(self, part: Json, place: str) -> str:
        if place not in self._texts:
            return rf'"\"" {_TextBounds.of(part).grammar(lines=place in self._lines)} "\""'
        prefix = f"t{[*self._texts].index(place)}_"
        if f"{prefix}root" not in self._rules:
            self._rules |= _rename_rules(self._texts[place], prefix)
        return rf'"\"" {prefix}root "\""'


def _make_symbol(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _quote(text: str) -> str:
    """Return a text as a quoted literal of the grammar, with JSON's escapes."""
    return json.dumps(text)


def _rename_rules(grammar: str, prefix: str) -> dict[str, str]:
    """Return the rules of a grammar with a prefix before every symbol."""
    rules: dict[str, str] = {}
    for line in filter(None, grammar.splitlines()):
        name, _, body = line.partition("::=")
        if (name := prefix + name.strip()) in rules:
            raise RouterError(f"{name.removeprefix(prefix)} is written twice", field="texts", got=line)
        rules[name] = re.sub(
            r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\b[A-Za-z_]\w*',
            lambda match: match[0] if match[0][0] in '"[' else prefix + match[0],
            body.strip(),
        )
    return rules


@dataclass(frozen=True)
class Numerals:
    """The numbers that a part of a JSON schema allows, in steps of ten to the power of minus `places`.

    Attributes
    ----------
    low, high : int
        The lowest and the highest number, in steps.
    places : int
        Maximum digits after the decimal point.
    """

    low: int
    high: int
    places: int

    @classmethod
    def of(cls, part: Mapping[str, Any]) -> Self:
        """Return the numbers of a schema that the grammar writes.

        In a wide range, numbers with more digits than the defaults are left out. A step (``multipleOf``) is ignored.

        Raises
        ------
        RouterError
            If no number lies within the bounds, or only numbers with too many digits.
        """
        for places in (0,) if part.get("type") == "integer" else range(DEFAULT_PLACES, MAX_NUMBER_PLACES + 1):
            low, high = (_find_bound(part, side, places) for side in ("minimum", "maximum"))
            nearest = max(low or 0, -(high or 0), 0)
            reach = 10 ** max(WHOLE_DIGITS + places, len(str(nearest))) - 1
            numerals = cls(
                max(-reach, -reach if low is None else low), min(reach, reach if high is None else high), places
            )
            if numerals.low <= numerals.high and len(str(reach)) <= MAX_NUMBER_DIGITS + places:
                return numerals
        bounds = {name: part[name] for name in sorted(part) if "imum" in name.lower()}
        raise RouterError(
            f"no number of at most {MAX_NUMBER_DIGITS} digits, {MAX_NUMBER_PLACES} after the point, lies within "
            f"{bounds}",
            field="schema",
            got=bounds,
            hint="Bound the number otherwise.",
        )

    @property
    def longest(self) -> int:
        """The characters of the longest number."""
        digits = len(str(max(abs(self.low), abs(self.high)) // 10**self.places))
        return (self.low < 0) + digits + (1 + self.places if self.places else 0)

    def grammar(self) -> str:
        """Return the grammar of one of the numbers; zero has no sign."""
        signed = []
        if self.high >= 0:
            signed += _write_unsigned(max(self.low, 0), self.high, self.places)
        if self.low < 0:
            signed += [f'"-" ({" | ".join(_write_unsigned(max(-self.high, 1), -self.low, self.places))})']
        return f"({' | '.join(signed)})"


def _find_bound(part: Mapping[str, Any], side: str, places: int) -> int | None:
    """Return the outermost number on a side, in steps; None where there is no bound.

    An exclusive bound becomes the next float inside: a nearer number would be parsed as the bound itself.
    """
    inwards, nearest, strictest = _SIDES[side]
    bounds = []
    for name, excluded in ((side, False), (f"exclusive{side.capitalize()}", True)):
        bound = part.get(name)
        if bound is None or math.isinf(bound):
            continue
        if excluded and not places:
            beyond = nearest(Fraction(str(bound)))
            bounds.append(beyond + inwards if beyond == bound else beyond)
        else:
            limit = math.nextafter(bound, inwards * math.inf) if excluded else bound
            bounds.append(nearest(Fraction(str(limit)) * 10**places))
    return strictest(bounds) if bounds else None


_SIDES: dict[str, tuple[int, Callable[[Fraction], int], Callable[[list[int]], int]]] = {
    "minimum": (1, math.ceil, max),
    "maximum": (-1, math.floor, min),
}
"""By side: the direction inwards, the rounding inwards, and the choice of the stricter of two bounds."""


def _write_unsigned(low: int, high: int, places: int) -> list[str]:
    """Return the alternatives of the numbers from `low` to `high`, in steps, none below zero."""
    step = 10**places
    (first, rest), (last, most) = divmod(low, step), divmod(high, step)
    if first == last:
        return [whole + _write_fraction(rest, most, places) for whole in _write_whole_numbers(first, last)]
    alternatives = []
    if rest:
        alternatives += [
            whole + _write_fraction(rest, step - 1, places) for whole in _write_whole_numbers(first, first)
        ]
        first += 1
    if most < step - 1:
        alternatives += [whole + _write_fraction(0, most, places) for whole in _write_whole_numbers(last, last)]
        last -= 1
    return alternatives + [whole + _write_fraction(0, step - 1, places) for whole in _write_whole_numbers(first, last)]


def _write_fraction(low: int, high: int, places: int) -> str:
    """Return the grammar of the decimal point and the digits after it; optional where zeros are allowed."""
    if not places or not high:
        return f' ("." "0"{{1,{places}}})?' if places else ""
    part = f'"." {_write_digits(str(low).zfill(places), str(high).zfill(places), 1)}'
    return f" {part}" if low else f" ({part})?"


def _write_whole_numbers(first: int, last: int) -> Iterator[str]:
    """Yield the alternatives of whole numbers, none below zero, by number of digits; none if `first` > `last`."""
    full: list[int] = []
    for count in range(len(str(first)), len(str(last)) + 1) if first <= last else ():
        least, most = 10 ** (count - 1) if count > 1 else 0, 10**count - 1
        if count > 1 and first <= least and most <= last:
            full.append(count - 1)
        else:
            yield _write_digits(str(max(first, least)), str(min(last, most)), count)
    if full:
        yield f"[1-9] [0-9]{{{full[0]},{full[-1]}}}"


def _write_digits(low: str, high: str, least: int) -> str:
    """Return the grammar of the digits from `low` to `high`, of equal length.

    Trailing zeros after the first `least` digits may be left out.
    """
    count = len(low)
    if not count:
        return ""
    zeros, nines = "0" * (count - 1), "9" * (count - 1)
    if (low, high) == ("0" + zeros, "9" + nines):
        return f"[0-9]{{{least},{count}}}"
    fewer = max(least - 1, 0)
    first, last = int(low[0]), int(high[0])
    parts = []
    if first == last:
        parts.append(_write_lead_digit(first, last, _write_digits(low[1:], high[1:], fewer)))
    else:
        if low[1:] != zeros:
            parts.append(_write_lead_digit(first, first, _write_digits(low[1:], nines, fewer)))
            first += 1
        if high[1:] != nines:
            parts.append(_write_lead_digit(last, last, _write_digits(zeros, high[1:], fewer)))
            last -= 1
        if first <= last:
            parts.append(_write_lead_digit(first, last, _write_digits(zeros, nines, fewer)))
    return f"({' | '.join(parts)})" + ("?" if not least and low == "0" + zeros else "")


def _write_lead_digit(first: int, last: int, rest: str) -> str:
    led = f"[{first}-{last}]" if first < last else f'"{first}"'
    return f"{led} {rest}".rstrip()
