"""What a model may write, closed so that it ends: the schema of a reply with room for it, as a grammar for decoding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from .errors import RouterError

__all__ = ["Shape", "bounded", "held_to", "longest", "one_of", "reply_grammar"]

Json = dict[str, Any]

CHARACTERS_PER_TOKEN = 3
"""Of JSON in English, cautiously: tokenizers of large vocabularies write four."""
SHORTEST_TEXT, FEWEST_ITEMS = 40, 1
"""What is left of a text and of a list, at the least."""
ENOUGH_TEXT, ENOUGH_ITEMS = 160, 6
"""Lists shrink to so many items first, then texts to so many characters, then lists again."""
LONGEST_TEXT, MOST_ITEMS = 8_000, 1_000
"""Of what has no bound of its own."""
HELD_TEXT = 300
"""Characters that are reckoned for a text that a grammar of its own holds."""
MOST_NUMBERS = 1_000
"""Whole numbers of a range that are written out; of a wider one only the digits are held."""

CHARACTER = (
    r'[\u0020-\u0021\u0023-\u005b\u005d-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff] | "\\" ["\\/bfnrt]'
)
"""A character of a text. What may stand is listed: a class of what may not lets xgrammar 0.2 write halves of surrogates,
each three characters when they are read, so that a length is overrun. For the same reason there are no codes."""
WHOLE = r'"-"? ("0" | [1-9] [0-9]{0,14})'
COMMA = ' ", " '
DECIMAL = r'("." [0-9]{1,9})?'


@dataclass(frozen=True)
class Shape:
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


def reply_grammar(shape: Shape, max_tokens: int) -> str:
    """Return the grammar (EBNF, as xgrammar and so vLLM takes it) of the replies that end within as many tokens.

    Every sentence is JSON with all members in their order, without a choice of white space: a model that rambles in it
    would never end. It fits the schema's types, lengths and bounds; of a pattern or a rule in code it knows nothing.

    Raises
    ------
    RouterError
        If the schema refers to itself, or holds what has no finite list of members.
    """
    schema = shape.schema.model_json_schema()
    for each in schema.get("properties", {}).values() if shape.items else ():
        if each.get("type") == "array":
            each["maxItems"] = max(each.get("minItems", 0), min(each.get("maxItems", shape.items), shape.items))
    return _Writer(bounded(schema, max_tokens * CHARACTERS_PER_TOKEN, frozenset(shape.texts)), shape.texts).grammar()


def one_of(words: Iterable[str]) -> str:
    """Return the grammar of a text that is one of these."""
    return f"root ::= {' | '.join(_literal(_literal(word)[1:-1]) for word in words)}\n"


def held_to(schema: type[BaseModel], max_tokens: int) -> str:
    """Return the grammar of a schema's replies; empty where none can be written, so that the schema itself must do."""
    try:
        return reply_grammar(Shape(schema), max_tokens)
    except RouterError:
        return ""


