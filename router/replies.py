"""A model's text held against the schema, and what to tell a model whose text does not fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


@dataclass(frozen=True)
class Beside:
    """An attempt beside the one that answered, and what is charged for it: at its worst where nobody said what it took."""

    model: str
    why: str
    tokens_in: int
    tokens_out: int
    cost_usd: float


@dataclass(frozen=True)
class Answer:
    """What a model sent back: the text, why it stopped, the tokens, and which configured model it was.

    `attempts` counts all that were made; `beside` holds those that are charged for and gave another answer, or none.
    """

    text: str
    finish: str
    tokens_in: int
    tokens_out: int
    model: str
    attempts: int = 1
    beside: tuple[Beside, ...] = ()


class Misfit(Exception):
    """A reply that does not fit; the message says exactly why, in words for the model."""


def read_reply(answer: Answer, schema: type[BaseModel]) -> BaseModel:
    """Return the reply as the schema's record; raise `Misfit` otherwise."""
    if answer.finish == "length":
        raise Misfit(f"the reply was cut off after {answer.tokens_out} tokens; say less, so that the JSON is complete")
    if not answer.text.strip():
        raise Misfit("the reply was empty")
    fenced = _FENCE.fullmatch(answer.text)
    try:
        return schema.model_validate_json(fenced[1] if fenced else answer.text)
    except ValidationError as error:
        raise Misfit(_reasons(error)) from None


def fits(answer: Answer, schema: type[BaseModel]) -> bool:
    """Return whether a reply fits."""
    try:
        read_reply(answer, schema)
    except Misfit:
        return False
    return True


def _reasons(error: ValidationError) -> str:
    """Return every reason with its place, without the model's own words, which it can see for itself."""
    lines = [
        f"- {'.'.join(map(str, each['loc'])) or 'the reply'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return "\n".join(lines)


def complaint(misfit: Misfit) -> str:
    """Return the message that asks a model to repair its reply."""
    return f"Your reply does not fit the schema:\n{misfit}\nSend the whole reply again, corrected: JSON only."


def response_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schema as models take it; strict only where it leaves nothing open, as strict decoders demand."""
    body = schema.model_json_schema()
    described = {"name": schema.__name__, "schema": body, "strict": is_closed(body)}
    return {"type": "json_schema", "json_schema": described}


HELD_BY_GRAMMAR = "hosted_vllm/"
"""How the names of models begin whose server takes a grammar for decoding."""


def constraint(model: str, schema: type[BaseModel], grammar: str = "") -> dict[str, Any]:
    """Return what holds a model to a schema: the grammar, where its server takes one and there is one.

    The older names of this field (guided_grammar and others) are ignored by vLLM without an error, so they are never sent.
    """
    if grammar and model.startswith(HELD_BY_GRAMMAR):
        return {"extra_body": {"structured_outputs": {"grammar": grammar}}}
    return {"response_format": response_format(schema)}


def depth(schema: object) -> int:
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
