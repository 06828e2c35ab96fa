"""A model's text validated against the schema, and the repair request for a text that does not fit.

JSON objects are found anywhere in the text: alone, in a fence, among words, before or after the model's thoughts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from .completions import REFUSED
from .task import describe_schema

MAX_REPLY_OBJECTS = 1_000
"""Maximum objects of a reply that are validated."""
MAX_REASONS, MAX_REASON_CHARS = 12, 400
"""Maximum reasons in a misfit, and characters of each: a reply can have many mistakes, and a repair costs tokens."""
MAX_CHARS_PER_TOKEN = 8
"""Characters per token of a reply, a cautious bound; white space can have more."""
REPAIR_OPENING = "Your reply does not fit the schema:"
"""The first line of a request for a repair, by which one is known in the record."""
BOM = "\ufeff"
_THOUGHTS = re.compile(r"<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_THOUGHTS_END = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_PARTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}]', re.DOTALL)
"""An unclosed text extends to the end; otherwise the search would restart from each of its quotes."""


@dataclass(frozen=True)
class HedgedAttempt:
    """An attempt beside the one that answered, and its charge: the worst case where its usage is unknown."""

    model: str
    why: str
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True)
class ModelAnswer:
    """A model's answer: the text, the finish reason, the tokens, and the configured name of the model.

    Of the tokens in, `cached` were read from the provider's cache and `written` into it. `attempts` counts all
    attempts; `beside` lists those that are charged but gave another answer, or none. `served` is the version of the
    model as its server names it.
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
    served: str = ""


class Misfit(Exception):
    """A reply that does not fit; the message states every reason for the model."""


class Refusal(Misfit):
    """A model or its provider refused to reply, so asking it again is of no use; the message is in its own words."""


def read_reply(answer: ModelAnswer, schema: type[BaseModel]) -> BaseModel:
    """Return the reply as the schema's record; raise `Misfit` otherwise.

    The object may stand among words or in a fence. If the content has no object that fits, the thoughts (`<think>`) are
    read. Several different objects that fit are refused, because the intended one is unknown.
    """
    if answer.finish != REFUSED:
        return _read_answer(answer, schema)
    try:
        return _read_answer(answer, schema)
    except Misfit:
        words = answer.text.strip()
        raise Refusal(
            f"it refused: {_shorten_reason(words)}" if words else "its provider's content filter held it back"
        ) from None


def _read_answer(answer: ModelAnswer, schema: type[BaseModel]) -> BaseModel:
    """Return the record of an answer that is no refusal."""
    if answer.finish == "length":
        raise Misfit(f"the reply was cut off after {answer.tokens_out} tokens; say less, so that the JSON is complete")
    content, thoughts = split_thoughts(answer.text)
    if not content.strip() and not thoughts.strip():
        raise Misfit("the reply was empty")
    reasons = []
    for text in filter(str.strip, (content, thoughts)):
        try:
            return _read_single_object(text, schema)
        except Misfit as misfit:
            reasons.append(misfit)
    raise reasons[0]


def _read_single_object(text: str, schema: type[BaseModel]) -> BaseModel:
    """Return the only object of a text that fits the schema."""
    records: dict[str, BaseModel] = {}
    reasons: dict[str, str] = {}
    candidates = find_objects(text) or [text]
    if len(candidates) > MAX_REPLY_OBJECTS:
        raise Misfit(f"the reply holds {len(candidates)} objects; send the one that is asked for")
    for candidate in candidates:
        try:
            check_json(candidate)
            value = schema.model_validate_json(candidate)
        except NotJson as error:
            reasons[candidate] = f"- the reply: Invalid JSON: {error}"
        except ValidationError as error:
            reasons[candidate] = _list_reasons(error)
        else:
            records[value.model_dump_json()] = value
    if len(records) == 1:
        return records.popitem()[1]
    if records:
        raise Misfit(f"the reply holds {len(records)} objects that fit and differ; send the one that is meant")
    raise Misfit(reasons[max(reasons, key=len)])


def fits_schema(answer: ModelAnswer, schema: type[BaseModel]) -> bool:
    """Return whether `read_reply` accepts an answer."""
    try:
        read_reply(answer, schema)
    except Misfit:
        return False
    return True


