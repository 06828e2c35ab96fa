"""A call as it comes: what has to be known of it before it may be sent. Its bytes pass as they are, with the tenant's salt before them.

Only fields of the OpenAI API, and vLLM's for sampling and formats, are passed. Any other is refused with its name, as OpenAI's
own server refuses it: left out without a word, a field that holds a model to a format would be missed only in its replies. What
is refused so would steer the endpoint itself (`priority`, `kv_transfer_params`, `vllm_xargs`, `request_id`, `chat_template`), make
it compute what nobody counts (`use_beam_search`, `prompt_logprobs`, `min_tokens`), or share another tenant's cache (`cache_salt`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...router import BadCall
from .quota import MAX_CALL_TOKENS

__all__ = ["CHAT", "COMPLETIONS", "GatewayRequest", "ReplyLimits", "read_call"]

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LENGTHS = {CHAT: ("max_completion_tokens", "max_tokens"), COMPLETIONS: ("max_tokens",)}
"""What says the length of a reply; an endpoint passes over what its path does not have, so it must not count here."""
MAX_CALL_PARTS = 500_000
"""Of one call: the parser of JSON lets nobody else have a turn, and takes a tenth of a second for as many."""
MAX_NESTING = 100
"""How deep a call may nest; the endpoint's own checks recurse."""


OPENAI_FIELDS = frozenset(
    {"audio", "best_of", "documents", "echo", "frequency_penalty", "function_call", "functions", "logit_bias",
     "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n",
     "parallel_tool_calls", "prediction", "presence_penalty", "prompt", "prompt_cache_key", "reasoning_effort",
     "response_format", "safety_identifier", "seed", "stop", "stream", "stream_options", "suffix", "temperature",
     "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity"}
)  # fmt: skip
VLLM_FIELDS = frozenset(
    {"add_generation_prompt", "add_special_tokens", "chat_template_kwargs", "continue_final_message",
     "include_reasoning", "include_stop_str_in_output", "min_p", "repetition_penalty", "skip_special_tokens",
     "spaces_between_special_tokens", "stop_token_ids", "structured_outputs", "top_k"}
)  # fmt: skip
PASSED_FIELDS = OPENAI_FIELDS | VLLM_FIELDS
"""Of a call: what reaches the endpoint, which passes over what its path does not have."""
TEMPLATE_FIELDS = frozenset({"enable_thinking", "reasoning_effort", "thinking", "thinking_budget"})
"""Of `chat_template_kwargs`: others replace the template, or what is done with it."""
PART_MEMBERS = frozenset({"cache_control", "image_url", "input_audio", "refusal", "text", "type"})
"""Of a part of a message: others name what the endpoint is to fetch, or what it keeps of earlier calls."""
PICTURE = re.compile(r"data:image/[a-z0-9.+-]+[;,]", re.IGNORECASE)
PICTURE_LETTERS = 4096
"""What a picture weighs, about a thousand tokens, until the reply says how many it had: its bytes say nothing of that."""


@dataclass(frozen=True)
class ReplyLimits:
    """What a call may ask for: tokens of a reply where it does not say, and at most; replies at once."""

    reply_tokens: int
    sequences: int = 1
    most_tokens: int = MAX_CALL_TOKENS


@dataclass(frozen=True)
class GatewayRequest:
    """One call: its bytes, those of them that may be text, and the most tokens of its reply, all sequences together."""

    body: bytes
    letters: int
    most_tokens_out: int


