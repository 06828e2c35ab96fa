"""Check a call, and count the tokens of a call and its reply. Bytes pass unchanged except for the tenant's salt.

Only fields of the OpenAI API, and vLLM's for sampling and formats, are passed. Any other is refused by name, as
OpenAI's own server refuses it: if a field that restricts a model to a format were dropped silently, only the replies
would show it. The refused fields would control the endpoint itself (`priority`, `kv_transfer_params`, `vllm_xargs`,
`request_id`, `chat_template`), make it compute tokens that are not counted (`use_beam_search`, `prompt_logprobs`,
`min_tokens`), or share another tenant's cache (`cache_salt`).
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
"""The fields that limit the length of a reply, by path; an endpoint ignores a field that its path does not have."""
MAX_CALL_PARTS = 500_000
"""Most commas and brackets of a call: the JSON parser blocks the event loop, a tenth of a second for as many."""
MAX_NESTING = 100
"""Levels to which a call may nest; the endpoint's own checks recurse."""
OPENAI_FIELDS = frozenset(
    {"audio", "best_of", "documents", "echo", "frequency_penalty", "function_call", "functions", "logit_bias",
     "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n",
     "parallel_tool_calls", "prediction", "presence_penalty", "prompt", "prompt_cache_key", "reasoning_effort",
     "response_format", "safety_identifier", "seed", "stop", "stream", "stream_options", "suffix", "temperature",
     "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity"}
)  # fmt: skip  # a table
VLLM_FIELDS = frozenset(
    {"add_generation_prompt", "add_special_tokens", "chat_template_kwargs", "continue_final_message",
     "include_reasoning", "include_stop_str_in_output", "min_p", "repetition_penalty", "skip_special_tokens",
     "spaces_between_special_tokens", "stop_token_ids", "structured_outputs", "top_k"}
)  # fmt: skip  # a table
PASSED_FIELDS = OPENAI_FIELDS | VLLM_FIELDS
"""Fields of a call that reach the endpoint, which ignores those that its path does not have."""
TEMPLATE_FIELDS = frozenset({"enable_thinking", "reasoning_effort", "thinking", "thinking_budget"})
"""Allowed keys of `chat_template_kwargs`; others replace the template or change its use."""
PART_MEMBERS = frozenset({"cache_control", "image_url", "input_audio", "refusal", "text", "type"})
"""Allowed keys of a part of a message; others name data that the endpoint would fetch, or keeps of earlier calls."""
PICTURE = re.compile(r"data:image/[a-z0-9.+-]+[;,]", re.IGNORECASE)
PICTURE_LETTERS = 4096
"""Bytes for which a picture counts, about a thousand tokens, until the reply reports its tokens.

The size of a picture's file does not determine its tokens.
"""
UNCOUNTED_KEYS = frozenset({"id", "index", "name", "object", "role", "type"})
"""Keys whose texts are not output of the model."""
MAX_WHOLE_REPLY_BYTES = 16 << 20
"""Most bytes of a non-streaming reply that are kept until its end, to read its usage."""
MAX_TOKENS_PER_LINK = 1 << 16
"""Most tokens of a picture or film that a call only links."""
MAX_BYTES_PER_TOKEN = 16
"""Most bytes of a token of a reply, on average."""
EVENT_END, MAX_EVENT_END_BYTES = re.compile(rb"\r?\n\r?\n"), 4


@dataclass(frozen=True)
class ReplyLimits:
    """The limits of a call: default and largest number of tokens of a reply, and replies at once."""

    reply_tokens: int
    sequences: int = 1
    most_tokens: int = MAX_CALL_TOKENS


@dataclass(frozen=True)
class GatewayRequest:
    """One call: its bytes, the number of those that may be text, and the most tokens of all its replies together."""

    body: bytes
    letters: int
    most_tokens_out: int


