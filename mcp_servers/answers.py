"""How a tool answers: a JSON object, or a refusal that says what to do."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, ParamSpec

from mcp.types import CallToolResult, TextContent

from ..ledger import AlphaloomError

Arguments = ParamSpec("Arguments")


def answer(body: dict[str, Any], *, refused: bool = False) -> CallToolResult:
    """Return a tool result that carries a JSON object once as structure and once, compact, as text."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=body, is_error=refused)


def tool(function: Callable[Arguments, dict[str, Any]]) -> Callable[Arguments, CallToolResult]:
    """Make a tool of a function: an error of the house becomes `{code, field, got, allowed, hint, message}`."""

    @functools.wraps(function)
    def answered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return answer(function(*args, **kwargs))
        except AlphaloomError as error:
            return answer(error.record(), refused=True)

    answered.__annotations__ = {**function.__annotations__, "return": CallToolResult}
    return answered