def read_call(body: bytes, limits: ReplyLimits, path: str = CHAT, salt: str = "") -> GatewayRequest:
    """Read a call of a tenant; `salt` is said to the endpoint as `cache_salt`, so that its prefixes are its own.

    Everything that it brings counts as text, since any of it may end in the prompt (roles, names, keys of a tool's
    schema), but pictures where the protocol has them.

    Raises
    ------
    BadCall
        If it is no JSON object or one out of all proportion, has a field that is not passed, says a number that is none or
        too large, or asks for more sequences than one place stands for.
    """
    told = _parse_call(body)
    _refuse_unknown("field", told, PASSED_FIELDS)
    _refuse_unknown("field of chat_template_kwargs", told.get("chat_template_kwargs"), TEMPLATE_FIELDS)
    pictures = list(_pictures(told))
    prompts = told.get("prompt")
    texts = len(prompts) if isinstance(prompts, list) and not all(isinstance(each, int) for each in prompts) else 1
    wanted = texts * max(_number(told, name, MAX_CALL_TOKENS) or 1 for name in ("n", "best_of"))
    if wanted > limits.sequences:
        raise BadCall(
            f"a call may ask for {limits.sequences} {'reply' if limits.sequences == 1 else 'replies'} at once",
            field="n", got=wanted, allowed=f"1 to {limits.sequences}",
            hint="Send several calls; or raise `sequences` of the file of tenants.",
        )  # fmt: skip
    each = max(_number(told, name, limits.most_tokens) for name in LENGTHS[path])
    most = wanted * (each or min(limits.reply_tokens, limits.most_tokens))
    weight = len(body) - sum(map(len, pictures)) + PICTURE_LETTERS * len(pictures)
    return GatewayRequest(_add_salt(body, salt, bool(told)), weight, min(most, MAX_CALL_TOKENS))


def _refuse_unknown(what: str, told: Any, known: frozenset[str]) -> None:
    """Refuse names that are not passed on."""
    strange = sorted({*told} - known) if isinstance(told, dict) else []
    if strange:
        name = strange[0][:80].encode("ascii", "replace").decode()
        raise BadCall(
            f"this gateway does not pass the {what} {name!r} on", field=name, hint="Leave it out.",
        )  # fmt: skip


def _add_salt(body: bytes, salt: str, more: bool) -> bytes:
    """Return a call that says the salt of its tenant."""
    if not salt:
        return body
    begin = body.index(b"{") + 1
    return body[:begin] + b'"cache_salt":' + json.dumps(salt).encode() + b"," * more + body[begin:]


def _parse_call(body: bytes) -> dict[str, Any]:
    """Return a call as JSON, if it is an object that is neither too finely cut nor too deep."""
    if sum(map(body.count, (b",", b"{", b"["))) > MAX_CALL_PARTS:
        large = BadCall("the body has too many parts", field="body", allowed=f"{MAX_CALL_PARTS:,} commas and brackets")
        large.status = 413
        raise large
    try:
        told = json.loads(body.decode())
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadCall("the body must be a JSON object", hint="Send what the OpenAI API takes, in UTF-8.")
    level: list[Any] = [told]
    for _ in range(MAX_NESTING):
        level = [inner for outer in level for inner in _inner_values(outer)]
    if level:
        raise BadCall("the body nests too deep", field="body", allowed=f"{MAX_NESTING} levels")
    return told


def _inner_values(value: Any) -> list[Any]:
    """Return what a list or an object holds."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _pictures(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pictures that messages carry in themselves, which are not read as text; one elsewhere is not fetched."""
    for message in _inner_values(told.get("messages")):
        for part in _inner_values(message.get("content")) if isinstance(message, dict) else ():
            _refuse_unknown("member of a message's part", part, PART_MEMBERS)
            picture = part.get("image_url") if isinstance(part, dict) else None
            url = picture.get("url") if isinstance(picture, dict) else picture
            if url is None:
                continue
            if not isinstance(url, str) or PICTURE.match(url) is None:
                raise BadCall(
                    "a picture must be in the call itself", field="image_url", allowed="data:image/png;base64,... and the like",
                    hint="Addresses are not passed on: the endpoint would fetch them from where it stands.",
                )  # fmt: skip
            yield url


def _number(told: Mapping[str, Any], name: str, most: int) -> int:
    """Return a count that a call says, 0 if it does not; the endpoint says more of what is wrong with others."""
    value = told.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadCall("this must be a whole number", field=name, got=str(value)[:40], allowed=f"0 to {most}")
    return value
