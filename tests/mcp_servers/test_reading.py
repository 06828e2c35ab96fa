"""Resources, prompts and completions: what they tell, to whom, and that it is on record."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from alphaloom.evaluation import Evaluator
from alphaloom.factors import OPERATORS
from alphaloom.ledger.calls import CallOutcome, ToolCall
from alphaloom.mcp_servers.access import Caller
from alphaloom.mcp_servers.handles import Handles
from alphaloom.mcp_servers.jobs import Jobs
from alphaloom.mcp_servers.served_caller import CallerEntry, ServedCaller

from .opened import clock, opened_to, served_to

TEXT = "rank(ts_std(returns, 30))"


def talked(served: ServedCaller, ask: Any) -> Any:
    async def opened() -> Any:
        async with opened_to(served) as sessions:
            return await ask({name: session.client for name, session in sessions.items()})

    return asyncio.run(opened())


def read(served: ServedCaller, server: str, uri: str) -> Any:
    async def ask(clients: dict[str, Any]) -> Any:
        (content,) = (await clients[server].read_resource(uri)).contents
        return content.text

    return talked(served, ask)


def refusal(served: ServedCaller, server: str, ask: Any) -> dict[str, Any]:
    with pytest.raises(MCPError) as caught:
        talked(served, lambda clients: ask(clients[server]))
    return dict(caught.value.error.data)


def test_every_resource_that_is_listed_can_be_read(evaluator: Evaluator) -> None:
    calls: list[ToolCall] = []
    served = served_to(evaluator, calls)

    async def ask(clients: dict[str, Any]) -> list[str]:
        found = []
        for client in clients.values():
            for resource in (await client.list_resources()).resources:
                (content,) = (await client.read_resource(resource.uri)).contents
                assert content.text
                found.append(str(resource.uri))
        return found

    assert sorted(talked(served, ask)) == [
        f"alphaloom://{name}"
        for name in ("fields", "grammar", "library", "news", "operators", "reports/run", "rules", "universe")
    ]
    assert {(call.tool, call.outcome) for call in calls} == {("resources/read", CallOutcome.OK)}
    assert all(call.bytes and call.result for call in calls)


def test_an_operator_and_a_draft_are_resources(evaluator: Evaluator) -> None:
    served = served_to(evaluator)
    assert json.loads(read(served, "factors", "alphaloom://operators/ts_std"))["name"] == "ts_std"

    async def keep(clients: dict[str, Any]) -> Any:
        return (
            await clients["factors"].call_tool("register_factor", {"text": TEXT, "name": "calm"})
        ).structured_content

    draft = talked(served, keep)
    assert draft["registered"]
    assert not talked(served, keep)["registered"]
    told = json.loads(read(served, "factors", f"alphaloom://library/{draft['id']}"))
    assert (told["where"], told["name"], told["text"]) == ("draft", "calm", TEXT)


def test_what_cannot_be_read_is_refused_in_words_and_on_record(evaluator: Evaluator) -> None:
    calls: list[ToolCall] = []
    served = served_to(evaluator, calls)
    assert refusal(served, "factors", lambda c: c.read_resource("alphaloom://operators/ts_stdd"))["hint"].startswith(
        "Did you mean ts_std?"
    )
    assert refusal(served, "market", lambda c: c.read_resource("alphaloom://sealed"))["code"] == "unknown_resource"
    strange = refusal(served, "market", lambda c: c.read_resource(f"alphaloom://panels/{'0' * 64}/0"))
    assert strange["code"] == "unknown_handle"
    unknown = refusal(served, "factors", lambda c: c.get_prompt("propose", {"goal": "calm"}))
    assert unknown["hint"] == "Did you mean propose_factor?"
    none = refusal(served, "factors", lambda c: c.get_prompt("review_factor", {"id": "f" + "0" * 16}))
    assert none["code"] == "unknown_factor"
    assert [call.outcome for call in calls] == [CallOutcome.REFUSED] * 5


def test_prompts_are_written_out(evaluator: Evaluator) -> None:
    async def ask(clients: dict[str, Any]) -> Any:
        listed = [prompt.name for prompt in (await clients["factors"].list_prompts()).prompts]
        told = await clients["factors"].get_prompt("propose_factor", {"goal": "the range of quiet names"})
        return listed, told.messages[0].content.text

    listed, told = talked(served_to(evaluator), ask)
    assert listed == ["propose_factor", "critique_factor", "review_factor"]
    assert "the range of quiet names" in told


def test_names_are_completed_as_far_as_the_caller_may_know_them(evaluator: Evaluator) -> None:
    async def ask(clients: dict[str, Any]) -> Any:
        draft = await clients["factors"].call_tool("register_factor", {"text": TEXT, "name": "calm"})
        operator = ResourceTemplateReference(type="ref/resource", uri="alphaloom://operators/{name}")
        prompt = PromptReference(type="ref/prompt", name="review_factor")
        names = await clients["factors"].complete(operator, {"name": "name", "value": "ts_st"})
        ids = await clients["factors"].complete(prompt, {"name": "id", "value": "f"})
        return draft.structured_content["id"], names.completion.values, ids.completion.values

    draft, names, ids = talked(served_to(evaluator), ask)
    assert names == sorted(name for name in OPERATORS if name.startswith("ts_st"))
    assert ids == [draft]


def test_who_may_not_read_is_shown_nothing(evaluator: Evaluator) -> None:
    calls: list[ToolCall] = []
    entry = CallerEntry(Caller("eve", frozenset({"data:read"})), calls.append)
    served = ServedCaller(lambda: evaluator, entry, Handles(evaluator.ledger.workspace / "panels", clock), Jobs())

    async def ask(clients: dict[str, Any]) -> Any:
        factors = clients["factors"]
        prompt = PromptReference(type="ref/prompt", name="review_factor")
        return [
            (await factors.list_tools()).tools,
            (await factors.list_resources()).resources,
            (await factors.list_resource_templates()).resource_templates,
            (await factors.list_prompts()).prompts,
            (await factors.complete(prompt, {"name": "id", "value": ""})).completion.values,
        ]

    assert talked(served, ask) == [[], [], [], [], []]
    told = refusal(served, "factors", lambda c: c.read_resource("alphaloom://library"))
    assert (told["code"], told["allowed"]) == ("forbidden", "factor:read")
