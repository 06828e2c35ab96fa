"""Money where nobody answers: what is charged, and that no cap is passed by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from alphaloom.ledger import Ledger
from alphaloom.ledger.holds import Wish
from alphaloom.router import BudgetEnded, ModelFailed, ModelSettings, Router, Task
from alphaloom.router.prices import price_of
from benchmarks.servers import Server

Build = Callable[..., Router]
Make = Callable[..., Task]


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask servers of their own."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def paid(server: Server, **more: Any) -> dict[str, Any]:
    model = {
        "model": "hosted_vllm/tiny", "place": "remote", "api_base": server.address, "input_cost_per_mtok": 0.0,
        "output_cost_per_mtok": 10_000.0,
    }  # fmt: skip
    return {"models": {"m": model}, "timeout_seconds": 0.6, "retries": 3, "health": {"patience_seconds": 0}} | more


async def asked(router: Router, tasks: list[Task]) -> list[Any]:
    try:
        return list(await asyncio.gather(*(router.ask(each) for each in tasks), return_exceptions=True))
    finally:
        await router.close()


def test_silence_passes_no_cap_however_many_call(build: Build, task: Make, server: Server, ledger: Ledger) -> None:
    server.hangs = True
    router = build(**paid(server, budget={"usd": 3.5}, timeout_seconds=0.4, cooldown_seconds=0))
    outcomes = asyncio.run(asked(router, [task(str(i), max_tokens=100) for i in range(8)]))  # 1 USD each at its worst
    assert {type(each) for each in outcomes} == {ModelFailed, BudgetEnded}
    assert sum(call.cost_usd for call in ledger.calls("one")) == pytest.approx(server.posts)
    assert server.posts == 3


def test_a_call_that_is_given_up_from_outside_is_charged(
    build: Build, task: Make, server: Server, ledger: Ledger
) -> None:
    server.hangs = True

    async def impatient() -> None:
        router = build(**paid(server, timeout_seconds=30))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(router.ask(task(max_tokens=100)), 1.0)
        await router.close()

    asyncio.run(impatient())
    (call,) = ledger.calls("one")
    assert call.cost_usd == pytest.approx(1.0)
    assert ledger.holds.open() == []


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
@pytest.mark.parametrize(
    ("body", "usd"),
    [
        ({"choices": []}, 1.0),
        ("no JSON", 1.0),
        ({"usage": None}, 0.21),
        ({"usage": {"prompt_tokens": -500_000, "completion_tokens": 7, "total_tokens": 9}}, 0.21),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}}, 0.21),
    ],
)  # fmt: skip
def test_an_answer_that_says_nothing_sound_of_its_price_is_not_free(
    build: Build, task: Make, server: Server, ledger: Ledger, provider: str, body: Any, usd: float
) -> None:
    server.changes = body
    settings = paid(server, retries=0, timeout_seconds=20)
    settings["models"]["m"]["model"] = f"{provider}/tiny"
    asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    (call,) = ledger.calls("one")
    assert call.cost_usd == pytest.approx(usd, rel=0.2)
    assert server.posts == 1


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
def test_a_call_that_found_nobody_costs_nothing(
    build: Build, task: Make, server: Server, ledger: Ledger, provider: str
) -> None:
    settings = paid(server, timeout_seconds=20, retries=1, cooldown_seconds=0)
    settings["models"]["m"]["model"] = f"{provider}/tiny"

    async def course() -> None:
        router = build(**settings)
        await router.ask(task("while it is there", max_tokens=100))
        server.kill()
        with pytest.raises(ModelFailed):
            await router.ask(task("when it is gone", max_tokens=100))
        await router.close()

    asyncio.run(course())
    assert len(ledger.calls("one")) == 1


def test_a_hold_whose_process_was_killed_stays_counted(
    build: Build, task: Make, server: Server, ledger: Ledger
) -> None:
    hold = ledger.holds.hold(Wish("one", "k" * 64, "", 100, 1.0), [], 60.0)
    assert not isinstance(hold, str)
    ledger.holds._own.clear()  # as if another had made it that is gone
    router = build(**paid(server, budget={"usd": 1.5}))
    (outcome,) = asyncio.run(asked(router, [task(max_tokens=100)]))
    assert isinstance(outcome, BudgetEnded)
    assert "1 of 1.5 usd" in str(outcome)
    assert server.posts == 0


def test_a_long_prompt_costs_what_the_list_says_of_long_ones() -> None:
    settings = ModelSettings.model_validate({"model": "gemini/gemini-2.5-pro"})
    short, long = price_of(settings, 1_000), price_of(settings, 300_000)
    assert short is not None
    assert long is not None
    assert long[0] == 2 * short[0]
