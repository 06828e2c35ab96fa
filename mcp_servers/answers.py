"""Answers of tools: a JSON object, or a refusal with a hint."""

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
"""Maximum size of an answer's text with its links: a client's model reads it, and clients disconnect at a megabyte."""

Arguments = ParamSpec("Arguments")


def make_result(body: dict[str, Any], *, refused: bool = False, links: Sequence[ResourceLink] = ()) -> CallToolResult:
    """Return a tool result with a JSON object, once as structure and once as compact text, and then the links.

    An answer of over `MAX_ANSWER_BYTES` becomes a refusal, because a client's context or connection could not take it.
    """
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    sent = text.encode(errors="replace")
    size = len(sent) + sum(len(link.model_dump_json(exclude_none=True)) for link in links)
    if size > MAX_ANSWER_BYTES and not refused:
        return make_result(_describe_too_large(size), refused=True)
    if (sound := sent.decode()) != text:
        text, body = sound, json.loads(sound)  # a lone surrogate from an argument cannot be sent
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
    """Turn a function that returns a JSON object into a tool; see `result_tool`."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        return make_result(function(*args, **kwargs))

    return result_tool(call)


def result_tool(function: Callable[Arguments, CallToolResult]) -> Callable[Arguments, CallToolResult]:
    """Turn a function into a tool: an `AlphaloomError` becomes `{code, field, got, allowed, hint, message}`."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return function(*args, **kwargs)
        except AlphaloomError as error:
            return make_result(describe_refusal(error), refused=True)

    call.__annotations__ = {**function.__annotations__, "return": CallToolResult}
    return call


def async_tool(
    function: Callable[Arguments, Awaitable[dict[str, Any]]],
) -> Callable[Arguments, Coroutine[Any, Any, CallToolResult]]:
    """Turn an async function into a tool, which holds no thread while it waits; see `result_tool`."""

    @functools.wraps(function)
    async def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return make_result(await function(*args, **kwargs))
        except AlphaloomError as error:
            return make_result(describe_refusal(error), refused=True)

    call.__annotations__ = {**function.__annotations__, "return": CallToolResult}
    return call


def describe_refusal(error: AlphaloomError) -> dict[str, Any]:
    """Return an error in the form that a caller gets.

    An error of the ledger is reduced to its kind: its text names folders and the content of records.
    """
    return _describe_ledger_error(error) if isinstance(error, LedgerError) else error.record()


def _describe_ledger_error(error: LedgerError) -> dict[str, Any]:
    workspace = isinstance(error, WorkspaceError)
    message = error.placeless if isinstance(error, WorkspaceError) else "the record of this campaign does not allow it"
    hint = error.hint if workspace else "Ask the person who runs the campaign: alphaloom evidence verify tells more."
    return {"code": error.code, "field": "", "got": None, "allowed": None, "hint": hint, "message": message}


def paginate(key: str, rows: Sequence[Any], limit: int, cursor: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{key: rows, "total": int, "next_cursor": str}`, with an empty cursor on the last page.

    Parameters
    ----------
    key : str
        Name of the rows.
    rows : sequence
        All rows.
    limit : int
        Maximum rows of a page.
    cursor : str
        The cursor of the page before; empty for the first page.
    arguments : mapping
        The other arguments of the call: a cursor is valid only with the same ones.

    Raises
    ------
    BadArguments
        The cursor is invalid, or belongs to other arguments.
    """
    question = compute_digest([key, dict(arguments)])[:16]
    first = _decode_cursor(cursor, question) if cursor else 0
    stop = min(first + limit, len(rows))
    next_cursor = base64.urlsafe_b64encode(canonical_json([stop, question]).encode()).decode()
    return {key: list(rows[first:stop]), "total": len(rows), "next_cursor": next_cursor if stop < len(rows) else ""}


def _decode_cursor(cursor: str, question: str) -> int:
    try:
        place, digest = json.loads(base64.b64decode(cursor.encode(), altchars=b"-_", validate=True))
        row = int(place) if digest == question and not isinstance(place, bool) else -1
    except (ValueError, TypeError):
        row = -1
    if row < 0:
        raise BadArguments(
            "This is no cursor of this question.",
            field="cursor",
            got=cursor[:80],
            allowed="next_cursor of the page before",
            hint="Ask again without a cursor.",
        )
    return row
