"""A call as it comes: what has to be known of it before it may be sent; its bytes are never changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import BadCall
from ..quota import MOST_TOKENS

__all__ = ["CHAT", "COMPLETIONS", "Asked", "Limits", "asked"]

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LENGTHS = {CHAT: ("max_completion_tokens", "max_tokens"), COMPLETIONS: ("max_tokens",)}
"""What says the length of a reply; an endpoint passes over what its path does not have, so it must not count here."""
MOST_PARTS = 500_000
"""Of one call: the parser of JSON lets nobody else have a turn, and takes a tenth of a second for as many."""
DEEPEST = 100
"""How deep a call may nest; the endpoint's own checks recurse."""


@dataclass(frozen=True)
class Limits:
    """What a call may ask for: tokens of a reply where it does not say, and at most; replies at once."""

    reply_tokens: int
    sequences: int = 1
    most_tokens: int = MOST_TOKENS


@dataclass(frozen=True)
class Asked:
    """One call: its bytes, those of them that may be text, and the most tokens of its reply, all sequences together."""

    body: bytes
    letters: int
    most_tokens_out: int


def asked(body: bytes, limits: Limits, path: str = CHAT) -> Asked:
    """Read a call.

    Everything that it brings counts as text, since any of it may end in the prompt (roles, names, keys of a tool's
    schema), but pictures where the protocol has them.

    Raises
    ------
    BadCall
        If it is no JSON object or one out of all proportion, says a number that is none or too large, or asks for more
        sequences than one place stands for.
    """
    told = _parsed(body)
    prompts = told.get("prompt")
    texts = len(prompts) if isinstance(prompts, list) and not all(isinstance(each, int) for each in prompts) else 1
    wanted = texts * max(_number(told, name, MOST_TOKENS) or 1 for name in ("n", "best_of"))
    if wanted > limits.sequences:
        raise BadCall(
            f"a call may ask for {limits.sequences} {'reply' if limits.sequences == 1 else 'replies'} at once",
            field="n", got=wanted, allowed=f"1 to {limits.sequences}",
            hint="Send several calls; or raise `sequences` of the file of tenants.",
        )  # fmt: skip
    each = max(_number(told, name, limits.most_tokens) for name in LENGTHS[path])
    most = wanted * (each or min(limits.reply_tokens, limits.most_tokens))
    return Asked(body, len(body) - sum(map(len, _pictures(told))), min(most, MOST_TOKENS))


def _parsed(body: bytes) -> dict[str, Any]:
    """Return a call as JSON, if it is an object that is neither too finely cut nor too deep."""
    if sum(map(body.count, (b",", b"{", b"["))) > MOST_PARTS:
        large = BadCall("the body has too many parts", field="body", allowed=f"{MOST_PARTS:,} commas and brackets")
        large.status = 413
        raise large
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadCall("the body must be a JSON object", hint="Send what the OpenAI API takes.")
    level: list[Any] = [told]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _within(outer)]
    if level:
        raise BadCall("the body nests too deep", field="body", allowed=f"{DEEPEST} levels")
    return told


def _within(value: Any) -> list[Any]:
    """Return what a list or an object holds."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _pictures(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pictures that messages carry in themselves, which are not read as text."""
    for message in _within(told.get("messages")):
        for part in _within(message.get("content")) if isinstance(message, dict) else ():
            picture = part.get("image_url") if isinstance(part, dict) and part.get("type") == "image_url" else None
            url = picture.get("url") if isinstance(picture, dict) else None
            if isinstance(url, str) and url.startswith("data:"):
                yield url


def _number(told: Mapping[str, Any], name: str, most: int) -> int:
    """Return a count that a call says, 0 if it does not; the endpoint says more of what is wrong with others."""
    value = told.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadCall("this must be a whole number", field=name, got=str(value)[:40], allowed=f"0 to {most}")
    return value
