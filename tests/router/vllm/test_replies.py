"""Every reply of a real server fits, whatever its model says: what it may write is held while it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from alphaloom.agents.prompt import load_prompts
from alphaloom.agents.schemas import Candidates, Critique, Ideas
from alphaloom.factors import decoding_grammar, parse
from alphaloom.router import Reply, ReplyRefused, Router, Task
from alphaloom.router.calls.reply_grammar import ReplyShape, build_reply_grammar

from .served import Server

pytestmark = pytest.mark.slow

FIELDS, GROUPS = ("open", "high", "low", "close", "volume", "returns"), ("sector",)
AT_ONCE, MANY = 8, 1_000
EACH, LONGEST = 8, 600
"""Replies of one kind, and the tokens that they may take: little, so that the bounds are felt."""


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    side: Literal["buy", "sell", "hold"]
    shares: int = Field(ge=1, le=500)
    why: str = Field(min_length=1, max_length=60)


def ask(router: Router, tasks: Sequence[Task]) -> list[Reply[Any]]:
    """Ask for all, so many at once."""

    async def all_of_them() -> list[Reply[Any]]:
        places = asyncio.Semaphore(AT_ONCE)

        async def one(task: Task) -> Reply[Any]:
            async with places:
                return await router.ask(task)

        try:
            return await asyncio.gather(*map(one, tasks))
        finally:
            await router.close()

    return asyncio.run(all_of_them())


def shape(schema: type[BaseModel]) -> ReplyShape:
    texts = {"Candidate.text": decoding_grammar(FIELDS, GROUPS, depth=4)} if schema is Candidates else {}
    return ReplyShape(schema, 2, texts)


@pytest.mark.parametrize("temperature", [1.5, 2.0])
@pytest.mark.parametrize("schema", [Ideas, Candidates, Critique])
def test_every_reply_to_an_agent_fits_at_once(
    router: Callable[..., Router], task: Callable[..., Task], schema: type[BaseModel], temperature: float
) -> None:
    asked = shape(schema)
    tasks = [
        task(
            load_prompts("factor").text[:600],
            schema=schema,
            temperature=temperature,
            seed=seed,
            max_tokens=LONGEST,
            grammar=lambda: build_reply_grammar(asked, LONGEST),
        )
        for seed in range(EACH)
    ]
    replies = ask(router(), tasks)
    assert [reply.repairs for reply in replies] == [0] * len(tasks)
    assert len({reply.value.model_dump_json() for reply in replies}) == len(tasks)
    formulas = [candidate.text for reply in replies for candidate in getattr(reply.value, "candidates", [])]
    assert all(parse(text, fields=FIELDS, groups=GROUPS) for text in formulas)


def test_a_task_without_a_grammar_of_its_own_is_held_to_its_schema(
    router: Callable[..., Router], task: Callable[..., Task]
) -> None:
    replies = ask(router(), [task(schema=Order, temperature=1.5, seed=seed) for seed in range(16)])
    assert {reply.repairs for reply in replies} == {0}


def test_a_reply_that_is_cut_off_is_none(router: Callable[..., Router], task: Callable[..., Task]) -> None:
    with pytest.raises(ReplyRefused, match="cut off after 5 tokens"):
        ask(router(), [task(schema=Order, max_tokens=5, temperature=1.5)])


def test_a_thousand_replies_fit(
    router: Callable[..., Router], task: Callable[..., Task], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    before = server.counts()["request_success_total"]
    tasks = [task(f"order {seed}", schema=Order, max_tokens=200, temperature=1.5, seed=seed) for seed in range(MANY)]
    replies = ask(router(), tasks)
    sent = server.counts()["request_success_total"] - before
    fitting = sum(reply.repairs == 0 for reply in replies)
    with capsys.disabled():
        print(f"\n{fitting:,} of {len(replies):,} replies fit at once, {AT_ONCE} at a time; {sent:,.0f} requests")
    assert fitting == sent == MANY