def _list_reasons(error: ValidationError) -> str:
    """Return the reasons with their places, without the model's own words: its reply is quoted beside them."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        f"- {_shorten_reason('.'.join(map(str, mistake['loc']))) or 'the reply'}: {_shorten_reason(mistake['msg'])}"
        for mistake in errors[:MAX_REASONS]
    ]
    if further := len(errors) - len(lines):
        lines.append(f"- and {further:,} more of the kind")
    return "\n".join(lines)


def _shorten_reason(text: str) -> str:
    return text if len(text) <= MAX_REASON_CHARS else f"{text[:MAX_REASON_CHARS]}..."


def build_repair_request(misfit: Misfit) -> str:
    """Return the message that asks a model to repair its reply."""
    return f"{REPAIR_OPENING}\n{misfit}\nSend the whole reply again, corrected: JSON only."


def quote_reply(text: str, max_tokens: int) -> str:
    """Return a model's text for its repair request, cut to the maximum length of a reply of `max_tokens`."""
    most = max_tokens * MAX_CHARS_PER_TOKEN
    return text if len(text) <= most else f"{text[:most]}..."


def build_response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schema as a response format; strict only for a closed schema, as strict decoders require."""
    body = deepcopy(dict(describe_schema(schema)))
    described = {"name": schema.__name__, "schema": body, "strict": is_closed(body)}
    return {"type": "json_schema", "json_schema": described}


GRAMMAR_PROVIDER = "hosted_vllm/"
"""Prefix of the models whose server supports a decoding grammar."""


def build_constraint(model: str, schema: type[BaseModel], grammar: str = "") -> dict[str, Any]:
    """Return the request's parameters that constrain the reply: the grammar if the server supports it, else the schema.

    vLLM ignores the older names of this field (guided_grammar and others) without an error, so they are never sent.
    """
    if grammar and model.startswith(GRAMMAR_PROVIDER):
        return {"extra_body": {"structured_outputs": {"grammar": grammar}}}
    return {"response_format": build_response_format(schema)}


def measure_depth(schema: object) -> int:
    """Return the nesting depth of objects and lists in a JSON schema, references included; 0 for text."""
    defined = schema.get("$defs", {}) if isinstance(schema, Mapping) else {}

    def below(part: object, open_refs: tuple[str, ...]) -> int:
        if isinstance(part, list):
            return max((below(item, open_refs) for item in part), default=0)
        if not isinstance(part, Mapping):
            return 0
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name in defined and name not in open_refs:
            return below(defined[name], (*open_refs, name))
        inner = [*part.get("properties", {}).values(), *(part.get(key) for key in ("items", "anyOf", "allOf", "oneOf"))]
        own = int(part.get("type") in ("object", "array"))
        return own + max((below(item, open_refs) for item in inner), default=0)

    return below(schema, ())


def is_closed(schema: object) -> bool:
    """Return whether every object of a JSON schema requires all its keys and forbids any other."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            keys = set(schema.get("properties", {}))
            if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != keys:
                return False
        return all(is_closed(part) for part in schema.values())
    return all(is_closed(part) for part in schema) if isinstance(schema, list) else True


class NotJson(ValueError):
    """A text that is no JSON, or is ambiguous; the message says why, for the model."""


def find_objects(text: str) -> list[str]:
    """Return the outermost objects of a text, verbatim; if one is not closed, only that one, up to the end.

    Objects inside or before an unclosed one do not count as the reply: in a list that was cut off, that would be its
    first item.
    """
    objects: list[str] = []
    end = 0
    while (start := text.find("{", end)) >= 0:
        end = _find_close(text, start)
        if not end:
            return [text[start:]]
        objects.append(text[start:end])
    return list(dict.fromkeys(objects))


def _find_close(text: str, start: int) -> int:
    """Return the end of the object that begins at a brace; 0 if it is not closed."""
    depth = 0
    for part in _PARTS.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if not depth:
            return part.end()
    return 0


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the content of a model's text, and its thoughts; a text that is a single object is all content."""
    text = text.strip().removeprefix(BOM).strip()
    if find_objects(text) == [text]:
        return text, ""
    thoughts = [match[2] for match in _THOUGHTS.finditer(text)]
    content = _THOUGHTS.sub("", text)
    *before, content = _THOUGHTS_END.split(content)  # a template may open the thoughts in the prompt
    return content, "\n".join([*before, *thoughts])


def check_json(text: str) -> None:
    """Refuse JSON that parsers read differently: a repeated key with two values, NaN and infinity.

    Raises
    ------
    NotJson
        With the reason. Text that is no JSON at all passes, because the schema's parser reports the position.
    """
    try:
        json.loads(
            text,
            object_pairs_hook=_check_unique,
            parse_constant=_parse_finite,
            parse_float=_parse_finite,
            parse_int=str,
        )
    except NotJson:
        raise
    except (ValueError, RecursionError):
        return


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a key with two values."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if members.setdefault(key, value) != value:
            raise NotJson(f"the key {key[:40]!r} stands twice, with two values")
    return members


def _parse_finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise NotJson(f"{number[:20]} is no finite number")
    return value