def read_call(body: bytes, limits: ReplyLimits, path: str = CHAT, salt: str = "") -> GatewayRequest:
    """Read a call of a tenant; the endpoint gets `salt` as `cache_salt`, so that no other tenant shares its prefixes.

    All of its bytes count as text, since any of them may become part of the prompt (roles, names, keys of a tool's
    schema), except pictures where the protocol has them.

    Raises
    ------
    GatewayError
        If it is not a JSON object or has too many parts, has a field that is not passed, has an invalid or too large
        number, or asks for more sequences than one place allows.
    """
    fields = _parse_call(body)
    _refuse_unknown("field", fields, PASSED_FIELDS)
    _refuse_unknown("field of chat_template_kwargs", fields.get("chat_template_kwargs"), TEMPLATE_FIELDS)
    pictures = list(_iterate_pictures(fields))
    prompts = fields.get("prompt")
    texts = len(prompts) if isinstance(prompts, list) and not all(isinstance(part, int) for part in prompts) else 1
    sequences = texts * max(_read_number(fields, name, MAX_CALL_TOKENS) or 1 for name in ("n", "best_of"))
    if sequences > limits.sequences:
        raise bad_call(
            f"a call may ask for {limits.sequences} {'reply' if limits.sequences == 1 else 'replies'} at once",
            field="n",
            got=sequences,
            allowed=f"1 to {limits.sequences}",
            hint="Send several calls; or raise `sequences` of the file of tenants.",
        )
    length = max(_read_number(fields, name, limits.most_tokens) for name in LENGTHS[path])
    most = sequences * (length or min(limits.reply_tokens, limits.most_tokens))
    weight = len(body) - sum(map(len, pictures)) + PICTURE_LETTERS * len(pictures)
    return GatewayRequest(_add_salt(body, salt, bool(fields)), weight, min(most, MAX_CALL_TOKENS))


def _refuse_unknown(what: str, fields: Any, known: frozenset[str]) -> None:
    """Refuse names that are not passed on."""
    strange = sorted({*fields} - known) if isinstance(fields, dict) else []
    if strange:
        name = strange[0][:80].encode("ascii", "replace").decode()
        raise bad_call(
            f"this gateway does not pass the {what} {name!r} on",
            field=name,
            hint="Leave it out.",
        )


def _add_salt(body: bytes, salt: str, more: bool) -> bytes:
    """Return a call with the salt of its tenant."""
    if not salt:
        return body
    begin = body.index(b"{") + 1
    return body[:begin] + b'"cache_salt":' + json.dumps(salt).encode() + b"," * more + body[begin:]


def _parse_call(body: bytes) -> dict[str, Any]:
    """Return a call as JSON; refuse one that is no object, has too many parts or nests too deep."""
    if sum(map(body.count, (b",", b"{", b"["))) > MAX_CALL_PARTS:
        raise bad_call(
            "the body has too many parts", field="body", allowed=f"{MAX_CALL_PARTS:,} commas and brackets", status=413
        )
    try:
        fields = json.loads(body.decode())
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise bad_call("the body must be a JSON object", hint="Send what the OpenAI API takes, in UTF-8.")
    level: list[Any] = [fields]
    for _ in range(MAX_NESTING):
        level = [inner for outer in level for inner in _list_inner_values(outer)]
    if level:
        raise bad_call("the body nests too deep", field="body", allowed=f"{MAX_NESTING} levels")
    return fields


def _list_inner_values(value: Any) -> list[Any]:
    """Return the items of a list or the values of an object; empty for anything else."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _iterate_pictures(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the pictures embedded in messages, which are not text; linked pictures are refused."""
    for message in _list_inner_values(fields.get("messages")):
        for part in _list_inner_values(message.get("content")) if isinstance(message, dict) else ():
            _refuse_unknown("member of a message's part", part, PART_MEMBERS)
            picture = part.get("image_url") if isinstance(part, dict) else None
            url = picture.get("url") if isinstance(picture, dict) else picture
            if url is None:
                continue
            if not isinstance(url, str) or PICTURE.match(url) is None:
                raise bad_call(
                    "a picture must be in the call itself",
                    field="image_url",
                    allowed="data:image/png;base64,... and the like",
                    hint="Addresses are not passed on: the endpoint would fetch them from where it stands.",
                )
            yield url


def _read_number(fields: Mapping[str, Any], name: str, most: int) -> int:
    """Return a count of a call, 0 if it has none."""
    value = fields.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise bad_call("this must be a whole number", field=name, got=str(value)[:40], allowed=f"0 to {most}")
    return value


