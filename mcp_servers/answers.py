"""How a tool answers: a JSON object, or a refusal that says what to do."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any, ParamSpec

from mcp.types import CallToolResult, TextContent

from ..ledger import AlphaloomError, LedgerError, WorkspaceError

Arguments = ParamSpec("Arguments")


def answer(body: dict[str, Any], *, refused: bool = False) -> CallToolResult:
    """Return a tool result that carries a JSON object once as structure and once, compact, as text."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=body, is_error=refused)


def tool(function: Callable[Arguments, dict[str, Any]]) -> Callable[Arguments, CallToolResult]:
    """Make a tool of a function: an error of the house becomes `{code, field, got, allowed, hint, message}`.

    Of an error of the ledger only the kind is told: its text names folders, and what is kept under a record's key.
    """

    @functools.wraps(function)
    def answered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> CallToolResult:
        try:
            return answer(function(*args, **kwargs))
        except LedgerError as error:
            return answer(_kind(error), refused=True)
        except AlphaloomError as error:
            return answer(error.record(), refused=True)

    answered.__annotations__ = {**function.__annotations__, "return": CallToolResult}
    return answered


def _kind(error: LedgerError) -> dict[str, Any]:
    workspace = isinstance(error, WorkspaceError)
    told = error.placeless if isinstance(error, WorkspaceError) else "the record of this campaign does not allow it"
    hint = error.hint if workspace else "Ask the person who runs the campaign: alphaloom evidence verify tells more."
    return {"code": error.code, "field": "", "got": None, "allowed": None, "hint": hint, "message": told}
