"""How many tokens a reply has: as its `usage` says, or by what is written, as it passes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from .calls import GatewayRequest
from .quota import MAX_CALL_TOKENS

__all__ = ["ReplyCounter", "TokenSize", "count_text_bytes"]

UNCOUNTED_KEYS = frozenset({"id", "index", "name", "object", "role", "type"})
"""Keys whose texts a model does not write as such."""

MAX_WHOLE_REPLY_BYTES = 16 << 20
"""Bytes of a reply that is no stream which are kept until its end, to read its usage."""
MAX_TOKENS_PER_LINK = 1 << 16
"""Tokens that a picture or a film has which a call only names."""
MAX_BYTES_PER_TOKEN = 16
"""Bytes of a token of a reply, on average at most."""
EVENT_END, MAX_EVENT_END_BYTES = re.compile(rb"\r?\n\r?\n"), 4


@dataclass
class TokenSize:
    """How many bytes a token has, learnt from replies that say their usage; about sixteen of them count."""

    bytes_per_token: float = 4.0

    def tokens(self, many: int) -> int:
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

    def bound(self, call: GatewayRequest) -> None:
        """Believe of the usage what the call can have taken: at most a token a byte, or what it asked for, and no less than was written."""
        if self.tokens_in is not None:
            self.tokens_in = min(self.tokens_in, len(call.body) + call.body.count(b"_url") * MAX_TOKENS_PER_LINK)
        if self.tokens_out is not None:
            most = max(call.most_tokens_out, self.written)
            self.tokens_out = max(min(self.tokens_out, most), self.written // MAX_BYTES_PER_TOKEN)

    def out(self, yard: TokenSize) -> int:
        """Return the tokens of the reply: as it says itself, else the more of its parts and of what its bytes suggest."""
        return self.tokens_out if self.tokens_out is not None else max(self.parts, yard.tokens(self.written))

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
