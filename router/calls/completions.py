"""A completion: what a model said, why it ended, and the tokens that its server reports, however it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

REFUSED = "content_filter"
"""Finish reason of a reply that the model refused or its provider withheld; the text is the model's own words."""
MAX_ERROR_BYTES = 1 << 14
"""Maximum size of a server's error text. All of it is searched for keys before 300 characters of it are shown."""
MAX_VERSION_CHARS = 200
MAX_INTEGER_DIGITS = 40
"""Maximum digits of a parsed integer: Python takes seconds for a million digits."""


@dataclass(frozen=True)
class Completion:
    """One answer of a model: its content, its thoughts, the finish reason, and the usage as it was reported.

    The usage has the names of the OpenAI protocol: `prompt_tokens`, `completion_tokens`, `prompt_tokens_details`.
    `served` is the version of the model as its server names it (`read_version`); empty where it names none.
    """

    content: str
    thoughts: str = ""
    finish: str = "stop"
    usage: Mapping[str, Any] = field(default_factory=dict)
    served: str = ""


class InProcessModel(Protocol):
    """A model that runs in this process, without a network."""

    async def complete(
        self, model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]
    ) -> Completion:
        """Return the completion of a conversation.

        `model` is the name after the provider's; `parameters` are `max_tokens`, `seed`, `response_format` and others of
        the OpenAI protocol.
        """


class Unreadable(Exception):
    """An answer that is no chat completion; the message says why."""


def parse_completion(body: bytes) -> Completion:
    """Return the completion in a server's answer.

    Members of unexpected types are ignored where the text can be read without them: a paid answer would be lost.

    Raises
    ------
    Unreadable
        If the answer holds no message.
    """
    try:
        answer = json.loads(body.decode("utf-8-sig"), parse_int=_parse_whole)
    except UnicodeDecodeError:
        raise Unreadable("its answer is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Unreadable("its answer is not JSON") from None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        words = read_error_words(answer)
        raise Unreadable(f"its answer is an error: {words}" if words else "its answer holds no message")
    completion = read_message(message, choice.get("finish_reason"), answer.get("usage"))
    return replace(completion, served=read_version(answer.get("model"), answer.get("system_fingerprint")))


def read_version(model: object, *marks: object) -> str:
    """Return the version of a model as a server names it: the model, and in brackets its further marks.

    Marks are such as the fingerprint of an answer or the version of the server's program. What is no printable text is
    left out, the rest cut to a length.
    """
    name, *more = (
        text[:MAX_VERSION_CHARS] if isinstance(text, str) and text.isprintable() else "" for text in (model, *marks)
    )
    told = ", ".join(filter(None, more))
    return f"{name} ({told})".strip() if told else name


def read_message(message: Mapping[str, Any], finish: object, usage: object) -> Completion:
    """Return the completion in a message of the OpenAI protocol, from any of the members that servers use.

    Arguments of a tool call count as content: a model that was asked for JSON may answer with a call. A refusal counts
    where there is no other content.
    """
    function = message.get("function_call")
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    arguments = [item.get("arguments") for item in (*functions, function) if isinstance(item, dict)]
    content = _join_texts((message.get("content"), *arguments))
    refusal = "" if content else _join_texts([message.get("refusal")])
    reason = REFUSED if refusal else finish if isinstance(finish, str) else "stop"
    thoughts = _join_texts([message.get("reasoning_content") or message.get("reasoning")])
    return Completion(content or refusal, thoughts, reason, usage if isinstance(usage, dict) else {})


def read_error_words(answer: object) -> str:
    """Return the words of an error of the OpenAI protocol; empty where the answer is none."""
    error = answer.get("error") if isinstance(answer, dict) else None
    words = error.get("message") if isinstance(error, dict) else error
    return _to_text(words)[:MAX_ERROR_BYTES] if error else ""


def _join_texts(values: Iterable[Any]) -> str:
    return "\n".join(filter(None, map(_to_text, values)))


def _to_text(value: Any) -> str:
    """Return a member of a message as text: a text itself, a list as the text of its parts, other values as JSON."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in value]
        return "".join(part for part in parts if isinstance(part, str))
    return json.dumps(value)


def parse_count(value: Any) -> int | None:
    """Return a value as a count of tokens; None where it is not a whole number of 0 or more."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _parse_whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_INTEGER_DIGITS else None
