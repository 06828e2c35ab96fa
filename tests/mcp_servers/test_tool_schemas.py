"""What a model reads of the tools before its first call: its size, and that it is true."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.types import Tool

from alphaloom.evaluation import Evaluator
from alphaloom.mcp_servers import Session
from alphaloom.mcp_servers.tool_schemas import publish_schema, share_definitions, show_call
from alphaloom.news import NEWS_FOLDER

from .opened import opened_to, served_to
from .shelves import MANY, shelved
from .test_tools import ONE, asked

Call = Callable[..., dict[str, Any]]
Talk = Callable[..., Any]
MAX_LIST_TOKENS = 5_000
"""Largest list of all tools in tokens of o200k_base, without annotations, which frameworks do not show to models."""


async def list_all(sessions: dict[str, Session]) -> list[Tool]:
    """Return the tools of all servers as a client gets them."""
    return [tool for session in sessions.values() for tool in (await session.client.list_tools()).tools]


@pytest.fixture
def tools(talk: Talk) -> list[Tool]:
    listed: list[Tool] = talk(list_all)
    return listed


def count_tokens(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count tokens with the encoding of gpt-4o, whose file comes with litellm."""
    import tiktoken

    (folder,) = importlib.util.find_spec("litellm").submodule_search_locations  # type: ignore[union-attr, misc]
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(Path(folder) / "litellm_core_utils" / "tokenizers"))
    return len(tiktoken.get_encoding("o200k_base").encode(text))


def test_the_list_of_all_tools_is_short(tools: list[Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"annotations"}) for tool in tools]
    assert len(sent) == 23
    assert count_tokens(json.dumps(sent, ensure_ascii=False, separators=(",", ":")), monkeypatch) <= MAX_LIST_TOKENS


def test_each_tool_has_a_title_and_says_first_what_it_returns_and_when_to_use_it(tools: list[Tool]) -> None:
    for tool in tools:
        sentence = str(tool.description).split("\n\n")[0]
        assert tool.title, tool.name
        assert sentence.split()[0] in {"Return", "Save", "Start"}, sentence
        assert "; use it " in sentence or "; call it " in sentence, sentence
        assert len(sentence) < 130, sentence


def test_each_key_of_an_answer_has_a_type_and_a_meaning(tools: list[Tool]) -> None:
    for tool in tools:
        keys = (tool.output_schema or {}).get("properties", {})
        assert keys, tool.name
        assert all({*key} == {"type", "description"} and key["description"] for key in keys.values()), tool.name


def test_each_argument_has_an_example_a_default_or_its_allowed_words(tools: list[Tool]) -> None:
    wanting = [
        f"{tool.name}.{name}"
        for tool in tools
        for name, part in tool.input_schema.get("properties", {}).items()
        if not {"examples", "default", "enum", "$ref"} & {*part, *part.get("items", {})}
    ]
    assert wanting == []


