"""A server of our own class with the tools, resources and prompts that the conformance suite asks for by name.

What it shows is that nothing of `ToolServer` and `web` (refusals, record, scopes, one server for each caller) stands in
the way of what the protocol allows. Everything is answered as the suite's descriptions say, as shortly as they allow.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp.types import (
    AudioContent,
    CallToolResult,
    Completion,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import Field

from alphaloom.mcp_servers.access import Scope
from alphaloom.mcp_servers.served_caller import CallerEntry, ServedCaller
from alphaloom.mcp_servers.server import ToolServer

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
SCHEMA_TOOL = "json_schema_2020_12_tool"
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"}, "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"required": ["address"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
STRING = {"type": "string"}
Either = CallToolResult | InputRequiredResult


class Open(CallerEntry):
    """Refuses nothing: the suite's tools ask for no scope, and what asks for none is nobody's."""

    def refusal(self, tool: str, scope: str | None) -> None:
        return None


class FixtureServer(ToolServer):
    """Shows one tool with a schema that no Python signature has."""

    async def list_tools(self) -> list[Tool]:
        listed = await super().list_tools()
        return [
            tool.model_copy(update={"input_schema": SCHEMA}) if tool.name == SCHEMA_TOOL else tool for tool in listed
        ]


def fixture_server(served: ServedCaller) -> ToolServer:
    """Return the server that the suite asks for."""
    server = FixtureServer(
        "fixture",
        instructions="For a test suite.",
        entry=Open(served.entry.caller, served.entry.record),
        scopes={},
        reading=Scope.DATA_READ,
    )
    for add in (_add_contents, _add_questions, _add_rounds, _add_resources, _add_prompts):
        add(server)
    return server


def said(*content: ContentBlock | str) -> CallToolResult:
    parts = [TextContent(type="text", text=part) if isinstance(part, str) else part for part in content]
    return CallToolResult(content=parts)


def embedded(uri: str, text: str, kind: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


def image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def asking(message: str, **properties: Mapping[str, Any]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


def sample() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="?"))], max_tokens=10)


def answers(context: Context[Any, Any], *names: str) -> list[Any] | None:
    """Return what the client answered to questions, None as long as one is open."""
    given = context.input_responses or {}
    found = [given.get(name) for name in names]
    unusable = [one for one in found if one is None or (isinstance(one, ElicitResult) and not one.content)]
    return None if unusable else found


def _add_contents(server: ToolServer) -> None:
    contents: dict[str, list[ContentBlock | str]] = {
        "test_simple_text": ["This is a simple text response for testing."],
        "test_image_content": [image()],
        "test_audio_content": [AudioContent(type="audio", data=SOUND, mime_type="audio/wav")],
        "test_embedded_resource": [embedded("test://embedded-resource", "This is an embedded resource content.")],
        "test_multiple_content_types": [
            "Multiple content types test:",
            image(),
            embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json"),
        ],
        "test_logging_tool": ["Nothing is logged to a client."],
        SCHEMA_TOOL: ["Its schema is what counts."],
    }
    for name, content in contents.items():
        server.add_tool(lambda content=content: said(*content), name, description=name, structured_output=False)

    @server.tool(structured_output=False)
    def test_error_handling() -> CallToolResult:
        """Fail."""
        raise RuntimeError("This tool intentionally returns an error for testing")

    @server.tool(structured_output=False)
    async def test_tool_with_progress(context: Context[Any, Any]) -> CallToolResult:
        """Report how far it is."""
        for step in (0, 50, 100):
            await context.report_progress(step, 100)
        return said("done")

    @server.tool(structured_output=False)
    def test_custom_header(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> CallToolResult:
        """Take an argument that is repeated in a header."""
        return said(region)


def _add_questions(server: ToolServer) -> None:
    """Add the tools that ask the client in the midst of a call, as the handshake era does."""
    choices: dict[str, Mapping[str, Any]] = {
        "untitledSingle": {**STRING, "enum": ["option1", "option2"]},
        "titledSingle": {**STRING, "oneOf": [{"const": "value1", "title": "First"}]},
        "legacyEnum": {**STRING, "enum": ["opt1"], "enumNames": ["Option One"]},
        "untitledMulti": {"type": "array", "items": {**STRING, "enum": ["option1", "option2"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First"}]}},
    }
    defaults: dict[str, Mapping[str, Any]] = {
        "name": {**STRING, "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {**STRING, "enum": ["active", "inactive"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }

    async def asked(context: Context[Any, Any], request: ElicitRequest) -> CallToolResult:
        found = await context.session.send_request(request, ElicitResult)
        return said(f"action={found.action}")

    @server.tool(structured_output=False)
    async def test_elicitation(message: str, context: Context[Any, Any]) -> CallToolResult:
        """Ask a person."""
        return await asked(context, asking(message, username=STRING, email=STRING))

    @server.tool(structured_output=False)
    async def test_elicitation_sep1034_defaults(context: Context[Any, Any]) -> CallToolResult:
        """Ask with answers filled in."""
        return await asked(context, asking("Who is it?", **defaults))

    @server.tool(structured_output=False)
    async def test_elicitation_sep1330_enums(context: Context[Any, Any]) -> CallToolResult:
        """Ask for choices."""
        return await asked(context, asking("Which?", **choices))

    @server.tool(structured_output=False)
    async def test_sampling(prompt: str, context: Context[Any, Any]) -> CallToolResult:
        """Ask the client's model."""
        found = await context.session.send_request(sampling(prompt), CreateMessageResult)
        return said(found.model)

    @server.tool(structured_output=False)
    def test_missing_capability(answer: Annotated[CreateMessageResult, Resolve(sample)]) -> CallToolResult:
        """Need a client that has a model."""
        return said(answer.model)