@dataclass
class TokenSize:
    """The mean bytes of a token, learnt from replies that report their usage; about the last sixteen count."""

    bytes_per_token: float = 4.0

    def estimate_tokens(self, many: int) -> int:
        """Return the estimated tokens of `many` bytes."""
        return round(many / self.bytes_per_token)

    def learn(self, many: int, tokens: int) -> None:
        """Update the mean with a call whose bytes and tokens are known."""
        if many > 0 and tokens > 0:
            self.bytes_per_token += (min(max(many / tokens, 0.25), 16.0) - self.bytes_per_token) / 16


@dataclass
class ReplyCounter:
    """Count the tokens of a reply as it passes; the bytes are neither changed nor delayed.

    `parts` counts the pieces of a stream, each of which is one token or more: the endpoint joins pieces that it could
    not send at once. So `parts` is a lower bound of the reply's tokens, reported while it is under way. `lost`: part of
    the reply was too large to be read.
    """

    streams: bool
    parts: int = 0
    written: int = 0
    lost: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, piece: bytes) -> None:
        """Read the next bytes of the reply."""
        if len(self._buffer) + len(piece) > MAX_WHOLE_REPLY_BYTES:
            self._buffer.clear()
            self.lost = True
        if self.lost and not self.streams:
            return
        start = max(len(self._buffer) - MAX_EVENT_END_BYTES + 1, 0)
        self._buffer += piece
        if self.streams and EVENT_END.search(
            self._buffer, start
        ):  # each byte is searched once, however small the pieces
            *events, rest = EVENT_END.split(bytes(self._buffer))
            self._buffer = bytearray(rest)
            for event in events:
                self._read_event(event)

    def end(self) -> None:
        """Read the rest at the end of the reply."""
        if self.streams:
            self._read_event(bytes(self._buffer))
        else:
            self._read_json(bytes(self._buffer))
        self._buffer.clear()

    def clamp_usage(self, call: GatewayRequest) -> None:
        """Limit the reported usage to what is possible.

        Input: at most a token a byte. Output: at most the requested length or the bytes written, and no less than the
        bytes written allow.
        """
        if self.tokens_in is not None:
            self.tokens_in = min(self.tokens_in, len(call.body) + call.body.count(b"_url") * MAX_TOKENS_PER_LINK)
        if self.tokens_out is not None:
            most = max(call.most_tokens_out, self.written)
            self.tokens_out = max(min(self.tokens_out, most), self.written // MAX_BYTES_PER_TOKEN)

    def count_output(self, yard: TokenSize) -> int:
        """Return the tokens of the reply: the reported ones, else the larger of its parts and the estimate by bytes."""
        return self.tokens_out if self.tokens_out is not None else max(self.parts, yard.estimate_tokens(self.written))

    def _read_event(self, event: bytes) -> None:
        for line in event.splitlines():
            if line.startswith(b"data:"):
                self._read_json(line[5:])

    def _read_json(self, text: bytes) -> None:
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(content, dict):
            return
        usage = content.get("usage")
        if isinstance(usage, dict):
            self.tokens_in = _read_count(usage.get("prompt_tokens"), self.tokens_in)
            self.tokens_out = _read_count(usage.get("completion_tokens"), self.tokens_out)
        choices = content.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            try:
                many = _count_choice_bytes(choice)
            except RecursionError:
                continue
            self.parts += bool(many)
            self.written += many


def count_text_bytes(value: Any) -> int:
    """Return the bytes of all texts in a part of a reply; a token given as a number counts as four."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return sum(4 if isinstance(item, int) else count_text_bytes(item) for item in value)
    if isinstance(value, dict):
        return sum(count_text_bytes(item) for key, item in value.items() if key not in UNCOUNTED_KEYS)
    return 0


def _count_choice_bytes(choice: Any) -> int:
    """Return the text bytes of one choice of a reply or of a piece of it."""
    if not isinstance(choice, dict):
        return 0
    return sum(count_text_bytes(choice.get(name)) for name in ("delta", "message", "text"))


def _read_count(value: Any, known: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_CALL_TOKENS else known
