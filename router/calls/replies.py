"""A model's text validated against the schema, and the repair request for a text that does not fit.

JSON objects are found wherever they stand: alone, in a fence, among words, before or after the model's thoughts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

MAX_REPLY_OBJECTS = 1_000
"""Of a reply that are held against the schema."""
MAX_REASONS, MAX_REASON_CHARS = 12, 400
"""What a misfit says: reasons, and characters of each. A reply chooses how many there are, and its repair is paid for by the token."""
MAX_CHARS_PER_TOKEN = 8
"""Characters of a token of a reply, cautiously; white space can have more."""
BOM = "\ufeff"
_THOUGHTS = re.compile(r"<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_THOUGHTS_END = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_PARTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}]', re.DOTALL)
"""A text that never closes goes on to the end: it would else be looked for again from each of its quotes."""


@dataclass(frozen=True)
class HedgedAttempt:
    """An attempt beside the one that answered, and what is charged for it: at its worst where nobody said what it took."""

    model: str
    why: str
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True)
class ModelAnswer:
    """What a model sent back: the text, why it stopped, the tokens, and which configured model it was.

    Of the tokens in, `cached` were read from the provider's cache and `written` into it. `attempts` counts all that were
    made; `beside` holds those that are charged for and gave another answer, or none.
    """

    text: str
    finish: str
    tokens_in: int
    tokens_out: int
    model: str
    cached: int = 0
    written: int = 0
    attempts: int = 1
    beside: tuple[HedgedAttempt, ...] = ()


class Misfit(Exception):
    """A reply that does not fit; the message says exactly why, in words for the model."""


def read_reply(answer: ModelAnswer, schema: type[BaseModel]) -> BaseModel:
    """Return the reply as the schema's record; raise `Misfit` otherwise.

    The object may stand among words or in a fence. Where what the model says holds none that fits, its thoughts are read
    (`<think>`). Objects that fit and differ are refused: nobody can say which is meant.
    """
    if answer.finish == "length":
        raise Misfit(f"the reply was cut off after {answer.tokens_out} tokens; say less, so that the JSON is complete")
    said, thoughts = split_thoughts(answer.text)
    if not said.strip() and not thoughts.strip():
        raise Misfit("the reply was empty")
    reasons = []
    for text in filter(str.strip, (said, thoughts)):
        try:
            return _read_single_object(text, schema)
        except Misfit as misfit:
            reasons.append(misfit)
    raise reasons[0]


def _read_single_object(text: str, schema: type[BaseModel]) -> BaseModel:
    """Return the only object of a text that fits the schema."""
    found: dict[str, BaseModel] = {}
    reasons: dict[str, str] = {}
    among = find_objects(text) or [text]
    if len(among) > MAX_REPLY_OBJECTS:
        raise Misfit(f"the reply holds {len(among)} objects; send the one that is asked for")
    for each in among:
        try:
            check_json(each)
            value = schema.model_validate_json(each)
        except NotJson as error:
            reasons[each] = f"- the reply: Invalid JSON: {error}"
        except ValidationError as error:
            reasons[each] = _reasons(error)
        else:
            found[value.model_dump_json()] = value
    if len(found) == 1:
        return found.popitem()[1]
    if found:
        raise Misfit(f"the reply holds {len(found)} objects that fit and differ; send the one that is meant")
    raise Misfit(reasons[max(reasons, key=len)])


def fits_schema(answer: ModelAnswer, schema: type[BaseModel]) -> bool:
    """Return whether a reply fits."""
    try:
        read_reply(answer, schema)
    except Misfit:
        return False
    return True


def _reasons(error: ValidationError) -> str:
    """Return every reason with its place, without the model's own words, which it can see for itself."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        f"- {_shorten_reason('.'.join(map(str, each['loc']))) or 'the reply'}: {_shorten_reason(each['msg'])}"
        for each in errors[:MAX_REASONS]
    ]
    if further := len(errors) - len(lines):
        lines.append(f"- and {further:,} more of the kind")
    return "\n".join(lines)


def _shorten_reason(text: str) -> str:
    return text if len(text) <= MAX_REASON_CHARS else f"{text[:MAX_REASON_CHARS]}..."


def build_repair_request(misfit: Misfit) -> str:
    """Return the message that asks a model to repair its reply."""
    return f"Your reply does not fit the schema:\n{misfit}\nSend the whole reply again, corrected: JSON only."