def _add_rounds(server: ToolServer) -> None:
    """Add the tools that answer with what they still need, as the stateless era does."""

    def rounds(name: str, wanted: Mapping[str, InputRequest], state: str | None) -> None:
        def run(context: Context[Any, Any]) -> Either:
            if (given := answers(context, *wanted)) is None or context.request_state != state:
                return InputRequiredResult(input_requests=dict(wanted), request_state=state)
            return said(f"state-ok {json.dumps([block.model_dump(mode='json') for block in given])}")

        server.add_tool(run, name, description=name, structured_output=False)

    name, roots = asking("What is your name?", name=STRING), ListRootsRequest()
    confirm = asking("Please confirm", ok={"type": "boolean"})
    rounds("test_input_required_result_elicitation", {"user_name": name}, None)
    rounds("test_streaming_elicitation", {"user_name": name}, None)
    rounds("test_input_required_result_sampling", {"capital_question": sampling("The capital of France?")}, None)
    rounds("test_input_required_result_list_roots", {"client_roots": roots}, None)
    rounds("test_input_required_result_request_state", {"confirm": confirm}, "first")
    rounds("test_input_required_result_tampered_state", {"confirm": confirm}, "first")
    many: dict[str, InputRequest] = {"user_name": name, "greeting": sampling("A greeting"), "client_roots": roots}
    rounds("test_input_required_result_multiple_inputs", many, "first")

    @server.tool(structured_output=False)
    def test_input_required_result_multi_round(context: Context[Any, Any]) -> Either:
        """Ask twice."""
        if context.request_state == "second" and answers(context, "step2"):
            return said("both steps done")
        if context.request_state == "first" and answers(context, "step1"):
            then = asking("Step 2: What is your favorite color?", color=STRING)
            return InputRequiredResult(input_requests={"step2": then}, request_state="second")
        return InputRequiredResult(input_requests={"step1": name}, request_state="first")

    @server.tool(structured_output=False)
    def test_input_required_result_capabilities(context: Context[Any, Any]) -> Either:
        """Ask only what the client can answer."""
        can = context.client_capabilities
        wanted: dict[str, InputRequest] = {"greeting": sampling("A greeting")} if can and can.sampling else {}
        wanted |= {"user_name": name} if can and can.elicitation else {}
        return InputRequiredResult(input_requests=wanted) if wanted else said("nothing can be asked")


def _add_resources(server: ToolServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """Hold a text."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """Hold a picture."""
        return b64decode(PIXEL)

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        """Hold something under every id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _add_prompts(server: ToolServer) -> None:
    @server.prompt()
    def test_simple_prompt() -> str:
        """Say a sentence."""
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """Say what was given."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        """Show a resource."""
        shown = embedded(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(content=shown), UserMessage(content="Please process the embedded resource above.")]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """Show a picture."""
        return [UserMessage(content=image()), UserMessage(content="Please analyze the image above.")]

    @server.prompt()
    def test_input_required_result_prompt(context: Context[Any, Any]) -> str | InputRequiredResult:
        """Ask before it says anything."""
        if (given := answers(context, "user_context")) is None:
            wanted = asking("What context should the prompt use?", context=STRING)
            return InputRequiredResult(input_requests={"user_context": wanted})
        return f"Context: {given[0].content}"

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(*_: object) -> Completion:
        """Know of nothing that fits."""
        return Completion(values=[], total=0, has_more=False)
