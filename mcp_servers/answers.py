"""How a tool answers: a JSON object, or a refusal that says what to do."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, ParamSpec

from mcp.types import CallToolResult, ContentBlock, ResourceLink, TextContent

from ..ledger import AlphaloomError, LedgerError, WorkspaceError, canonical_json, compute_digest
from .errors import BadArguments, McpServerError

MAX_ANSWER_BYTES = 200_000
"""Of an answer as text, with its links: a client's model reads it, and a client's connection ends at a megabyte."""

Arguments = ParamSpec("Arguments")


def make_result(body: dict[str, Any], *, refused: bool = False, links: Sequence[ResourceLink] = ()) -> CallToolResult:
    """Return a tool result that carries a JSON object once as structure and once, compact, as text; links come after it.

    What is larger than `MAX_ANSWER_BYTES` is refused: a client's context, or its connection, would not hold it.
    """
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    sent = text.encode(errors="replace")
    size = len(sent) + sum(len(link.model_dump_json(exclude_none=True)) for link in links)
    if size > MAX_ANSWER_BYTES and not refused:
        return make_result(_describe_too_large(size), refused=True)
    if (sound := sent.decode()) != text:
        text, body = sound, json.loads(sound)  # half a character, repeated from an argument, cannot be sent
    content: list[ContentBlock] = [TextContent(type="text", text=text), *links]
    return CallToolResult(content=content, structured_content=body, is_error=refused)


def _describe_too_large(size: int) -> dict[str, Any]:
    return McpServerError(
        f"The answer has {size:,} bytes.",
        field="limit",
        got=size,
        allowed=MAX_ANSWER_BYTES,
        hint="Ask for less of it.",
        code="too_much",
    ).record()


def json_tool(function: Callable[Arguments, dict[str, Any]]) -> Callable[Arguments, CallToolResult]:
    """Make a tool of a function that returns a JSON object; see `result_tool`."""

    @functools.wraps(function)
    def answered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        return make_result(function(*args, **kwargs))

    return result_tool(answered)


def result_tool(function: Callable[Arguments, CallToolResult]) -> Callable[Arguments, CallToolResult]:
    """Make a tool of a function: an error of the house becomes `{code, field, got, allowed, hint, message}`."""

    @functools.wraps(function)
    def answered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return function(*args, **kwargs)
        except AlphaloomError as error:
            return make_result(describe_refusal(error), refused=True)

    answered.__annotations__ = {**function.__annotations__, "return": CallToolResult}
    return answered


def async_tool(
    function: Callable[Arguments, Awaitable[dict[str, Any]]],
) -> Callable[Arguments, Coroutine[Any, Any, CallToolResult]]:
    """Make a tool of a function that waits, and holds no thread meanwhile; see `result_tool`."""

    @functools.wraps(function)
    async def answered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return make_result(await function(*args, **kwargs))
        except AlphaloomError as error:
            return make_result(describe_refusal(error), refused=True)

    answered.__annotations__ = {**function.__annotations__, "return": CallToolResult}
    return answered


def describe_refusal(error: AlphaloomError) -> dict[str, Any]:
    """Return an error as a caller is told it.

    Of an error of the ledger only the kind is told: its text names folders, and what is kept under a record's key.
    """
    return _describe_ledger_error(error) if isinstance(error, LedgerError) else error.record()


def _describe_ledger_error(error: LedgerError) -> dict[str, Any]:
    workspace = isinstance(error, WorkspaceError)
    told = error.placeless if isinstance(error, WorkspaceError) else "the record of this campaign does not allow it"
    hint = error.hint if workspace else "Ask the person who runs the campaign: alphaloom evidence verify tells more."
    return {"code": error.code, "field": "", "got": None, "allowed": None, "hint": hint, "message": told}


def paginate(key: str, rows: Sequence[Any], limit: int, cursor: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{key: rows, "total": int, "next_cursor": str}`, with an empty cursor on the last page.

    Parameters
    ----------
    key : str
        What the rows are called.
    rows : sequence
        All of them.
    limit : int
        Rows of a page.
    cursor : str
        The cursor of the page before; empty for the first.
    asked : mapping
        The other arguments: a cursor of another question is refused.

    Raises
    ------
    BadArguments
        It is no cursor, or that of another question.
    """
    question = compute_digest([key, dict(asked)])[:16]
    first = _decode_cursor(cursor, question) if cursor else 0
    there = min(first + limit, len(rows))
    follows = base64.urlsafe_b64encode(canonical_json([there, question]).encode()).decode()
    return {key: list(rows[first:there]), "total": len(rows), "next_cursor": follows if there < len(rows) else ""}


def _decode_cursor(cursor: str, question: str) -> int:
    try:
        place, of = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
        found = int(place) if of == question and not isinstance(place, bool) else -1
    except (ValueError, TypeError):
        found = -1
    if found < 0:
        raise BadArguments(
            "This is no cursor of this question.", field="cursor", got=cursor[:80], allowed="next_cursor of the page before",
            hint="Ask again without a cursor.",
        )  # fmt: skip
    return found
