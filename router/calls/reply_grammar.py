"""The schema of a reply as a grammar for decoding, closed so that every reply ends; numbers within bounds by their digits, exactly."""

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
"""Of JSON in English, cautiously: tokenizers of large vocabularies write four."""
MIN_TEXT_CHARS, MIN_LIST_ITEMS = 40, 1
"""What is left of a text and of a list, at the least."""
ENOUGH_TEXT_CHARS, ENOUGH_LIST_ITEMS = 160, 6
"""Lists shrink to so many items first, then texts to so many characters, then lists again."""
MAX_TEXT_CHARS, MAX_REPLY_LIST_ITEMS = 8_000, 1_000
"""Of what has no bound of its own."""
GRAMMAR_TEXT_BYTES = 300
"""Bytes that are reckoned for a text that a grammar of its own holds."""
MAX_CHARACTER_BYTES = 4
"""Bytes of a character, at most."""
STRETCH_CHARS = 16
"""Characters of one byte among which, where there is little room, one may stand that has more."""
CHARACTER_RULES = {
    "narrow": r"[\u0020-\u0021\u0023-\u005b\u005d-\u007e]",
    "wide": r'[\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff] | "\\" ["\\/bfnrt]',
    "character": "narrow | wide",
    "stretch": f"narrow{{{STRETCH_CHARS},{STRETCH_CHARS}}} | narrow{{0,{STRETCH_CHARS - 1}}} wide",
}
"""A character of a text, of one byte or of more; and so many, or fewer and a wide one. What may stand is listed: a class of what
may not lets xgrammar 0.2 write halves of surrogates, each three characters when they are read, so that a length is overrun.
For the same reason there are no codes."""
NARROW_KEY = "x-narrow"
"""Says of a text in a schema that it is mainly of narrow characters."""
COMMA = ' ", " '
WHOLE_DIGITS, DEFAULT_PLACES = 15, 9
"""Digits before and after the point, where the bounds ask for no more."""
MAX_NUMBER_DIGITS, MAX_NUMBER_PLACES = 40, 30
"""What is written where they do, and no further."""


@dataclass(frozen=True)
class ReplyShape:
    """What a reply looks like: its schema, and what may stand in some of its texts.

    Attributes
    ----------
    schema : type of BaseModel
        The record that the reply must fit.
    items : int
        The most items of its outermost lists, 0 for the schema's own: a count that is asked for in words can be forgotten.
    texts : mapping of str to str
        By the place of a text or of a list of texts, such as ``Candidate.text``: the grammar (EBNF, from ``root`` on) that
        holds it. What it writes stands between the quotes as it is, so that it must need no escape in JSON.
    """

    schema: type[BaseModel]
    items: int = 0
    texts: Mapping[str, str] = field(default_factory=dict)


def build_reply_grammar(shape: ReplyShape, max_tokens: int) -> str:
    """Return the grammar (EBNF, as xgrammar and so vLLM takes it) of the replies that end within as many tokens.

    Every sentence is JSON with all members in their order, without a choice of white space: a model that rambles in it
    would never end. It fits the schema's types, lengths and bounds. Of a pattern, a format, a number's step (`multipleOf`) or a
    rule in code it knows nothing: these are left to validation.

    A sentence has three bytes a token at most, so that it ends if the model's tokens have as many on average. Two things are
    not held to it: texts with a grammar of their own, which are reckoned with 300 bytes each, and what the schema itself wants
    at the least.

    Raises
    ------
    RouterError
        If the schema refers to itself, holds what has no finite list of members, or a number that none can be; if a rule of
        a text is written twice.
    """
    schema = shape.schema.model_json_schema()
    for each in schema.get("properties", {}).values() if shape.items else ():
        if each.get("type") == "array":
            each["maxItems"] = max(each.get("minItems", 0), min(each.get("maxItems", shape.items), shape.items))
    return _Writer(
        bound_schema(schema, max_tokens * REPLY_BYTES_PER_TOKEN, frozenset(shape.texts)), shape.texts
    ).grammar()


