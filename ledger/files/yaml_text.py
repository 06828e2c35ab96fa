"""Parse YAML with the line of each key, reports of repeated keys, and 1e-4 as a number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from ..errors import Mistake, SettingsError
from .given_file import read_given_text

Place: TypeAlias = tuple[str | int, ...]

MAX_EXPANDED_CHARS = 2_000_000
"""Limit on the characters of a text with its aliases written out."""
NODE_CHARACTERS = 20
"""Characters that each value counts in addition to its own: reading a value takes as long as reading so many."""

_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$|[-+]?[0-9]+[eE][-+]?[0-9]+$"
    r"|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)


class _Loader(yaml.SafeLoader):
    """Reads 1e-4 as a number, as YAML 1.2 does, and dates as text: the settings' types decide what is a date."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":float", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


class QuotingDumper(yaml.SafeDumper):
    """Quotes every text that does not begin with a letter: our reader takes 12e4 for a number, as YAML 1.2 does."""


QuotingDumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if text[:1].isalpha() else '"'
    ),
)


@dataclass
class Text:
    """A parsed YAML text: its value, the line of each key, and the mistakes found by parsing."""

    value: Any = None
    lines: dict[Place, int | None] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def line(self, place: Place) -> int | None:
        """Return the line of a key, or of the nearest key above it; None for a value that is not in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)


def read_text(path: Path) -> Text:
    """Read a YAML file.

    Raises
    ------
    SettingsError
        If the file is missing, is not UTF-8, or is not YAML; the last with line and column.
    """
    try:
        body = read_given_text(path)
    except FileNotFoundError:
        raise SettingsError(
            f"no settings file {path}", field=str(path), hint="`alphaloom init` writes a commented one."
        ) from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text: byte {error.start} cannot be read", field=str(path)) from None
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}", field=str(path)) from None
    return parse_text(body, str(path))


def parse_text(body: str, source: str) -> Text:
    """Parse YAML; `source` names it in errors."""
    text = Text()
    loader = _Loader(body)
    try:
        node = loader.get_single_node()
        if node is not None:
            _refuse_large_expansion(node, source)
            _survey(node, (), text, set())
            text.value = {} if text.mistakes else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _build_yaml_error(error, source) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{source} is not YAML: {error}", field=source) from None
    finally:
        loader.dispose()
    return text


def _build_yaml_error(error: yaml.MarkedYAMLError, source: str) -> SettingsError:
    """Return the error with the line and column at which the YAML breaks."""
    mark = error.problem_mark or error.context_mark
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    why = ", ".join(part for part in (error.context, error.problem) if part)
    return SettingsError(f"{source}{where}: this is not YAML: {why}", field=source)


def _refuse_large_expansion(node: yaml.Node, source: str) -> None:
    """Refuse a text that is too large with its aliases written out.

    Ten lines of aliases of aliases can stand for a billion values.
    """
    if _measure_expanded(node, {}) > max(MAX_EXPANDED_CHARS, _measure_expanded(node, {}, once=True)):
        raise SettingsError(
            f"{source}: with its aliases (*name) written out it holds more than the {MAX_EXPANDED_CHARS:,} characters "
            "that are read",
            field=source,
            hint="Write the values out, or refer to fewer of them.",
        )


def _measure_expanded(node: yaml.Node, sizes: dict[int, int], *, once: bool = False) -> int:
    """Return the size of a node with every alias written out, or `once` each; `sizes` caches nodes by id."""
    if id(node) in sizes:
        return 0 if once else sizes[id(node)]
    sizes[id(node)] = 0  # an alias that contains itself is reported elsewhere
    total = NODE_CHARACTERS + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
    if isinstance(node, yaml.CollectionNode):
        pairs = isinstance(node, yaml.MappingNode)
        parts = [part for pair in node.value for part in pair] if pairs else node.value
        total += sum(_measure_expanded(part, sizes, once=once) for part in parts)
    sizes[id(node)] = total
    return total


def _survey(node: yaml.Node, place: Place, text: Text, above: set[int]) -> None:
    """Record the line of every key; report repeated keys, aliases that contain themselves, and non-finite numbers."""
    if id(node) in above:
        text.mistakes.append(_build_mistake(place, "this alias contains itself", node))
        return
    above = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        _survey_mapping(node, place, text, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            text.lines[(*place, index)] = item.start_mark.line + 1
            _survey(item, (*place, index), text, above)
    elif node.tag.endswith(":float") and not math.isfinite(
        float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    ):
        text.mistakes.append(_build_mistake(place, f"a number must be finite, got {node.value}", node))


def _survey_mapping(node: yaml.MappingNode, place: Place, text: Text, above: set[int]) -> None:
    first_lines: dict[str, int] = {}
    for key, value in node.value:
        inner = (*place, str(key.value))
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            text.mistakes.append(_build_mistake(place, "a key must be a word", key))
            continue
        if key.value in first_lines:
            text.mistakes.append(_build_mistake(inner, f"written twice, first on line {first_lines[key.value]}", key))
        first_lines.setdefault(key.value, line)
        text.lines[inner] = line
        _survey(value, inner, text, above)


def _build_mistake(place: Place, message: str, node: yaml.Node) -> Mistake:
    return Mistake(format_path(place), message, node.start_mark.line + 1)


def format_path(place: Place) -> str:
    """Return a place as a person writes it: models.small.tier, folds[2].days."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
