"""JSON objects in a model's text, wherever they stand: alone, in a fence, among words, before or after its thoughts."""

from __future__ import annotations

import json
import math
import re
from typing import Any

BOM = "\ufeff"
_THOUGHTS = re.compile(r"<(think|thinking|thought|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_THOUGHTS_END = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_PARTS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}]', re.DOTALL)
"""A text that never closes goes on to the end: it would else be looked for again from each of its quotes."""


class NotJson(ValueError):
    """A text is no JSON, or means more than one thing; the message says why, in words for the model."""


def objects(text: str) -> list[str]:
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
    if objects(text) == [text]:
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