def quote_reply(text: str, max_tokens: int) -> str:
    """Return a model's own text as it is sent back to it, cut where it is longer than a reply of so many tokens can be."""
    most = max_tokens * MAX_CHARS_PER_TOKEN
    return text if len(text) <= most else f"{text[:most]}..."


def build_response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schema as models take it; strict only where it leaves nothing open, as strict decoders demand."""
    body = schema.model_json_schema()
    described = {"name": schema.__name__, "schema": body, "strict": is_closed(body)}
    return {"type": "json_schema", "json_schema": described}


GRAMMAR_PROVIDER = "hosted_vllm/"
"""How the names of models begin whose server takes a grammar for decoding."""


def build_constraint(model: str, schema: type[BaseModel], grammar: str = "") -> dict[str, Any]:
    """Return what holds a model to a schema: the grammar, where its server takes one and there is one.

    The older names of this field (guided_grammar and others) are ignored by vLLM without an error, so they are never sent.
    """
    if grammar and model.startswith(GRAMMAR_PROVIDER):
        return {"extra_body": {"structured_outputs": {"grammar": grammar}}}
    return {"response_format": build_response_format(schema)}


def measure_depth(schema: object) -> int:
    """Return how deep the objects and lists of a JSON schema nest, those that it refers to included; text is 0."""
    defined = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}

    def below(part: object, seen: tuple[str, ...]) -> int:
        if isinstance(part, list):
            return max((below(each, seen) for each in part), default=0)
        if not isinstance(part, Mapping):
            return 0
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name in defined and name not in seen:
            return below(defined[name], (*seen, name))
        inner = [*part.get("properties", {}).values(), *(part.get(key) for key in ("items", "anyOf", "allOf", "oneOf"))]
        own = int(part.get("type") in ("object", "array"))
        return own + max((below(each, seen) for each in inner), default=0)

    return below(schema, ())


def is_closed(schema: object) -> bool:
    """Return whether every object of a JSON schema requires all its keys and forbids any other."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            keys = set(schema.get("properties", {}))
            if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != keys:
                return False
        return all(is_closed(each) for each in schema.values())
    return all(is_closed(each) for each in schema) if isinstance(schema, list) else True


class NotJson(ValueError):
    """A text is no JSON, or means more than one thing; the message says why, in words for the model."""


def find_objects(text: str) -> list[str]:
    """Return the outermost objects of a text as they are written; if one never closes, it alone, up to the end.

    What stands in or before a broken object is not taken for the reply: of a list that was cut off it would be the first item.
    """
    found: list[str] = []
    end = 0
    while (start := text.find("{", end)) >= 0:
        end = _find_close(text, start)
        if not end:
            return [text[start:]]
        found.append(text[start:end])
    return list(dict.fromkeys(found))


def _find_close(text: str, start: int) -> int:
    """Return where the object that begins at a brace ends; 0 if it does not."""
    depth = 0
    for part in _PARTS.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if not depth:
            return part.end()
    return 0


def split_thoughts(text: str) -> tuple[str, str]:
    """Return what a model says, and its thoughts; an object that is all of the text is what it says, whatever it holds."""
    text = text.strip().removeprefix(BOM).strip()
    if find_objects(text) == [text]:
        return text, ""
    thoughts = [found[2] for found in _THOUGHTS.finditer(text)]
    said = _THOUGHTS.sub("", text)
    *before, said = _THOUGHTS_END.split(said)  # a template may open the thoughts in the prompt
    return said, "\n".join([*before, *thoughts])


def check_json(text: str) -> None:
    """Refuse JSON that readers take differently: a key twice with two values, NaN and infinity.

    Raises
    ------
    NotJson
        With the reason. What is no JSON at all passes, for the schema's own reader tells where it breaks.
    """
    try:
        json.loads(
            text,
            object_pairs_hook=_unique_members,
            parse_constant=_finite_number,
            parse_float=_finite_number,
            parse_int=str,
        )
    except NotJson:
        raise
    except (ValueError, RecursionError):
        return


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which no key has two values."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if found.setdefault(key, value) != value:
            raise NotJson(f"the key {key[:40]!r} stands twice, with two values")
    return found


def _finite_number(number: str) -> float:
    """Return a number that is one."""
    value = float(number)
    if not math.isfinite(value):
        raise NotJson(f"{number[:20]} is no finite number")
    return value
