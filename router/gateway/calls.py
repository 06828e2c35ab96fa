"""A call as it comes: what has to be known of it before it may be sent; its bytes are never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import BadCall

__all__ = ["Asked", "asked", "letters"]

NAMES = frozenset({"id", "index", "name", "object", "role", "type"})
"""Keys whose texts a model neither reads nor writes as such."""


@dataclass(frozen=True)
class Asked:
    """One call: its bytes, the bytes of text in it, and the most tokens of its reply, all sequences together."""

    body: bytes
    letters: int
    most_tokens_out: int


def asked(body: bytes, *, reply_tokens: int, sequences: int) -> Asked:
    """Read a call of either path.

    Raises
    ------
    BadCall
        If it is no JSON object, says a number that is none, or asks for more sequences than one place stands for.
    """
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadCall("the body must be a JSON object", hint="Send what the OpenAI API takes.")
    prompts = told.get("prompt")
    texts = len(prompts) if isinstance(prompts, list) and not all(isinstance(each, int) for each in prompts) else 1
    wanted = texts * max(_number(told, "n", 1), _number(told, "best_of", 1))
    if wanted > sequences:
        raise BadCall(
            f"a call may ask for {sequences} {'reply' if sequences == 1 else 'replies'} at once",
            field="n", got=wanted, allowed=f"1 to {sequences}",
            hint="Send several calls; or raise `sequences` of the file of tenants.",
        )  # fmt: skip
    each = _number(told, "max_completion_tokens", 0) or _number(told, "max_tokens", 0) or reply_tokens
    read = sum(letters(told.get(name)) for name in ("messages", "prompt", "tools"))
    return Asked(body, read, wanted * each)


def letters(value: Any) -> int:
    """Return the bytes of all texts in a part of a call or a reply; a token that stands as a number counts as four."""
    if isinstance(value, str):
        return 0 if value.startswith("data:") else len(value.encode("utf-8", "surrogatepass"))  # no pictures
    if isinstance(value, list):
        return sum(4 if isinstance(each, int) else letters(each) for each in value)
    if isinstance(value, dict):
        return sum(letters(each) for key, each in value.items() if key not in NAMES)
    return 0


def _number(told: Mapping[str, Any], name: str, usual: int) -> int:
    """Return a count that a call says; the endpoint says more of what is wrong with others."""
    value = told.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadCall("this must be a whole number", field=name, got=str(value)[:40], allowed="0 or more")
    return value
