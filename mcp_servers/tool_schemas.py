"""JSON schemas of tools as clients get them: of arguments without generated titles, of answers, and example calls.

A model reads all of this before its first call, so a schema says what a caller needs and no more: the keys of an answer
with their meaning, and the keys of the rows in a list as words, such as ``{id, text}``. Answers may have further keys.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

JsonSchema = Mapping[str, Any]


def answer(**keys: JsonSchema) -> JsonSchema:
    """Return the schema of an answer; no key is required, since a refused formula leaves most of them out."""
    return {"type": "object", "properties": keys}


def string(meaning: str, *, null: bool = False) -> JsonSchema:
    """Return the schema of a text, or of None too."""
    return _describe("string", meaning, null=null)


def number(meaning: str) -> JsonSchema:
    """Return the schema of a number, or of None too."""
    return _describe("number", meaning)


def integer(meaning: str) -> JsonSchema:
    """Return the schema of a whole number, or of None too."""
    return _describe("integer", meaning)


def boolean(meaning: str) -> JsonSchema:
    """Return the schema of true or false."""
    return _describe("boolean", meaning)


def array(meaning: str) -> JsonSchema:
    """Return the schema of a list; the meaning says what its rows hold."""
    return _describe("array", meaning)


def mapping(meaning: str, *, null: bool = False) -> JsonSchema:
    """Return the schema of an object, or of None too; the meaning names its keys."""
    return _describe("object", meaning, null=null)


def _describe(kind: str, meaning: str, *, null: bool = False) -> JsonSchema:
    return {"type": [kind, "null"] if null else kind, "description": meaning}


def publish_schema(schema: Any, *, without: Collection[str] = ("title",), named: bool = False) -> Any:
    """Return a schema without some keys, as a rule the titles that pydantic makes; `named`: its keys are arguments."""
    if isinstance(schema, list):
        return [publish_schema(part, without=without) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: part for key, part in schema.items() if named or key not in without}
    return {
        key: publish_schema(part, without=without, named=key in {"properties", "$defs"}) for key, part in kept.items()
    }


def share_definitions(schemas: Mapping[str, JsonSchema]) -> Mapping[str, JsonSchema]:
    """Return the schemas of tools in which only the first tool describes a definition; the others name that tool."""
    first: dict[str, str] = {}

    def share(tool: str, name: str, definition: JsonSchema) -> JsonSchema:
        if first.setdefault(name, tool) == tool:
            return definition
        plain = publish_schema(definition, without=("description", "examples"))
        return {"description": f"As in {first[name]}", **plain}

    return {
        tool: {**schema, "$defs": {name: share(tool, name, part) for name, part in schema["$defs"].items()}}
        if "$defs" in schema
        else schema
        for tool, schema in schemas.items()
    }


def show_call(tool: str, schema: JsonSchema, argument: str = "") -> str:
    """Return an example of a right call: the required arguments of a tool, and one more if it is named."""
    needed = schema.get("required", ())
    parts = {name: part for name, part in schema.get("properties", {}).items() if name in needed or name == argument}
    values = {name: _find_example(part, schema) for name, part in parts.items()}
    return f"{tool} {json.dumps(values, ensure_ascii=False)}"


def _find_example(part: JsonSchema, root: JsonSchema) -> Any:
    """Return the first example of a value, else its default or an allowed word; of objects and lists, of each part."""
    if "$ref" in part:
        part = root["$defs"][part["$ref"].rpartition("/")[2]]
    if "properties" in part:
        needed = part.get("required", ())
        return {name: _find_example(each, root) for name, each in part["properties"].items() if name in needed}
    allowed = [*part.get("examples", ()), *([part["default"]] if "default" in part else ()), *part.get("enum", ())]
    if not allowed and "items" in part:
        return [_find_example(part["items"], root)]
    return allowed[0] if allowed else None
