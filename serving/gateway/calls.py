"""A call and its reply as they pass: what may be sent, and how many tokens both have. Bytes pass unchanged but for the tenant's salt.

Only fields of the OpenAI API, and vLLM's for sampling and formats, are passed. Any other is refused with its name, as OpenAI's
own server refuses it: left out without a word, a field that holds a model to a format would be missed only in its replies. What
is refused so would steer the endpoint itself (`priority`, `kv_transfer_params`, `vllm_xargs`, `request_id`, `chat_template`), make
it compute what nobody counts (`use_beam_search`, `prompt_logprobs`, `min_tokens`), or share another tenant's cache (`cache_salt`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import bad_call
from .tenants import MAX_CALL_TOKENS

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
UNCOUNTED_KEYS = frozenset({"id", "index", "name", "object", "role", "type"})
"""Keys whose texts a model does not write as such."""
MAX_WHOLE_REPLY_BYTES = 16 << 20
"""Bytes of a reply that is no stream which are kept until its end, to read its usage."""
MAX_TOKENS_PER_LINK = 1 << 16
"""Tokens that a picture or a film has which a call only names."""
MAX_BYTES_PER_TOKEN = 16
"""Bytes of a token of a reply, on average at most."""
EVENT_END, MAX_EVENT_END_BYTES = re.compile(rb"\r?\n\r?\n"), 4


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
    GatewayError
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
        raise bad_call(
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
        raise bad_call(
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
        raise bad_call(
            "the body has too many parts", field="body", allowed=f"{MAX_CALL_PARTS:,} commas and brackets", status=413
        )
    try:
        told = json.loads(body.decode())
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise bad_call("the body must be a JSON object", hint="Send what the OpenAI API takes, in UTF-8.")
    level: list[Any] = [told]
    for _ in range(MAX_NESTING):
        level = [inner for outer in level for inner in _inner_values(outer)]
    if level:
        raise bad_call("the body nests too deep", field="body", allowed=f"{MAX_NESTING} levels")
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
                raise bad_call(
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
        raise bad_call("this must be a whole number", field=name, got=str(value)[:40], allowed=f"0 to {most}")
    return value


@dataclass
class TokenSize:
    """How many bytes a token has, learnt from replies that say their usage; about sixteen of them count."""

    bytes_per_token: float = 4.0

    def estimate_tokens(self, many: int) -> int:
        """Return about how many tokens so many bytes are."""
        return round(many / self.bytes_per_token)

    def learn(self, many: int, tokens: int) -> None:
        """Take in a call of which both are known."""
        if many > 0 and tokens > 0:
            self.bytes_per_token += (min(max(many / tokens, 0.25), 16.0) - self.bytes_per_token) / 16


@dataclass
class ReplyCounter:
    """Reads along as a reply passes; changes nothing and holds nothing back.

    `parts` counts the pieces of a stream, each of which is a token or several: the endpoint puts together what it could
    not send at once. So `parts` is the least that the reply has, and what is said while it is under way. `lost` says that
    some of it was too large to be read.
    """

    streams: bool
    parts: int = 0
    written: int = 0
    lost: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    _held: bytearray = field(default_factory=bytearray)

    def feed(self, piece: bytes) -> None:
        """Read some bytes."""
        if len(self._held) + len(piece) > MAX_WHOLE_REPLY_BYTES:
            self._held.clear()
            self.lost = True
        if self.lost and not self.streams:
            return
        seen = max(len(self._held) - MAX_EVENT_END_BYTES + 1, 0)
        self._held += piece
        if self.streams and EVENT_END.search(self._held, seen):  # each byte is looked at once, however small the pieces
            *events, rest = EVENT_END.split(bytes(self._held))
            self._held = bytearray(rest)
            for event in events:
                self._event(event)

    def end(self) -> None:
        """Read what is left when all has passed."""
        if self.streams:
            self._event(bytes(self._held))
        else:
            self._read(bytes(self._held))
        self._held.clear()

    def clamp_usage(self, call: GatewayRequest) -> None:
        """Believe of the usage what the call can have taken: at most a token a byte, or what it asked for, and no less than was written."""
        if self.tokens_in is not None:
            self.tokens_in = min(self.tokens_in, len(call.body) + call.body.count(b"_url") * MAX_TOKENS_PER_LINK)
        if self.tokens_out is not None:
            most = max(call.most_tokens_out, self.written)
            self.tokens_out = max(min(self.tokens_out, most), self.written // MAX_BYTES_PER_TOKEN)

    def count_output(self, yard: TokenSize) -> int:
        """Return the tokens of the reply: as it says itself, else the more of its parts and of what its bytes suggest."""
        return self.tokens_out if self.tokens_out is not None else max(self.parts, yard.estimate_tokens(self.written))

    def _event(self, event: bytes) -> None:
        for line in event.splitlines():
            if line.startswith(b"data:"):
                self._read(line[5:])

    def _read(self, text: bytes) -> None:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(told, dict):
            return
        usage = told.get("usage")
        if isinstance(usage, dict):
            self.tokens_in = _count(usage.get("prompt_tokens"), self.tokens_in)
            self.tokens_out = _count(usage.get("completion_tokens"), self.tokens_out)
        choices = told.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            try:
                many = _choice_bytes(choice)
            except RecursionError:
                continue
            self.parts += bool(many)
            self.written += many


def count_text_bytes(value: Any) -> int:
    """Return the bytes of all texts in a part of a reply; a token that stands as a number counts as four."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return sum(4 if isinstance(each, int) else count_text_bytes(each) for each in value)
    if isinstance(value, dict):
        return sum(count_text_bytes(each) for key, each in value.items() if key not in UNCOUNTED_KEYS)
    return 0


def _choice_bytes(choice: Any) -> int:
    """Return the bytes that a choice of a reply, or of a piece of one, says."""
    if not isinstance(choice, dict):
        return 0
    return sum(count_text_bytes(choice.get(name)) for name in ("delta", "message", "text"))


def _count(value: Any, known: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_CALL_TOKENS else known
