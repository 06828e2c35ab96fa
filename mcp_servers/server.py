"""A server that refuses wrong arguments in the words of the house: what was wrong, what is allowed, what to do."""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
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

MAX_ECHOED_CHARS = 100
COMPLETION_METHOD = "completion/complete"
T = TypeVar("T")
Complete = Callable[
    [PromptReference | ResourceTemplateReference, CompletionArgument, CompletionContext | None], Awaitable[Completion]
]
LOG = logging.getLogger(__name__)


class ToolServer(MCPServer):
    """An `MCPServer` whose refusals are all `{code, field, got, allowed, hint, message}`.

    The SDK answers a wrong argument with pydantic's own text, ignores one that the tool does not have, and says of an
    unknown tool only that it is unknown. It serves one caller: it lists what that one may call, refuses the rest, and answers
    nothing that is not on record.
    """

    def __init__(
        self, name: str, *, instructions: str, entry: CallerEntry, scopes: Mapping[str, str], reading: str
    ) -> None:
        """Begin without tools; `scopes` says what each tool asks of a caller, `reading` what resources and prompts ask.

        No notice of changes is promised: what is listed stays as it is, and nobody need wait on an open stream for more.
        """
        # The SDK sets up the log of the whole process: at its own level, a terminal hears of each request to a model, too.
        super().__init__(
            name, instructions=instructions, version=version("alphaloom"), subscriptions=False, log_level="WARNING"
        )
        self.entry = entry
        self.beside: tuple[ToolServer, ...] = ()
        """Servers that answer on the same connection: what is refused as unknown names theirs too."""
        self.completes: Complete | None = None
        self._scopes, self._reading = dict(scopes), reading
        self._schemas: dict[str, dict[str, Any]] = {}

    async def list_tools(self) -> list[Tool]:
        """Return the tools that the caller may call."""
        listed = await super().list_tools()
        return [tool for tool in listed if self.entry.refusal(tool.name, self._scopes.get(tool.name)) is None]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; what its schema or the caller's scopes refuse comes back as a refusal like any other."""
        began, found = self.entry.seconds(), None
        try:
            with self.entry.in_flight.count():
                try:
                    found = await self._dispatch(name, arguments, context)
                finally:
                    kept = found if isinstance(found, CallToolResult) else None
                    unkept = self._record_call(name, arguments, kept, began)
        except ServersEnd as error:
            return _refusal_result(error)
        return unkept or found

    def complete_with(self, complete: Complete) -> None:
        """Complete arguments of prompts and addresses by a function, for those who may read here."""

        async def allowed(
            ref: PromptReference | ResourceTemplateReference,
            argument: CompletionArgument,
            more: CompletionContext | None,
        ) -> Completion:
            began, found = self.entry.seconds(), Completion(values=[], total=0, has_more=False)
            code = "" if self.entry.caller.allows(self._reading) else ScopeMissing.code
            refusal: AlphaloomError | None = None
            try:
                found = found if code else await complete(ref, argument, more)
            except Exception as error:  # noqa: BLE001 - as of tools: a refusal for the caller, the reason for the log
                refusal = _explain_failure(error, COMPLETION_METHOD)
                code = refusal.code
            asked = {"name": argument.name, "value": argument.value}
            try:
                self.entry.record_reading(
                    self.name, COMPLETION_METHOD, asked, found.model_dump_json().encode(), began, code
                )
            except LedgerError as error:
                refusal = error
            if refusal is not None:
                record = describe_refusal(refusal)
                raise MCPError(code=INVALID_PARAMS, message=str(record["message"]), data=record)
            return found

        self.completes = allowed
        self.completion()(allowed)  # type: ignore[no-untyped-call]

    async def has_tool(self, name: str) -> bool:
        """Tell whether it has a tool, whoever may call it."""
        return name in await self._read_schemas()

    async def has_prompt(self, name: str) -> bool:
        """Tell whether it has a prompt, whoever may use it."""
        return name in {prompt.name for prompt in await super().list_prompts()}

    async def has_resource(self, uri: str) -> bool:
        """Tell whether an address is of its kind, whoever may read it."""
        templates = [template.uri_template.partition("{")[0] for template in await super().list_resource_templates()]
        return uri in {str(one.uri) for one in await super().list_resources()} or uri.startswith(tuple(templates))

    async def list_resources(self) -> list[Resource]:
        """Return the resources that the caller may read."""
        return await super().list_resources() if self.entry.caller.allows(self._reading) else []

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """Return the kinds of resources that the caller may read."""
        return await super().list_resource_templates() if self.entry.caller.allows(self._reading) else []

    async def list_prompts(self) -> list[Prompt]:
        """Return the prompts that the caller may use."""
        return await super().list_prompts() if self.entry.caller.allows(self._reading) else []

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Return a resource; what cannot be had is refused like a tool's arguments."""

        async def read() -> Iterable[ReadResourceContents] | InputRequiredResult:
            return await super(ToolServer, self).read_resource(uri, context)

        return await self._read_recorded("resources/read", {"uri": str(uri)}, read, _contents)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt, written out."""

        async def written() -> GetPromptResult | InputRequiredResult:
            if not await self.has_prompt(name):
                listed = [prompt.name for server in (self, *self.beside) for prompt in await server.list_prompts()]
                raise _unknown_tool_error("prompt", name, listed)
            return await super(ToolServer, self).get_prompt(name, arguments, context)

        return await self._read_recorded("prompts/get", {"name": name, **(arguments or {})}, written, _messages)

    async def _read_recorded(
        self, what: str, asked: Mapping[str, Any], reading: Callable[[], Awaitable[T]], body: Callable[[T], bytes]
    ) -> T:
        """Return what is read and write that down, or refuse in the words of the house and write that down."""
        began = self.entry.seconds()
        refusal: AlphaloomError | None = self.entry.refusal(what, self._reading)
        found: T | None = None
        try:
            found = await reading() if refusal is None else None
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets a refusal, and the log the reason
            refusal = _explain_failure(error, what)
        try:
            code = refusal.code if refusal else ""
            self.entry.record_reading(self.name, what, asked, None if found is None else body(found), began, code)
        except LedgerError as error:
            refusal = error
        if refusal is not None or found is None:
            record = describe_refusal(
                refusal or McpServerError(f"{what} failed.", field=what, code="failed", exit_code=1)
            )
            named = {"uri": asked["uri"]} if what == "resources/read" else {}  # clients tell by it which reading failed
            raise MCPError(code=INVALID_PARAMS, message=str(record["message"]), data=record | named)
        return found

    def _record_call(
        self, name: str, arguments: dict[str, Any], result: CallToolResult | None, began: float
    ) -> CallToolResult | None:
        """Write a call down; return what is answered in its place where it cannot be."""
        try:
            self.entry.record_call(self.name, name, arguments, result, began)
        except LedgerError as error:
            return _refusal_result(error)
        return None

    async def _read_schemas(self) -> dict[str, dict[str, Any]]:
        """Return each tool's schema by its name; they are written once: no tool comes after the first call."""
        if not self._schemas:
            self._schemas = {tool.name: tool.input_schema for tool in await super().list_tools()}
        return self._schemas

    async def _dispatch(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None
    ) -> CallToolResult | InputRequiredResult:
        schemas = await self._read_schemas()
        if name not in schemas:
            listed = [tool.name for server in (self, *self.beside) for tool in await server.list_tools()]
            return _refusal_result(_unknown_tool_error("tool", name, sorted(listed)))
        missing = self.entry.refusal(name, self._scopes.get(name))
        if missing is not None:
            return _refusal_result(missing)
        strange = {*arguments} - {*schemas[name].get("properties", {})}
        if strange:  # before anything walks through the values: there may be any number of them
            return _refusal_result(unknown_argument_error(name, strange, arguments, schemas[name]))
        if (broken := _find_broken_text(arguments)) is not None:
            return _refusal_result(broken)
        try:
            return await super().call_tool(name, arguments, context)
        except SdkToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return _refusal_result(
                    _wrong_argument_error(name, error.__cause__.errors(include_url=False), schemas[name])
                )
            LOG.exception("%s of %s failed", name, self.name)
            return _refusal_result(_failed_error(name))


