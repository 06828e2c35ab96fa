"""Money where nobody answers: what is charged, and that no cap is passed by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from alphaloom.ledger import Ledger
from alphaloom.ledger.reservations import Wish
from alphaloom.router import BudgetEnded, ModelFailed, ModelSettings, ReplyRefused, RequestRefused, Router, Task
from alphaloom.router.calls.prices import find_price
from alphaloom.router.timing import Timing

from .servers import Server

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
        "model": "hosted_vllm/tiny",
        "place": "remote",
        "api_base": server.address,
        "input_cost_per_mtok": 0.0,
        "output_cost_per_mtok": 10_000.0,
    }
    return {"models": {"m": model}, "timeout_seconds": 0.6, "retries": 3, "health": {"patience_seconds": 0}} | more


async def asked(router: Router, tasks: list[Task]) -> list[Any]:
    try:
        return list(await asyncio.gather(*(router.ask(task) for task in tasks), return_exceptions=True))
    finally:
        await router.close()


def test_silence_passes_no_cap_however_many_call(build: Build, task: Make, server: Server, ledger: Ledger) -> None:
    server.hangs = True
    router = build(**paid(server, budget={"usd": 3.5}, timeout_seconds=1.5, cooldown_seconds=0))
    outcomes = asyncio.run(asked(router, [task(str(i), max_tokens=100) for i in range(8)]))  # 1 USD each at its worst
    assert {type(outcome) for outcome in outcomes} == {ModelFailed, BudgetEnded}
    assert sum(call.cost_usd for call in ledger.calls.of("one")) == pytest.approx(server.posts)
    assert server.posts == 3


def test_a_call_that_is_given_up_from_outside_is_charged(
    build: Build, task: Make, server: Server, ledger: Ledger
) -> None:
    server.hangs = True

    async def impatient() -> None:
        router = build(**paid(server, timeout_seconds=30))
        asking = asyncio.ensure_future(router.ask(task(max_tokens=100)))
        while not server.posts:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await router.close()

    asyncio.run(impatient())
    (call,) = ledger.calls.of("one")
    assert call.cost_usd == pytest.approx(1.0)
    assert ledger.holds.open() == []


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
@pytest.mark.parametrize(
    "priced",
    [
        ({"choices": []}, 1.0),
        ("no JSON", 1.0),
        ({"usage": None}, 0.21),
        ({"usage": {"prompt_tokens": -500_000, "completion_tokens": 7, "total_tokens": 9}}, 0.21),
        ({"usage": {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}}, 0.21),
    ],
)
def test_an_answer_that_says_nothing_sound_of_its_price_is_not_free(
    build: Build, task: Make, server: Server, ledger: Ledger, provider: str, priced: tuple[Any, float]
) -> None:
    server.changes, usd = priced
    settings = paid(server, retries=0, timeout_seconds=20)
    settings["models"]["m"]["model"] = f"{provider}/tiny"
    asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    (call,) = ledger.calls.of("one")
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
    assert len(ledger.calls.of("one")) == 1


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
    short, long = find_price(settings, 1_000), find_price(settings, 300_000)
    assert short is not None
    assert long is not None
    assert long[0] == 2 * short[0]


@pytest.fixture
def other() -> Iterator[Server]:
    with Server() as server:
        yield server


CHEAP, DEAR = {"output_cost_per_mtok": 1_000.0}, {"output_cost_per_mtok": 10_000.0}


class Failure(NamedTuple):
    """Prices of two models, what the first one answers, and the US dollars held before each answer."""

    prices: tuple[dict[str, float], dict[str, float]]
    breaks: list[int] | str
    held: list[float]


@pytest.mark.parametrize(
    "failure",
    [
        Failure((CHEAP, DEAR), [500], [0.1, 1.0]),  # the first said no: only the second may be on the bill
        Failure((DEAR, CHEAP), [500], [1.0, 0.1]),
        Failure((CHEAP, DEAR), "no JSON", [0.1, 1.1]),  # the first may be on the bill, too
        Failure((CHEAP, DEAR), [], [0.1]),
    ],
)
def test_a_call_is_held_at_the_worst_of_the_models_that_may_be_on_the_bill(
    build: Build, task: Make, server: Server, other: Server, ledger: Ledger, failure: Failure
) -> None:
    held: list[float] = []
    for endpoint in (server, other):
        endpoint.before_answer = lambda: held.append(sum(hold.picos for hold in ledger.holds.open()) / 1e12)
    if isinstance(failure.breaks, str):
        server.changes = failure.breaks
    else:
        server.statuses = list(failure.breaks)
    settings = paid(server, retries=0, timeout_seconds=20)
    first = settings["models"]["m"] | failure.prices[0]
    settings["models"] = {"m": first, "n": first | {"api_base": other.address} | failure.prices[1]}
    asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    assert held == pytest.approx(failure.held)
    assert ledger.holds.open() == []


def test_a_model_that_the_budget_has_no_room_for_is_passed_over_for_one_that_it_has(
    build: Build, task: Make, server: Server, other: Server, ledger: Ledger
) -> None:
    """The first may be on the bill with 0.5; a second time it does not fit under 0.8, and the other one does."""
    server.changes = "no JSON"
    settings = paid(server, retries=1, timeout_seconds=20, budget={"usd": 0.8})
    first = settings["models"]["m"] | {"output_cost_per_mtok": 5_000.0}
    settings["models"] = {"m": first, "n": first | {"api_base": other.address} | CHEAP}
    (reply,) = asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    assert (reply.model, server.posts, other.posts) == ("n", 1, 1)
    assert reply.cost_usd == pytest.approx(0.5 + 7 * 1e-3)


def test_who_was_not_asked_for_want_of_room_is_said(build: Build, task: Make, server: Server, other: Server) -> None:
    server.statuses = [500] * 3
    settings = paid(server, retries=0, timeout_seconds=20, budget={"usd": 0.5})
    first = settings["models"]["m"] | CHEAP
    settings["models"] = {"m": first, "n": first | {"api_base": other.address} | DEAR}
    (error,) = asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    assert isinstance(error, ModelFailed)
    assert "nor from n: not asked, the budget has no room for what it may cost" in error.message
    assert other.posts == 0


def test_a_reply_that_fits_nowhere_is_said_with_all_who_gave_it(
    build: Build, task: Make, server: Server, other: Server, ledger: Ledger
) -> None:
    server.text = other.text = "Sure!"
    settings = paid(server, timeout_seconds=20)
    settings["models"]["n"] = settings["models"]["m"] | {"api_base": other.address, "model": "hosted_vllm/other"}
    for posts in (3, 3):  # a resumed run asks nobody again
        (error,) = asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
        assert isinstance(error, ReplyRefused)
        assert "m and n gave no reply that fits Idea, after 2 repairs" in str(error)
        assert (server.posts, other.posts) == (posts, posts)
    assert len(ledger.calls.of("one")) == 6


def test_a_second_model_that_cannot_be_asked_leaves_the_reply_refused(
    build: Build, task: Make, server: Server, other: Server
) -> None:
    server.text, other.statuses = "Sure!", [500] * 9
    settings = paid(server, timeout_seconds=20, retries=0)
    settings["models"]["n"] = settings["models"]["m"] | {"api_base": other.address, "model": "hosted_vllm/other"}
    (error,) = asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    assert isinstance(error, ReplyRefused), "a later task may well succeed"
    assert "no reply from n" in str(error)


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
def test_a_request_that_is_refused_is_not_sent_again_without_its_schema(
    build: Build, task: Make, server: Server, provider: str
) -> None:
    server.statuses = [422] * 9
    settings = paid(server, timeout_seconds=20)
    settings["models"]["m"]["model"] = f"{provider}/tiny"
    (error,) = asyncio.run(asked(build(**settings), [task(max_tokens=100)]))
    assert isinstance(error, RequestRefused)
    assert server.posts == 1


def test_a_server_that_was_given_up_is_not_waited_for(build: Build, task: Make, server: Server) -> None:
    """It broke off twice, each time perhaps at a price: when it comes back it would not be asked again."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    server.changes = "no JSON"
    server.before_answer = lambda: server.kill() if server.posts == 2 else None
    timing = Timing(sleep=sleep, chance=lambda: 0.0)
    health = {"patience_seconds": 2, "heartbeat_seconds": 0}
    settings = paid(server, timeout_seconds=20, retries=5, health=health)
    (error,) = asyncio.run(asked(build(timing=timing, **settings), [task(max_tokens=100)]))
    assert isinstance(error, ModelFailed)
    assert (server.posts, slept) == (2, [0.5])
