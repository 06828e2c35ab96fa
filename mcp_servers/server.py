"""A server whose refusals state the mistake, the allowed values and a hint."""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, TypeVar

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError as SdkToolError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    PromptReference,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    Tool,
)
from pydantic import AnyUrl, ValidationError

from ..ledger import AlphaloomError, LedgerError
from .answers import describe_refusal, make_result
from .arguments import describe_missing, unknown_argument_error
from .errors import BadArguments, McpServerError, ScopeMissing, ServersEnd
from .served_caller import CallerEntry
from .tool_schemas import JsonSchema, publish_schema, share_definitions, show_call

MAX_ECHOED_CHARS = 100
COMPLETION_METHOD = "completion/complete"
CODES_OF_ARGUMENTS = frozenset({BadArguments.code, "formula", "unknown_factor"})
"""Codes of refusals that concern an argument, whatever field they name."""
T = TypeVar("T")
Complete = Callable[
    [PromptReference | ResourceTemplateReference, CompletionArgument, CompletionContext | None], Awaitable[Completion]
]
LOG = logging.getLogger(__name__)


class ToolServer(MCPServer):
    """An `MCPServer` whose refusals are all `{code, field, got, allowed, hint, message}`.

    The SDK answers a wrong argument with pydantic's text, ignores an unknown argument, and does not name the known
    tools. A server has one caller: it lists only what that caller may call, refuses the rest, and records every call
    before the answer.
    """

    def __init__(
        self,
        name: str,
        *,
        instructions: str,
        entry: CallerEntry,
        scopes: Mapping[str, str],
        reading: str,
        answers: Mapping[str, JsonSchema] = MappingProxyType({}),
    ) -> None:
        """Start without tools.

        `scopes` has the scope that each tool requires, `reading` the scope of resources and prompts, `answers` the
        schema of each tool's answer. No change notifications are offered, since the lists never change and no client
        needs to hold a stream open.
        """
        # The SDK sets the log level of the whole process; its default logs every request to a model on the terminal.
        super().__init__(
            name, instructions=instructions, version=version("alphaloom"), subscriptions=False, log_level="WARNING"
        )
        self.entry = entry
        self.beside: tuple[ToolServer, ...] = ()
        """Servers on the same connection; the refusal of an unknown name lists their names too."""
        self.completes: Complete | None = None
        self._scopes, self._reading, self._answers = dict(scopes), reading, answers
        self._tools: dict[str, Tool] = {}
        self._schemas: dict[str, JsonSchema] = {}

    async def list_tools(self) -> list[Tool]:
        """Return the tools that the caller may call."""
        listed = (await self._read_tools()).values()
        return [
            tool for tool in listed if self.entry.caller.check_scope(tool.name, self._scopes.get(tool.name)) is None
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; mistakes in its arguments and missing scopes become refusals."""
        began, result = self.entry.seconds(), None
        try:
            with self.entry.in_flight.count():
                try:
                    result = await self._dispatch(name, arguments, context)
                finally:
                    recorded = result if isinstance(result, CallToolResult) else None
                    refusal = self._record_call(name, arguments, recorded, began)
        except ServersEnd as error:
            return _build_refusal(error)
        return refusal or result

    def complete_with(self, complete: Complete) -> None:
        """Complete arguments of prompts and addresses with a function, if the caller may read here."""

        async def complete_allowed(
            ref: PromptReference | ResourceTemplateReference,
            argument: CompletionArgument,
            more: CompletionContext | None,
        ) -> Completion:
            began, completion = self.entry.seconds(), Completion(values=[], total=0, has_more=False)
            code = "" if self.entry.caller.allows(self._reading) else ScopeMissing.code
            refusal: AlphaloomError | None = None
            try:
                completion = completion if code else await complete(ref, argument, more)
            except Exception as error:  # noqa: BLE001 - as for tools: a refusal for the caller, the reason for the log
                refusal = _explain_failure(error, COMPLETION_METHOD)
                code = refusal.code
            arguments = {"name": argument.name, "value": argument.value}
            try:
                self.entry.record_reading(
                    self.name, COMPLETION_METHOD, arguments, completion.model_dump_json().encode(), began, code
                )
            except LedgerError as error:
                refusal = error
            if refusal is not None:
                record = describe_refusal(refusal)
                raise MCPError(code=INVALID_PARAMS, message=str(record["message"]), data=record)
            return completion

        self.completes = complete_allowed
        self.completion()(complete_allowed)  # type: ignore[no-untyped-call]

    async def has_tool(self, name: str) -> bool:
        """Return whether it has a tool, allowed or not."""
        return name in await self._read_tools()

    async def has_prompt(self, name: str) -> bool:
        """Return whether it has a prompt, allowed or not."""
        return name in {prompt.name for prompt in await super().list_prompts()}

    async def has_resource(self, uri: str) -> bool:
        """Return whether it has the resource of an address, allowed or not."""
        templates = [template.uri_template.partition("{")[0] for template in await super().list_resource_templates()]
        return uri in {str(one.uri) for one in await super().list_resources()} or uri.startswith(tuple(templates))

    async def list_resources(self) -> list[Resource]:
        """Return the resources that the caller may read."""
        return await super().list_resources() if self.entry.caller.allows(self._reading) else []

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return the resource templates that the caller may read."""
        return await super().list_resource_templates() if self.entry.caller.allows(self._reading) else []

    async def list_prompts(self) -> list[Prompt]:
        """Return the prompts that the caller may use."""
        return await super().list_prompts() if self.entry.caller.allows(self._reading) else []

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Return a resource; a failure is refused as in a tool."""

        async def read() -> Iterable[ReadResourceContents] | InputRequiredResult:
            return await super(ToolServer, self).read_resource(uri, context)

        return await self._read_recorded("resources/read", {"uri": str(uri)}, read, _join_contents)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt with its arguments filled in."""

        async def write() -> GetPromptResult | InputRequiredResult:
            if not await self.has_prompt(name):
                listed = [prompt.name for server in (self, *self.beside) for prompt in await server.list_prompts()]
                raise _build_unknown_error("prompt", name, listed)
            return await super(ToolServer, self).get_prompt(name, arguments, context)

        return await self._read_recorded("prompts/get", {"name": name, **(arguments or {})}, write, _encode_messages)

    async def _read_recorded(
        self, what: str, arguments: Mapping[str, Any], reading: Callable[[], Awaitable[T]], body: Callable[[T], bytes]
    ) -> T:
        """Return the content and record the reading; record a refusal and raise it."""
        began = self.entry.seconds()
        refusal: AlphaloomError | None = self.entry.caller.check_scope(what, self._reading)
        content: T | None = None
        try:
            content = await reading() if refusal is None else None
        except Exception as error:  # noqa: BLE001 - any error becomes a refusal for the caller, with the reason in the log
            refusal = _explain_failure(error, what)
        try:
            code = refusal.code if refusal else ""
            self.entry.record_reading(
                self.name, what, arguments, None if content is None else body(content), began, code
            )
        except LedgerError as error:
            refusal = error
        if refusal is not None or content is None:
            record = describe_refusal(
                refusal or McpServerError(f"{what} failed.", field=what, code="failed", exit_code=1)
            )
            named = {"uri": arguments["uri"]} if what == "resources/read" else {}  # shows clients which reading failed
            raise MCPError(code=INVALID_PARAMS, message=str(record["message"]), data=record | named)
        return content

    def _record_call(
        self, name: str, arguments: dict[str, Any], result: CallToolResult | None, began: float
    ) -> CallToolResult | None:
        """Record a call; if that fails, return the refusal to answer instead."""
        try:
            self.entry.record_call(self.name, name, arguments, result, began)
        except LedgerError as error:
            return _build_refusal(error)
        return None

    async def _read_tools(self) -> dict[str, Tool]:
        """Return each tool by name, as it is published; cached, since no tool is added after the first call."""
        if not self._tools:
            listed = await super().list_tools()
            self._schemas = {tool.name: tool.input_schema for tool in listed}
            shared = share_definitions({name: publish_schema(schema) for name, schema in self._schemas.items()})
            self._tools = {tool.name: self._publish(tool, shared[tool.name]) for tool in listed}
        return self._tools

    def _publish(self, tool: Tool, schema: JsonSchema) -> Tool:
        """Return a tool with a description without indents, and schemas with no more than a caller needs."""
        written = self._answers.get(tool.name, tool.output_schema)
        schemas = {"input_schema": schema, "output_schema": written and dict(written)}
        return tool.model_copy(update={"description": cleandoc(tool.description or ""), **schemas})

    async def _dispatch(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        tools = await self._read_tools()
        if name not in tools:
            listed = [tool.name for server in (self, *self.beside) for tool in await server.list_tools()]
            return _build_refusal(_build_unknown_error("tool", name, sorted(listed)))
        if (missing := self.entry.caller.check_scope(name, self._scopes.get(name))) is not None:
            return _build_refusal(missing)
        result = await self._call_checked(tools[name], arguments, context)
        if isinstance(result, CallToolResult) and result.is_error:
            return _add_example(result, name, self._schemas[name])
        return result

    async def _call_checked(
        self, tool: Tool, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool that the caller may call; mistakes in its arguments become refusals."""
        name, schema = tool.name, tool.input_schema
        strange = {*arguments} - {*schema.get("properties", {})}
        if strange:  # before the values are read: there may be any number of them
            return _build_refusal(unknown_argument_error(name, strange, arguments, schema))
        if (broken := _find_broken_text(arguments)) is not None:
            return _build_refusal(broken)
        try:
            return await super().call_tool(name, arguments, context)
        except SdkToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return _build_refusal(_build_argument_error(name, error.__cause__.errors(include_url=False), schema))
            LOG.exception("%s of %s failed", name, self.name)
            return _build_refusal(_build_failure(name))


def _build_refusal(error: AlphaloomError) -> CallToolResult:
    return make_result(describe_refusal(error), refused=True)


def _add_example(refusal: CallToolResult, tool: str, schema: JsonSchema) -> CallToolResult:
    """Return a refusal of a call's arguments with an example of a right call at the end of its hint."""
    body = dict(refusal.structured_content or {})
    argument = str(body.get("field") or "").partition(".")[0]
    if argument not in schema.get("properties", {}) and body.get("code") not in CODES_OF_ARGUMENTS:
        return refusal
    hint = f"{body.get('hint') or ''} Example: {show_call(tool, schema, argument)}".strip()
    return make_result(body | {"hint": hint}, refused=True)


def _join_contents(result: Iterable[ReadResourceContents] | InputRequiredResult) -> bytes:
    """Return the bytes of a resource, for its size and digest in the record."""
    parts = () if isinstance(result, InputRequiredResult) else result
    return b"".join(part.content.encode() if isinstance(part.content, str) else part.content for part in parts)


def _encode_messages(result: GetPromptResult | InputRequiredResult) -> bytes:
    return result.model_dump_json().encode()


def _explain_failure(error: Exception, what: str) -> AlphaloomError:
    """Return the refusal for an error in a resource or a prompt."""
    causes = [error, error.__cause__, error.__cause__.__cause__ if error.__cause__ else None]
    for cause in causes:
        if isinstance(cause, AlphaloomError):
            return cause
        if isinstance(cause, ResourceNotFoundError):
            return McpServerError(
                "This server has no such resource.",
                field="uri",
                hint="resources/list and resources/templates/list tell what there is.",
                code="unknown_resource",
            )
        if isinstance(cause, ValidationError):
            return _build_argument_error(what, cause.errors(include_url=False))
    if isinstance(error, ValueError):  # raised by the SDK for a prompt's arguments
        return BadArguments(f"{what} was called wrongly: {str(error)[:MAX_ECHOED_CHARS]}", field="arguments")
    LOG.error("%s failed", what, exc_info=error)
    return _build_failure(what)


def _build_failure(what: str) -> McpServerError:
    message, hint = f"{what} failed, by no fault of yours.", "Ask who runs the server."
    return McpServerError(message, field=what, hint=hint, code="failed", exit_code=1)


def _build_unknown_error(kind: str, name: str, names: Sequence[str]) -> McpServerError:
    return McpServerError(
        f"This server has no {kind} {name[:MAX_ECHOED_CHARS]!r}.",
        field="name",
        got=name[:MAX_ECHOED_CHARS],
        allowed=list(names),
        hint=_suggest_nearest(name, names),
        code="unknown_tool",
    )


def _find_broken_text(arguments: Mapping[str, Any]) -> BadArguments | None:
    """Return the refusal of arguments with lone surrogates, which can be neither recorded nor sent; None if valid."""
    for name, value in arguments.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return BadArguments(
                f"{name[:MAX_ECHOED_CHARS]} holds half a character.".encode(errors="replace").decode(),
                field="arguments",
                allowed="text that is valid Unicode",
                hint="Leave lone surrogates out.",
            )
        except (TypeError, ValueError, RecursionError):
            pass  # the schema reports the mistake
    return None


def _suggest_nearest(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name[:MAX_ECHOED_CHARS], names, n=1)
    return f"Did you mean {close[0]}?" if close else ""


def _build_argument_error(
    tool: str, errors: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] = MappingProxyType({})
) -> BadArguments:
    """Return a refusal with every mistake; field, got and allowed are those of the first."""
    mistakes = [(".".join(str(part) for part in error["loc"]), error) for error in errors]
    field, first = mistakes[0]
    rules = "; ".join(f"{where or 'arguments'}: {_describe_rule(error)}" for where, error in mistakes)
    message = f"{tool} was called wrongly: {rules}"
    if first["type"] == "missing" and field in schema.get("required", ()):
        return BadArguments(message, field=field, **describe_missing(first["input"], schema))
    value = None if first["type"] == "missing" else _shorten_value(first["input"])
    hint = _guess_word(first) or "The tool's input schema has the allowed values."
    return BadArguments(message, field=field, got=value, allowed=_describe_rule(first), hint=hint)


def _guess_word(error: Mapping[str, Any]) -> str:
    """Return the allowed word that was probably meant; empty if none."""
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    return _suggest_nearest(error["input"], re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", ""))))


def _describe_rule(error: Mapping[str, Any]) -> str:
    """Return pydantic's rule without the names of its types."""
    if error["type"] == "missing":
        return "must be given"
    plain = (
        str(error["msg"])
        .partition(", unable to parse")[0]
        .replace(" after validation", "")
        .removeprefix("Value error, ")
    )
    return re.sub(r"^\w+ should ", "must ", plain)


def _shorten_value(value: object) -> object:
    """Return a value, cut if it is too long to repeat."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_ECHOED_CHARS:
        return text[:MAX_ECHOED_CHARS] + "..."
    return value
