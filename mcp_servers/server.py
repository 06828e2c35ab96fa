"""A server that refuses wrong arguments in the words of the house: what was wrong, what is allowed, what to do."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError as SdkToolError
from mcp.types import CallToolResult, InputRequiredResult, Tool
from pydantic import ValidationError

from ..ledger import AlphaloomError, LedgerError
from .answers import answer
from .entry import Entry
from .errors import BadArguments, ToolFailed, UnknownTool

LONGEST = 100
LOG = logging.getLogger(__name__)


class ToolServer(MCPServer):
    """An `MCPServer` whose refusals are all `{code, field, got, allowed, hint, message}`.

    The SDK answers a wrong argument with pydantic's own text, ignores one that the tool does not have, and says of an
    unknown tool only that it is unknown. With an `entry` it serves one caller: it lists what that one may call, refuses the
    rest, and answers nothing that is not on record.
    """

    def __init__(
        self, name: str, *, instructions: str, entry: Entry | None = None, scopes: Mapping[str, str] | None = None
    ) -> None:
        """Begin without tools; `scopes` says what each tool asks of a caller."""
        super().__init__(name, instructions=instructions)
        self.entry = entry
        self._scopes = dict(scopes or {})

    async def list_tools(self) -> list[Tool]:
        """Return the tools that the caller may call."""
        listed = await super().list_tools()
        if self.entry is None:
            return listed
        return [tool for tool in listed if self.entry.refusal(tool.name, self._scopes.get(tool.name)) is None]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; what its schema or the caller's scopes refuse comes back as a refusal like any other."""
        if self.entry is None:
            return await self._called(name, arguments, context)
        began, found = self.entry.seconds(), None
        try:
            found = await self._called(name, arguments, context)
        finally:
            kept = found if isinstance(found, CallToolResult) else None
            unkept = self._unkept(self.entry, name, arguments, kept, began)
        return unkept or found

    def _unkept(
        self, entry: Entry, name: str, arguments: dict[str, Any], result: CallToolResult | None, began: float
    ) -> CallToolResult | None:
        """Write a call down; return what is answered in its place where it cannot be."""
        try:
            entry.write(self.name, name, arguments, result, began)
        except LedgerError as error:
            return _refused(error)
        return None

    async def _called(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        schemas = {tool.name: tool.input_schema for tool in await super().list_tools()}
        if name not in schemas:
            return _refused(_unknown_tool(name, sorted(tool.name for tool in await self.list_tools())))
        missing = self.entry.refusal(name, self._scopes.get(name)) if self.entry else None
        if missing is not None:
            return _refused(missing)
        takes = sorted(schemas[name].get("properties", {}))
        strange = sorted({*arguments} - {*takes})
        if strange:
            return _refused(_unknown_argument(name, strange[0], takes))
        try:
            return await super().call_tool(name, arguments, context)
        except SdkToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return _refused(_wrong(name, error.__cause__.errors(include_url=False)))
            if self.entry is None:
                raise
            LOG.exception("%s of %s failed", name, self.name)
            return _refused(
                ToolFailed(f"{name} failed, by no fault of yours.", field=name, hint="Ask who runs the server.")
            )


def _refused(error: AlphaloomError) -> CallToolResult:
    return answer(error.record(), refused=True)


def _unknown_tool(name: str, known: Sequence[str]) -> UnknownTool:
    return UnknownTool(
        f"This server has no tool {name[:LONGEST]!r}.", field="name", got=name[:LONGEST], allowed=list(known),
        hint=_nearest(name, known),
    )  # fmt: skip


def _unknown_argument(tool: str, name: str, takes: Sequence[str]) -> BadArguments:
    return BadArguments(
        f"{tool} takes no argument {name[:LONGEST]!r}.", field=name[:LONGEST], allowed=list(takes),
        hint=_nearest(name, takes),
    )  # fmt: skip


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}?" if close else ""


def _wrong(tool: str, errors: Sequence[Mapping[str, Any]]) -> BadArguments:
    """Say every mistake; field, got and allowed are those of the first."""
    found = [(".".join(str(part) for part in error["loc"]), error) for error in errors]
    field, first = found[0]
    said = "; ".join(f"{where or 'arguments'}: {_allowed(error)}" for where, error in found)
    got = None if first["type"] == "missing" else _short(first["input"])
    hint = "The tool's input schema lists its arguments and their bounds."
    return BadArguments(f"{tool} was called wrongly: {said}", field=field, got=got, allowed=_allowed(first), hint=hint)


def _allowed(error: Mapping[str, Any]) -> str:
    """Return what pydantic says should be, without naming its own types."""
    if error["type"] == "missing":
        return "must be given"
    plain = (
        str(error["msg"])
        .partition(", unable to parse")[0]
        .replace(" after validation", "")
        .removeprefix("Value error, ")
    )
    return re.sub(r"^\w+ should ", "must ", plain)


def _short(value: object) -> object:
    """Return a value that is not too long to be repeated."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) > LONGEST:
        return text[:LONGEST] + "..."
    return value