def bounded(schema: Json, room: int, held: frozenset[str] = frozenset()) -> Json:
    """Return a JSON schema whose longest reply has at most as many characters.

    A bound that leaves room stays. Texts in `held` (``Class.member``) have a grammar of their own and stay, too. Where
    even the least is too long, the least is returned.
    """
    texts, items = LONGEST_TEXT, MOST_ITEMS
    tight: Json
    while longest(tight := _cut(schema, texts, items), held) > room:
        if items > ENOUGH_ITEMS:
            items = max(items * 3 // 4, ENOUGH_ITEMS)
        elif texts > ENOUGH_TEXT or (items == FEWEST_ITEMS and texts > SHORTEST_TEXT):
            texts = max(texts * 7 // 8, SHORTEST_TEXT)
        elif items > FEWEST_ITEMS:
            items -= 1
        else:
            break
    return tight


def _cut(schema: Any, texts: int, items: int) -> Any:
    """Return a JSON schema with all its texts and lists cut to a length, but not below the least that it wants."""
    if isinstance(schema, list):
        return [_cut(each, texts, items) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    cut = {name: _cut(each, texts, items) for name, each in schema.items()}
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        cut["maxLength"] = max(schema.get("minLength", 0), min(schema.get("maxLength", texts), texts))
    if schema.get("type") == "array":
        cut["maxItems"] = max(schema.get("minItems", 0), min(schema.get("maxItems", items), items))
    return cut


def longest(schema: Json, held: frozenset[str] = frozenset()) -> int:
    """Return the characters of a schema's longest reply, as `reply_grammar` writes it; an escape counts as one."""
    return _longest(schema, schema.get("$defs", {}), "", held)


def _longest(part: Json, defined: Json, place: str, held: frozenset[str], seen: tuple[str, ...] = ()) -> int:
    def below(each: Json, name: str = "") -> int:
        return _longest(each, defined, name, held, seen)

    if "$ref" in part:
        name = _name(part)
        if name in seen:
            raise RouterError(f"{name} holds itself, so its replies need not end", field="schema", got=name)
        return _longest(defined[name], defined, "", held, (*seen, name))
    if fixed := _fixed(part):
        return max(len(each) for each in fixed)
    if "anyOf" in part:
        return max(below(each) for each in part["anyOf"])
    if part.get("type") == "object":
        sizes = [len(name) + 6 + below(each, f"{part.get('title')}.{name}") for name, each in _members(part).items()]
        return 2 + sum(sizes)
    if part.get("type") == "array":
        return 2 + int(part.get("maxItems", MOST_ITEMS)) * (2 + below(part.get("items", {}), place))
    if part.get("type") == "string":
        return 2 + (HELD_TEXT if place in held else int(part.get("maxLength", LONGEST_TEXT)))
    return 26


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


def _fixed(part: Json) -> list[str]:
    """Return the values that are all that may stand, as JSON."""
    values: Sequence[Any] = [part["const"]] if "const" in part else part.get("enum", [])
    if part.get("type") == "integer" and not values and {"minimum", "maximum"} <= set(part):
        span = range(part["minimum"], part["maximum"] + 1)
        values = span if len(span) <= MOST_NUMBERS else []
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
        root = self._record(self._schema, str(self._schema.get("title", "reply")))
        rules = {"root": root, **self._rules, "character": CHARACTER}
        return "".join(f"{name} ::= {body}\n" for name, body in rules.items())

    def _record(self, part: Json, name: str) -> str:
        """Return the symbol of a record, and see to its rule."""
        rule = f"record_{_plain(name)}"
        if rule not in self._rules:
            self._rules[rule] = self._value(part, "")
        return rule

    def _value(self, part: Json, place: str) -> str:
        """Return what stands for a part of the schema; `place` is its record and member."""
        if "$ref" in part:
            return self._record(self._defined[_name(part)], _name(part))
        if fixed := _fixed(part):
            return f"({' | '.join(map(_literal, fixed))})"
        if "anyOf" in part:
            return f"({' | '.join(self._value(each, place) for each in part['anyOf'])})"
        written: dict[str, Callable[[], str]] = {
            "object": lambda: self._object(part),
            "array": lambda: self._array(part, place),
            "string": lambda: self._string(part, place),
            "integer": lambda: f"({WHOLE})",
            "number": lambda: f"({WHOLE} {DECIMAL})",
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
        least, most = int(part.get("minItems", 0)), int(part.get("maxItems", MOST_ITEMS))
        item = self._value(part.get("items", {}), place)
        filled = f'"[" {item} (", " {item}){{{max(least - 1, 0)},{most - 1}}} "]"' if most else '"[]"'
        return filled if least else f'("[]" | {filled})'

    def _string(self, part: Json, place: str) -> str:
        if place not in self._texts:
            return rf'"\"" character{{{part.get("minLength", 0)},{part.get("maxLength", LONGEST_TEXT)}}} "\""'
        prefix = f"t{[*self._texts].index(place)}_"
        if f"{prefix}root" not in self._rules:
            self._rules |= _renamed(self._texts[place], prefix)
        return rf'"\"" {prefix}root "\""'


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _literal(text: str) -> str:
    """Return a text as the grammar's own quoted one; the escapes are JSON's."""
    return json.dumps(text)


def _renamed(grammar: str, prefix: str) -> dict[str, str]:
    """Return the rules of a grammar under names of their own."""
    rules: dict[str, str] = {}
    for line in filter(None, grammar.splitlines()):
        name, _, body = line.partition("::=")
        rules[prefix + name.strip()] = re.sub(
            r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\b[A-Za-z_]\w*',
            lambda found: found[0] if found[0][0] in '"[' else prefix + found[0],
            body.strip(),
        )
    return rules