def _refusal_result(error: AlphaloomError) -> CallToolResult:
    return make_result(describe_refusal(error), refused=True)


def _contents(found: Iterable[ReadResourceContents] | InputRequiredResult) -> bytes:
    """Return what a resource told, as it is weighed and digested."""
    parts = () if isinstance(found, InputRequiredResult) else found
    return b"".join(part.content.encode() if isinstance(part.content, str) else part.content for part in parts)


def _messages(found: GetPromptResult | InputRequiredResult) -> bytes:
    return found.model_dump_json().encode()


def _explain_failure(error: Exception, what: str) -> AlphaloomError:
    """Return what a caller is told of an error met while a resource or a prompt was made."""
    causes = [error, error.__cause__, error.__cause__.__cause__ if error.__cause__ else None]
    for cause in causes:
        if isinstance(cause, AlphaloomError):
            return cause
        if isinstance(cause, ResourceNotFoundError):
            return McpServerError(
                "This server has no such resource.", field="uri",
                hint="resources/list and resources/templates/list tell what there is.", code="unknown_resource",
            )  # fmt: skip
        if isinstance(cause, ValidationError):
            return _wrong_argument_error(what, cause.errors(include_url=False))
    if isinstance(error, ValueError):  # the SDK's, of a prompt's arguments
        return BadArguments(f"{what} was called wrongly: {str(error)[:MAX_ECHOED_CHARS]}", field="arguments")
    LOG.error("%s failed", what, exc_info=error)
    return _failed_error(what)