async def answer_everything(sessions: dict[str, Session], evaluator: Evaluator, found: dict[str, set[str]]) -> None:
    """Call every tool; keep the keys of its answers by its name."""

    async def call(server: str, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await sessions[server].call(tool, arguments)
        found.setdefault(tool, set()).update(answer)
        return answer

    given = asked(evaluator, ONE)
    claim = given["hypothesis"]
    name = (await call("evaluation", "score_factor", **given))["id"]
    await call("evaluation", "score_factor", text="rank(clsoe)", hypothesis=claim)
    survey = {**claim, "id": "", "either_way": True}
    mined = await call("evaluation", "score_factor", text="ts_kurt(high / low, 25)", hypothesis=survey)
    assert mined["ok"]
    await call(
        "evaluation", "score_factor", text="ts_kurt(high / low, 25)", hypothesis=claim, refuter="ts_std(returns, 20)"
    )
    await call("evaluation", "submit_to_gate", ids=[name])
    await call("evaluation", "get_budget")
    await call("evaluation", "choose_drafts", texts=["rank(close)"], hypothesis=claim)
    for which in ("leaders", "unexplored"):
        await call("evaluation", "list_formulas", which=which)
    for tool in ("stress_factor", "measure_decay"):
        job = await call("evaluation", tool, id=name)
        await call("evaluation", "get_job", job=job["job"], wait_s=20)
    for tool in ("check_factor", "explain_factor", "find_similar"):
        await call("factors", tool, text=ONE)
    await call("factors", "translate_factor", text="rank(close)", source="alphaloom", target="qlib")
    for text in ("rank(close)", "rank(clsoe)"):
        await call("factors", "register_factor", text=text, name="mine")
        await call("factors", "check_factor", text=text)
    for tool in ("search_library", "recall_attempts"):
        await call("factors", tool)
    await call("factors", "get_factor", id=name)
    for tool in ("search_fields", "describe_universe", "get_calendar"):
        await call("market", tool)
    for tool in ("preview_panel", "get_history"):
        await call("market", tool, field="close")
    item = (await call("news", "search_news"))["items"][0]
    await call("news", "get_news", id=item["id"])


def test_answers_have_the_keys_that_were_promised(evaluator: Evaluator) -> None:
    """A client checks the types of each answer against the schema."""
    promised: dict[str, set[str]] = {}
    found: dict[str, set[str]] = {}

    async def ask() -> None:
        with shelved(evaluator.ledger.workspace / NEWS_FOLDER, *MANY) as news:
            served = replace(served_to(evaluator), news=news)
            async with opened_to(served) as sessions:
                for tool in await list_all(sessions):
                    promised[tool.name] = {*(tool.output_schema or {}).get("properties", {})}
                await answer_everything(sessions, evaluator, found)
            served.jobs.close()

    asyncio.run(ask())
    promised["get_job"].discard("error")  # no job failed
    assert {tool: keys - found[tool] for tool, keys in promised.items() if keys - found[tool]} == {}


def test_the_example_in_a_hint_is_a_right_call(refused: Call, call: Call, tools: list[Tool]) -> None:
    hint = refused("evaluation.score_factor", formula="rank(close)")["hint"]
    example = json.loads(hint.partition("Example: score_factor ")[2])
    assert call("evaluation.score_factor", **example)["ok"]
    hint = refused("market.preview_panel", field="close", rows=100)["hint"]
    assert hint.endswith('Example: preview_panel {"field": "close", "rows": 5}')
    hint = refused("factors.get_factor", id="f0123456789abcdef")["hint"]
    assert hint.endswith('Example: get_factor {"id": "f0123456789abcdef"}')


def test_a_refusal_that_no_argument_mends_has_no_example(refused: Call, evaluator: Evaluator, call: Call) -> None:
    name = call("evaluation.score_factor", **asked(evaluator, ONE))["id"]
    object.__setattr__(evaluator.meter.budget, "trials", 0)
    assert "Example" not in refused("evaluation.submit_to_gate", ids=[name])["hint"]


def test_every_example_of_a_tool_has_values_that_it_takes(talk: Talk) -> None:
    async def ask(sessions: dict[str, Session]) -> list[str]:
        wrong = []
        for session in sessions.values():
            for tool in (await session.client.list_tools()).tools:
                if tool.name == "choose_drafts":
                    continue  # its hypothesis is described in score_factor
                _, _, arguments = show_call(tool.name, tool.input_schema).partition(" ")
                result = await session.client.call_tool(tool.name, json.loads(arguments))
                if result.is_error and (result.structured_content or {})["code"] == "arguments":
                    wrong.append(tool.name)
        return wrong

    assert talk(ask) == []


def test_a_key_and_an_id_that_are_left_out_follow_from_the_content(call: Call, evaluator: Evaluator) -> None:
    given = asked(evaluator, ONE)
    claim = {name: value for name, value in given["hypothesis"].items() if name != "id"}
    answers = [call("evaluation.score_factor", text=ONE, hypothesis=claim) for _ in range(2)]
    assert answers[0] == answers[1]
    (attempt,) = evaluator.ledger.attempts.of(evaluator.run)
    call("evaluation.score_factor", text=ONE, hypothesis={**claim, "statement": "another"}, key="")
    first, second = sorted(evaluator.ledger.attempts.of(evaluator.run), key=lambda row: row.key != attempt.key)
    assert first == attempt
    assert (second.key, second.hypothesis) != (first.key, first.hypothesis)
    keys = [call("evaluation.submit_to_gate", ids=[answers[0]["id"]])["key"] for _ in range(2)]
    assert keys[0] == keys[1] != ""


def test_a_definition_is_described_once() -> None:
    schema = {"title": "a", "$defs": {"D": {"type": "object", "properties": {"title": {"description": "words"}}}}}
    shared = share_definitions({"one": publish_schema(schema), "two": publish_schema(schema)})
    assert shared["one"] == {"$defs": schema["$defs"]}
    assert shared["two"]["$defs"]["D"] == {
        "description": "As in one",
        "type": "object",
        "properties": {"title": {}},
    }
