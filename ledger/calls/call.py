"""One call of a tool, as a server reports it: caller, tool and outcome; of the arguments only a digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from ..digest import canonical_json

MAX_NAME_CHARS = 100
MAX_CALLER_CHARS = 200
UNSPELLABLE = hashlib.sha256(b"\0arguments that cannot be spelled").hexdigest()
"""Digest of arguments that are nested too deeply to be serialised; such a call is recorded too."""

_DIGEST_PATTERN = re.compile(r"(?:[0-9a-f]{64})?")
_spell = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class CallOutcome(StrEnum):
    """The outcome of a call."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that was answered, refused, or failed.

    Parameters
    ----------
    who : str
        The token's id, "stdio" or "anonymous"; cut to 200 characters.
    server, tool : str
        Cut to 100 characters each; the tool is "http" for a request that is rejected before a tool is reached.
    outcome : CallOutcome
        Whether it was answered, refused or failed.
    code : str
        The error's code; empty for a call that was answered.
    arguments : str
        `digest_of_arguments`; empty if there were none to read.
    as_of : date or None
        The last day that the caller may see; None where no day applies.
    rows : int or None
        Rows of the answer; None where an answer has no rows.
    bytes : int
        Size of the answer in bytes.
    result : str
        SHA-256 of the answer, in hex; empty where there is none.
    duration_ms : float
        Duration in milliseconds.
    """

    who: str
    server: str
    tool: str
    outcome: CallOutcome
    code: str = ""
    arguments: str = ""
    as_of: date | None = None
    rows: int | None = None
    bytes: int = 0
    result: str = ""
    duration_ms: float = 0.0

    def spell(self) -> str:
        """Return the call as the members of a JSON object, without its braces.

        Raises
        ------
        ValueError
            If a digest is malformed, since it may be text that must not be stored; or if the duration is NaN.
        """
        if not (_DIGEST_PATTERN.fullmatch(self.arguments) and _DIGEST_PATTERN.fullmatch(self.result)):
            raise ValueError("arguments and result of a tool call are kept as SHA-256 in hex, or not at all")
        return _spell(
            {
                "who": self.who[:MAX_CALLER_CHARS],
                "server": self.server[:MAX_NAME_CHARS],
                "tool": self.tool[:MAX_NAME_CHARS],
                "outcome": self.outcome.value,
                "code": self.code[:MAX_NAME_CHARS],
                "arguments": self.arguments,
                "as_of": self.as_of.isoformat() if self.as_of else None,
                "rows": None if self.rows is None else int(self.rows),
                "bytes": int(self.bytes),
                "result": self.result,
                "duration_ms": round(float(self.duration_ms), 3),
            }
        )[1:-1]


def digest_of_arguments(arguments: Mapping[str, object]) -> str:
    """Return the SHA-256, in hex, of the canonical JSON of a call's arguments.

    It never fails, because a call that is refused for its arguments is recorded too: NaN is spelled NaN, half a
    surrogate pair as its escape. A digest proves which arguments were sent; it does not hide them from a guess.
    """
    try:
        text = canonical_json(arguments)  # type: ignore[arg-type]  # whatever the client sent
    except (TypeError, ValueError):
        text = _encode_loosely(arguments)
    except RecursionError:
        return UNSPELLABLE
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _encode_loosely(arguments: object) -> str:
    try:
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return UNSPELLABLE