def _failed_error(what: str) -> McpServerError:
    said, hint = f"{what} failed, by no fault of yours.", "Ask who runs the server."
    return McpServerError(said, field=what, hint=hint, code="failed", exit_code=1)


def _unknown_tool_error(kind: str, name: str, known: Sequence[str]) -> McpServerError:
    return McpServerError(
        f"This server has no {kind} {name[:MAX_ECHOED_CHARS]!r}.", field="name", got=name[:MAX_ECHOED_CHARS], allowed=list(known),
        hint=_suggest_nearest(name, known), code="unknown_tool",
    )  # fmt: skip


def _find_broken_text(arguments: Mapping[str, Any]) -> BadArguments | None:
    """Return why arguments are no text that could be kept or sent; None where they are."""
    for name, value in arguments.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return BadArguments(
                f"{name[:MAX_ECHOED_CHARS]} holds half a character.".encode(errors="replace").decode(), field="arguments",
                allowed="text that is valid Unicode", hint="Leave lone surrogates out.",
            )  # fmt: skip
        except (TypeError, ValueError, RecursionError):
            pass  # the schema says what is wrong with it
    return None


def _suggest_nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name[:MAX_ECHOED_CHARS], known, n=1)
    return f"Did you mean {close[0]}?" if close else ""


def _wrong_argument_error(
    tool: str, errors: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] = MappingProxyType({})
) -> BadArguments:
    """Say every mistake; field, got and allowed are those of the first."""
    found = [(".".join(str(part) for part in error["loc"]), error) for error in errors]
    field, first = found[0]
    said = "; ".join(f"{where or 'arguments'}: {_describe_rule(error)}" for where, error in found)
    told = f"{tool} was called wrongly: {said}"
    if first["type"] == "missing" and field in schema.get("required", ()):
        return BadArguments(told, field=field, **describe_missing(first["input"], schema))
    got = None if first["type"] == "missing" else _shorten_value(first["input"])
    hint = _guess_word(first) or "The tool's input schema lists its arguments and their bounds."
    return BadArguments(told, field=field, got=got, allowed=_describe_rule(first), hint=hint)


def _guess_word(error: Mapping[str, Any]) -> str:
    """Return which of the allowed words was probably meant."""
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    return _suggest_nearest(error["input"], re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", ""))))


def _describe_rule(error: Mapping[str, Any]) -> str:
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


def _shorten_value(value: object) -> object:
    """Return a value that is not too long to be repeated."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_ECHOED_CHARS:
        return text[:MAX_ECHOED_CHARS] + "..."
    return value
