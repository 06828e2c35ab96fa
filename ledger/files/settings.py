"""Turn a YAML file and `--set key=value` into one frozen record, or into a list of all mistakes."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..errors import Mistake, SettingsError, format_value
from .yaml_text import Place, Text, format_path, parse_text, read_text

M = TypeVar("M", bound=BaseModel)


def read_settings(path: Path | None, model: type[M], overrides: Sequence[str] = ()) -> M:
    """Read settings from a YAML file, apply the overrides, and check everything at once.

    Parameters
    ----------
    path : Path or None
        The file; None for a model's defaults. An empty file is an empty mapping.
    model : type of BaseModel
        The model to validate; it forbids unknown keys. Values are checked strictly: "5" and yes are no numbers.
    overrides : sequence of str
        "budget.evaluations=2000": a dotted key and a YAML value. The last one wins.

    Raises
    ------
    SettingsError
        With every mistake: its dotted key, line, value, what is allowed, and the nearest key for an unknown one.
    """
    source = str(path) if path is not None else "the settings"
    return _build_settings(read_text(path) if path is not None else Text(), model, source, overrides)


def parse_settings(body: str, model: type[M], source: str) -> M:
    """Check settings from their text, as `read_settings` does; `SettingsError` with every mistake."""
    return _build_settings(parse_text(body, source), model, source, ())


def _build_settings(text: Text, model: type[M], source: str, overrides: Sequence[str]) -> M:
    if text.value is None:
        text.value = {}
    if not isinstance(text.value, dict):
        kind = type(text.value).__name__
        raise SettingsError(f"{source} must hold keys with values (key: value), not a {kind}", field=source)
    mistakes = text.mistakes
    if not mistakes:
        for override in overrides:
            mistakes.extend(_apply_override(text, override))
    settings, wrong = (None, []) if text.mistakes else _validate(text, model)
    if settings is None:
        raise mistakes_error(source, [*mistakes, *wrong])
    return settings


def mistakes_error(source: str, mistakes: Sequence[Mistake]) -> SettingsError:
    """Return the error that lists every mistake, one a line."""
    ordered = sorted(mistakes, key=lambda mistake: (mistake.line or 0, mistake.field))
    count = "one mistake" if len(ordered) == 1 else f"{len(ordered)} mistakes"
    lines = "\n".join(f"  {mistake}" for mistake in ordered)
    return SettingsError(f"{count} in {source}:\n{lines}", mistakes=ordered)


def _validate(text: Text, model: type[M]) -> tuple[M | None, list[Mistake]]:
    """Validate as JSON: strict about types, but a list may become a tuple, and a text a path or a date."""
    try:
        body = json.dumps(text.value)
    except (TypeError, ValueError) as error:
        return None, [Mistake("", f"this cannot be a setting: {error}")]
    try:
        return model.model_validate_json(body, strict=True), []
    except ValidationError as error:
        return None, [_explain(detail, model, text) for detail in error.errors(include_url=False)]


def _explain(error: ErrorDetails, model: type[BaseModel], text: Text) -> Mistake:
    """Rewrite one of pydantic's errors for a person."""
    place: Place = error["loc"]
    field, line = format_path(place), text.line(place)
    if error["type"] == "extra_forbidden":
        # The value is not shown: an unknown key often holds a secret in the wrong place.
        keys = _list_keys(model, place[:-1])
        return Mistake(field, f"there is no such key{_suggest_key(str(place[-1]), keys)}", line, allowed=keys)
    if error["type"] == "missing":
        return Mistake(field, "this key is missing", line)
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return Mistake(field, f"{message}, got {format_value(error['input'])}", line, error["input"], message)


def _suggest_key(name: str, keys: Sequence[str]) -> str:
    """Return the nearest key as a suggestion, or else all keys."""
    close = difflib.get_close_matches(name, keys, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; allowed: {', '.join(keys)}" if keys else ""


def _list_keys(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys of the models at a place, as far as annotations show them."""
    models: list[type[BaseModel]] = [model]
    for part in place:
        annotations = [_find_annotation(record, str(part)) for record in models]
        inner = [record for annotation in annotations for record in _list_models(annotation)]
        models = inner or models  # a part may name a dict's key, an index, or a branch of a union
    return sorted({info.alias or name for record in models for name, info in record.model_fields.items()})


def _find_annotation(model: type[BaseModel], name: str) -> Any:
    """Return the type of a field, by name or alias; None if there is none."""
    for key, field in model.model_fields.items():
        if name in (key, field.alias):
            return field.annotation
    return None


def _list_models(annotation: Any) -> list[type[BaseModel]]:
    """Return the models inside a type such as `dict[str, Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _list_models(inner)]


def _apply_override(text: Text, override: str) -> list[Mistake]:
    """Apply one `key=value` to the values; return what is wrong with it."""
    key, equals, value_text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        return [Mistake("--set", f"write key=value, as in budget.evaluations=2000; got {format_value(override)}")]
    try:
        value = parse_text(value_text, f"--set {key}")
    except SettingsError as error:
        return [Mistake(key, error.message)]
    if value.mistakes:
        return [Mistake(key, mistake.message) for mistake in value.mistakes]
    return _set_value(text, parts, value.value)


def _set_value(text: Text, parts: list[str], value: Any) -> list[Mistake]:
    """Put a value at a dotted key, creating the mappings on the way."""
    inner = text.value
    for depth, part in enumerate(parts[:-1]):
        if inner.get(part) is None:
            inner[part] = {}
        inner = inner[part]
        if not isinstance(inner, dict):
            upper = ".".join(parts[: depth + 1])
            return [Mistake(".".join(parts), f"{upper} is {format_value(inner)}, it has no keys")]
    inner[parts[-1]] = value
    text.lines[tuple(parts)] = None
    return []