def build_choice_grammar(words: Iterable[str]) -> str:
    """Return the grammar of a text that is one of these."""
    return f"root ::= {' | '.join(_literal(_literal(word)[1:-1]) for word in words)}\n"


def build_schema_grammar(schema: type[BaseModel], max_tokens: int) -> str:
    """Return the grammar of a schema's replies; empty where none can be written, so that the schema itself must do."""
    try:
        return build_reply_grammar(ReplyShape(schema), max_tokens)
    except RouterError:
        return ""


def bound_schema(schema: Json, room: int, held: frozenset[str] = frozenset()) -> Json:
    """Return a JSON schema whose longest reply has at most as many bytes.

    A bound that leaves room stays. Texts in `held` (``Class.member``) have a grammar of their own and stay, too. Where not all
    can be of the widest characters, all are mainly of narrow ones: they say the same in a quarter of the room. Where even the
    least is too long, the least is returned.
    """
    texts, items, narrow = MAX_TEXT_CHARS, MAX_REPLY_LIST_ITEMS, False
    tight: Json
    while measure_longest_reply(tight := _cut(schema, texts, items, narrow), held) > room:
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


def _cut(schema: Any, texts: int, items: int, narrow: bool) -> Any:
    """Return a JSON schema with all its texts and lists cut to a length, but not below the least that it wants."""
    if isinstance(schema, list):
        return [_cut(each, texts, items, narrow) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    cut = {name: _cut(each, texts, items, narrow) for name, each in schema.items()}
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        cut["maxLength"] = max(schema.get("minLength", 0), min(schema.get("maxLength", texts), texts))
        cut[NARROW_KEY] = narrow
    if schema.get("type") == "array":
        cut["maxItems"] = max(schema.get("minItems", 0), min(schema.get("maxItems", items), items))
    return cut


def measure_longest_reply(schema: Json, held: frozenset[str] = frozenset()) -> int:
    """Return the bytes of a schema's longest reply, as `build_reply_grammar` writes it."""
    return _longest_part_bytes(schema, schema.get("$defs", {}), "", held)


def _longest_part_bytes(part: Json, defined: Json, place: str, held: frozenset[str], seen: tuple[str, ...] = ()) -> int:
    def below(each: Json, name: str = "") -> int:
        return _longest_part_bytes(each, defined, name, held, seen)

    if "$ref" in part:
        name = _name(part)
        if name in seen:
            raise RouterError(f"{name} holds itself, so its replies need not end", field="schema", got=name)
        return _longest_part_bytes(defined[name], defined, "", held, (*seen, name))
    if fixed := _fixed_values(part):
        return max(len(each) for each in fixed)
    if "anyOf" in part:
        return max(below(each) for each in part["anyOf"])
    if part.get("type") == "object":
        sizes = [
            len(json.dumps(name)) + 4 + below(each, f"{part.get('title')}.{name}")
            for name, each in _members(part).items()
        ]
        return 2 + sum(sizes)
    if part.get("type") == "array":
        return 2 + int(part.get("maxItems", MAX_REPLY_LIST_ITEMS)) * (2 + below(part.get("items", {}), place))
    if part.get("type") == "string":
        return 2 + (GRAMMAR_TEXT_BYTES if place in held else _TextBounds.of(part).longest)
    return Numerals.of(part).longest


@dataclass(frozen=True)
class _TextBounds:
    """How long a text may be, in characters: `least` to `most` if all are narrow, `wide` if none is."""

    least: int
    most: int
    wide: int

    @classmethod
    def of(cls, part: Json) -> Self:
        least, most = int(part.get("minLength", 0)), int(part.get("maxLength", MAX_TEXT_CHARS))
        return cls(least, most, max(least, most // MAX_CHARACTER_BYTES) if part.get(NARROW_KEY) else most)

    @property
    def stretches(self) -> int:
        """How many stretches fit in beside the least, with room for the begin of another."""
        return max(self.most - self.least - STRETCH_CHARS + 1, 0) // STRETCH_CHARS

    @property
    def longest(self) -> int:
        """The bytes of the longest."""
        if self.wide == self.most:
            return self.most * MAX_CHARACTER_BYTES
        mixed = self.most + self.least * (MAX_CHARACTER_BYTES - 1) + self.stretches * (MAX_CHARACTER_BYTES - 1)
        return max(mixed, self.wide * MAX_CHARACTER_BYTES)

    def grammar(self) -> str:
        """Return what stands for the text: any characters, or more of them where wide ones are few."""
        any_of_them = f"character{{{self.least},{self.wide}}}"
        if self.wide == self.most:
            return any_of_them
        rest = self.most - self.least - self.stretches * STRETCH_CHARS
        begun = f"character{{{self.least},{self.least}}} " if self.least else ""
        return f"({any_of_them} | {begun}stretch{{0,{self.stretches}}} narrow{{0,{rest}}})"


def _name(part: Json) -> str:
    return str(part["$ref"]).rpartition("/")[2]


def _members(part: Json) -> Json:
    """Return the members of an object; refuse one whose keys are not known."""
    if "properties" not in part or part.get("additionalProperties"):
        raise RouterError(
            f"{part.get('title', 'an object')} may hold any key, so no grammar can be written for it",
            field="schema", hint="Give the reply a record with named members; a mapping can be a list of pairs.",
        )  # fmt: skip
    members: Json = part["properties"]
    return members


def _fixed_values(part: Json) -> list[str]:
    """Return the values that are all that may stand, as JSON."""
    values: Sequence[Any] = [part["const"]] if "const" in part else part.get("enum", [])
    words: dict[str, list[bool | None]] = {"boolean": [True, False], "null": [None]}
    return [json.dumps(each) for each in values or words.get(str(part.get("type")), [])]


class _Writer:
    """Writes a schema as rules: one for each record, and those of the texts that are held."""

    def __init__(self, schema: Json, texts: Mapping[str, str]) -> None:
        self._schema, self._texts = schema, texts
        self._defined: Json = schema.get("$defs", {})
        self._rules: dict[str, str] = {}

    def grammar(self) -> str:
        """Return all rules, `root` first."""
        rules = {"root": self._value(self._schema, ""), **self._rules, **CHARACTER_RULES}
        return "".join(f"{name} ::= {body}\n" for name, body in rules.items())

    def _record(self, name: str) -> str:
        """Return the symbol of a record, and see to its rule; the number tells names apart that look alike in letters."""
        rule = f"record_{[*self._defined].index(name)}_{_plain_symbol(name)}"
        if rule not in self._rules:
            self._rules[rule] = self._value(self._defined[name], "")
        return rule

    def _value(self, part: Json, place: str) -> str:
        """Return what stands for a part of the schema; `place` is its record and member."""
        if "$ref" in part:
            return self._record(_name(part))
        if fixed := _fixed_values(part):
            return f"({' | '.join(map(_literal, fixed))})"
        if "anyOf" in part:
            return f"({' | '.join(self._value(each, place) for each in part['anyOf'])})"
        written: dict[str, Callable[[], str]] = {
            "object": lambda: self._object(part),
            "array": lambda: self._array(part, place),
            "string": lambda: self._string(part, place),
            "integer": lambda: Numerals.of(part).grammar(),
            "number": lambda: Numerals.of(part).grammar(),
        }
        kind = str(part.get("type"))
        if kind not in written:
            raise RouterError(f"no grammar can be written for {place or 'the reply'}: {kind}", field="schema", got=kind)
        return written[kind]()

    def _object(self, part: Json) -> str:
        title = part.get("title")
        parts = [
            f"{_literal(f'{json.dumps(name)}: ')} {self._value(each, f'{title}.{name}')}"
            for name, each in _members(part).items()
        ]
        return f'"{{" {COMMA.join(parts)} "}}"'

    def _array(self, part: Json, place: str) -> str:
        least, most = int(part.get("minItems", 0)), int(part.get("maxItems", MAX_REPLY_LIST_ITEMS))
        item = self._value(part.get("items", {}), place)
        filled = f'"[" {item} (", " {item}){{{max(least - 1, 0)},{most - 1}}} "]"' if most else '"[]"'
        return filled if least else f'("[]" | {filled})'

    def _string(self, part: Json, place: str) -> str:
        if place not in self._texts:
            return rf'"\"" {_TextBounds.of(part).grammar()} "\""'
        prefix = f"t{[*self._texts].index(place)}_"
        if f"{prefix}root" not in self._rules:
            self._rules |= _rename_rules(self._texts[place], prefix)
        return rf'"\"" {prefix}root "\""'


def _plain_symbol(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _literal(text: str) -> str:
    """Return a text as the grammar's own quoted one; the escapes are JSON's."""
    return json.dumps(text)


def _rename_rules(grammar: str, prefix: str) -> dict[str, str]:
    """Return the rules of a grammar under names of their own."""
    rules: dict[str, str] = {}
    for line in filter(None, grammar.splitlines()):
        name, _, body = line.partition("::=")
        if (name := prefix + name.strip()) in rules:
            raise RouterError(f"{name.removeprefix(prefix)} is written twice", field="texts", got=line)
        rules[name] = re.sub(
            r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\b[A-Za-z_]\w*',
            lambda found: found[0] if found[0][0] in '"[' else prefix + found[0],
            body.strip(),
        )
    return rules


@dataclass(frozen=True)
class Numerals:
    """What a part of a JSON schema lets a number be, in steps of ten to the power of minus `places`.

    Attributes
    ----------
    low, high : int
        The first and the last number, in steps.
    places : int
        Digits after the point, at most.
    """

    low: int
    high: int
    places: int

    @classmethod
    def of(cls, part: Mapping[str, Any]) -> Self:
        """Return the numbers that are written of those that a schema allows.

        All have few digits; of a wide range those with more are left out. No step (``multipleOf``) is heeded.

        Raises
        ------
        RouterError
            If none lies within the bounds, or only such as have too many digits.
        """
        for places in (0,) if part.get("type") == "integer" else range(DEFAULT_PLACES, MAX_NUMBER_PLACES + 1):
            low, high = (_bound(part, side, places) for side in ("minimum", "maximum"))
            nearest = max(low or 0, -(high or 0), 0)
            reach = 10 ** max(WHOLE_DIGITS + places, len(str(nearest))) - 1
            one = cls(max(-reach, -reach if low is None else low), min(reach, reach if high is None else high), places)
            if one.low <= one.high and len(str(reach)) <= MAX_NUMBER_DIGITS + places:
                return one
        said = {name: part[name] for name in sorted(part) if "imum" in name.lower()}
        raise RouterError(
            f"no number of at most {MAX_NUMBER_DIGITS} digits, {MAX_NUMBER_PLACES} after the point, lies within {said}",
            field="schema", got=said, hint="Bound the number otherwise.",
        )  # fmt: skip

    @property
    def longest(self) -> int:
        """The characters of the longest."""
        digits = len(str(max(abs(self.low), abs(self.high)) // 10**self.places))
        return (self.low < 0) + digits + (1 + self.places if self.places else 0)

    def grammar(self) -> str:
        """Return what stands for one of the numbers; zero has no sign."""
        signed = []
        if self.high >= 0:
            signed += _unsigned(max(self.low, 0), self.high, self.places)
        if self.low < 0:
            signed += [f'"-" ({" | ".join(_unsigned(max(-self.high, 1), -self.low, self.places))})']
        return f"({' | '.join(signed)})"


def _bound(part: Mapping[str, Any], side: str, places: int) -> int | None:
    """Return the outermost number on a side, in steps; None where there is no bound.

    What a bound excludes ends with the next number that a machine can tell from it: a nearer one would be read as the bound.
    """
    inwards, nearest, strictest = _SIDES[side]
    found = []
    for name, excluded in ((side, False), (f"exclusive{side.capitalize()}", True)):
        bound = part.get(name)
        if bound is None or math.isinf(bound):
            continue
        if excluded and not places:
            beyond = nearest(Fraction(str(bound)))
            found.append(beyond + inwards if beyond == bound else beyond)
        else:
            told = math.nextafter(bound, inwards * math.inf) if excluded else bound
            found.append(nearest(Fraction(str(told)) * 10**places))
    return strictest(found) if found else None


_SIDES: dict[str, tuple[int, Callable[[Fraction], int], Callable[[list[int]], int]]] = {
    "minimum": (1, math.ceil, max), "maximum": (-1, math.floor, min),
}  # fmt: skip
"""Where inwards is, which whole number is the nearest inwards, and which of two bounds holds."""


def _unsigned(low: int, high: int, places: int) -> list[str]:
    """Return what stands for the numbers from `low` to `high`, in steps, none below zero."""
    step = 10**places
    (first, rest), (last, most) = divmod(low, step), divmod(high, step)
    if first == last:
        return [each + _fraction_part(rest, most, places) for each in _whole_numbers(first, last)]
    found = []
    if rest:
        found += [each + _fraction_part(rest, step - 1, places) for each in _whole_numbers(first, first)]
        first += 1
    if most < step - 1:
        found += [each + _fraction_part(0, most, places) for each in _whole_numbers(last, last)]
        last -= 1
    return found + [each + _fraction_part(0, step - 1, places) for each in _whole_numbers(first, last)]


def _fraction_part(low: int, high: int, places: int) -> str:
    """Return what stands for the point and what follows; for neither where zeros do."""
    if not places or not high:
        return f' ("." "0"{{1,{places}}})?' if places else ""
    part = f'"." {_digits(str(low).zfill(places), str(high).zfill(places), 1)}'
    return f" {part}" if low else f" ({part})?"


def _whole_numbers(first: int, last: int) -> Iterator[str]:
    """Yield what stands for whole numbers, none below zero, by how many digits they have; nothing where there are none."""
    full: list[int] = []
    for count in range(len(str(first)), len(str(last)) + 1) if first <= last else ():
        least, most = 10 ** (count - 1) if count > 1 else 0, 10**count - 1
        if count > 1 and first <= least and most <= last:
            full.append(count - 1)
        else:
            yield _digits(str(max(first, least)), str(min(last, most)), count)
    if full:
        yield f"[1-9] [0-9]{{{full[0]},{full[-1]}}}"


def _digits(low: str, high: str, least: int) -> str:
    """Return what stands for the digits from `low` to `high`, equally many; all but `least` may be left out if they are zeros."""
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
        parts.append(_lead_digit(first, last, _digits(low[1:], high[1:], fewer)))
    else:
        if low[1:] != zeros:
            parts.append(_lead_digit(first, first, _digits(low[1:], nines, fewer)))
            first += 1
        if high[1:] != nines:
            parts.append(_lead_digit(last, last, _digits(zeros, high[1:], fewer)))
            last -= 1
        if first <= last:
            parts.append(_lead_digit(first, last, _digits(zeros, nines, fewer)))
    return f"({' | '.join(parts)})" + ("?" if not least and low == "0" + zeros else "")


def _lead_digit(first: int, last: int, rest: str) -> str:
    """Return what stands for a digit and the rest."""
    led = f"[{first}-{last}]" if first < last else f'"{first}"'
    return f"{led} {rest}".rstrip()
