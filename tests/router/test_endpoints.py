"""What failing servers cost: real ones over HTTP on this machine, which die, hang, fail and come back."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from alphaloom.ledger import Ledger
from alphaloom.router import AccessRefused, ModelFailed, Reply, Router, Task
from alphaloom.router.endpoints.pool import LOOK_AGAIN_S
from alphaloom.router.timing import Timing

from .servers import Server

pytestmark = pytest.mark.integration

Build = Callable[..., Router]
Make = Callable[..., Task]
QUICK = {"probe_seconds": 1.0, "heartbeat_seconds": 0.1, "patience_seconds": 5.0}
PAID = {"place": "remote", "input_cost_per_mtok": 1.0, "output_cost_per_mtok": 10.0}


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask servers of their own."""


@pytest.fixture
def one() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def two() -> Iterator[Server]:
    with Server() as server:
        yield server


def at(server: Server, **settings: Any) -> dict[str, Any]:
    return {"model": "hosted_vllm/tiny", "place": "local", "api_base": server.address} | settings


def dead() -> dict[str, Any]:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return at(Server(port=taken.getsockname()[1]))


async def asked(router: Router, tasks: list[Task], *, together: bool = True) -> list[Reply[Any]]:
    """Ask, close, and see that nothing is left running."""
    try:
        if together:
            return list(await asyncio.gather(*(router.ask(task) for task in tasks)))
        return [await router.ask(task) for task in tasks]
    finally:
        await router.close()
        own = [task for task in asyncio.all_tasks() if "alphaloom" in str(task.get_coro())]
        assert [task for task in own if "asked" not in str(task.get_coro())] == []


def settings(*models: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = {f"m{number}": each for number, each in enumerate(models, 1)}
    return {"models": named, "timeout_seconds": 10.0, "cooldown_seconds": 0.3, "health": QUICK, "retries": 0} | more


@pytest.mark.parametrize("together", [True, False])
def test_a_hundred_calls_to_a_deaf_server_and_a_good_one_cost_one_look(
    build: Build, task: Make, one: Server, two: Server, together: bool
) -> None:
    one.deaf = True
    router = build(**settings(at(one), at(two), cooldown_seconds=60.0))
    replies = asyncio.run(asked(router, [task(str(i)) for i in range(100)], together=together))
    assert {reply.model for reply in replies} == {"m2"}
    assert (one.posts, sum(one.gets.values())) == (0, 1)
    assert sum(two.served.values()) == 100


def test_a_server_that_lists_its_models_but_never_answers_costs_one_timeout(
    build: Build, task: Make, one: Server, two: Server
) -> None:
    one.hangs = True
    router = build(**settings(at(one), at(two), cooldown_seconds=60.0, timeout_seconds=0.8))
    replies = asyncio.run(asked(router, [task(str(i)) for i in range(20)], together=False))
    assert one.posts == 1
    assert one.was_cut(1)
    assert {reply.model for reply in replies} == {"m2"}


def test_a_dead_port_is_never_sent_a_call(build: Build, task: Make, two: Server, ledger: Ledger) -> None:
    asyncio.run(asked(build(**settings(dead(), at(two))), [task(str(i)) for i in range(20)]))
    assert {(call.model, call.attempts) for call in ledger.calls.of("one")} == {("m2", 1)}


def test_a_server_that_fails_rests_and_is_asked_again_when_a_look_finds_it(
    build: Build, task: Make, one: Server, two: Server
) -> None:
    one.statuses = [500] * 3

    async def course(router: Router) -> list[str]:
        said = [(await router.ask(task(str(i)))).model for i in range(6)]
        for i in range(100):
            await asyncio.sleep(0.02)
            said.append((await router.ask(task(f"later {i}"))).model)
            if said[-1] == "m1":
                break
        await router.close()
        return said

    said = asyncio.run(course(build(**settings(at(one), at(two)))))
    assert said[:6] == ["m2"] * 6
    assert said[-1] == "m1"
    assert one.posts == 4


def test_a_server_killed_under_fifty_calls_loses_none_and_none_is_answered_twice(
    build: Build, task: Make, one: Server, two: Server, ledger: Ledger
) -> None:
    one.delay_s = two.delay_s = 0.05
    router = build(**settings(at(one), at(two)))
    killer = threading.Timer(0.9, one.kill)

    async def course() -> list[Reply[Any]]:
        await router.ask(task("warm"))
        one.delay_s = 1.0
        killer.start()
        return await asked(router, [task(str(i)) for i in range(50)])

    replies = asyncio.run(course())
    killer.join()
    assert len(replies) == 50
    assert {reply.model for reply in replies} == {"m2"}
    assert set(two.served.values()) == {1}
    assert set(one.served) == {"warm"}
    calls = ledger.calls.of("one")
    assert len(calls) == 51
    assert {call.attempts for call in calls} == {1, 2}


def test_a_lonely_server_that_is_restarted_is_waited_for(build: Build, task: Make, one: Server, ledger: Ledger) -> None:
    one.delay_s = 0.3
    router = build(**settings(at(one)))
    texts = [str(i) for i in range(10)]

    async def restart() -> None:
        await asyncio.sleep(0.1)
        one.kill()
        for _ in range(10):  # on the loop of the calls, which have then seen that it is gone, however slow the machine
            await asyncio.sleep(0.05)
        one.start()

    async def course() -> None:
        await router.ask(task("warm"))
        await asyncio.gather(restart(), asked(router, [task(text) for text in texts]))

    asyncio.run(course())
    assert {text: one.served[text] for text in texts} == dict.fromkeys(texts, 1)
    assert len(ledger.calls.of("one")) == 11


def test_a_server_that_was_never_there_is_not_waited_for(build: Build, task: Make) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(seconds)

    with pytest.raises(ModelFailed, match=r"no reply from m1: not asked, .* does not answer"):
        asyncio.run(asked(build(timing=replace(Timing(), sleep=sleep), **settings(dead())), [task()]))
    assert LOOK_AGAIN_S not in slept


def test_who_was_waited_for_in_vain_is_said(build: Build, task: Make, one: Server) -> None:
    async def course(router: Router) -> None:
        await router.ask(task("warm"))
        one.kill()
        await asked(router, [task()])

    health = QUICK | {"patience_seconds": 0.2}
    with pytest.raises(ModelFailed, match="no reply from m1"):
        asyncio.run(course(build(**settings(at(one), health=health))))


def test_every_model_that_failed_is_named_and_a_refused_key_is_told_apart(
    build: Build, task: Make, one: Server, two: Server
) -> None:
    one.statuses, two.statuses = [401] * 9, [401] * 9
    with pytest.raises(AccessRefused, match=r"no reply from m1: .*not now.*; nor from m2: .*not now"):
        asyncio.run(asked(build(**settings(at(one), at(two), retries=2)), [task()]))
    assert (one.posts, two.posts) == (1, 1)


def test_a_broken_connection_is_not_sent_again_unseen(build: Build, task: Make, one: Server, ledger: Ledger) -> None:
    one.before_answer = one.kill
    with pytest.raises(ModelFailed):
        asyncio.run(asked(build(**settings(at(one), health=QUICK | {"patience_seconds": 0})), [task()]))
    assert one.posts == 1


def test_a_paid_call_without_an_answer_is_charged_at_its_worst_and_made_twice_at_most(
    build: Build, task: Make, one: Server, two: Server, ledger: Ledger
) -> None:
    one.hangs = True
    router = build(**settings(at(one, **PAID), at(two, **PAID), retries=5, timeout_seconds=0.8))
    (reply,) = asyncio.run(asked(router, [task(max_tokens=100)]))
    (call,) = ledger.calls.of("one")
    (beside,) = json.loads(ledger.objects.get(call.reply))["beside"]
    assert (beside["model"], beside["why"], beside["tokens_out"]) == (
        "m1",
        "no answer (late); charged at its worst",
        100,
    )
    assert reply.cost_usd == pytest.approx((11 + 70 + beside["tokens_in"] + 1000) / 1e6)
    assert (call.tokens_in, call.tokens_out) == (11 + beside["tokens_in"], 107)
    two.hangs = True
    with pytest.raises(ModelFailed):
        asyncio.run(
            asked(build(**settings(at(one, **PAID), at(two, **PAID), retries=5, timeout_seconds=0.8)), [task("again")])
        )
    assert one.posts + two.posts == 4


def test_a_paid_call_that_nobody_answers_is_on_the_bill_and_asked_again_by_who_asks_again(
    build: Build, task: Make, one: Server, ledger: Ledger
) -> None:
    one.hangs = True
    paid = settings(at(one, **PAID), retries=5, timeout_seconds=0.8)
    for times in (1, 2):
        with pytest.raises(ModelFailed):
            asyncio.run(asked(build(**paid), [task(max_tokens=100)]))
        lost = ledger.calls.of("one")
        bodies = [json.loads(ledger.objects.get(call.reply)) for call in lost]
        assert [(body["text"], body["finish"]) for body in bodies] == [("", "lost")] * times
        worst = [sum(row["cost_usd"] for row in body["beside"]) for body in bodies]
        assert [call.cost_usd for call in lost] == pytest.approx(worst)
        assert sum(call.attempts for call in lost) == one.posts
        assert ledger.holds.open() == []
    one.hangs = False
    (reply,) = asyncio.run(asked(build(**paid), [task(max_tokens=100)]))
    assert not reply.cached
    assert len(ledger.calls.of("one")) == 3


@pytest.fixture
def hedged(build: Build, task: Make, one: Server, two: Server) -> Callable[..., Reply[Any]]:
    """Return what asks after the first model has shown to be quick, and has become slow."""

    def make(first: dict[str, Any], second: dict[str, Any], **changes: Any) -> Reply[Any]:
        router = build(**settings(first, second, health=QUICK | {"hedge": True, "slow_factor": 0}))

        async def course() -> Reply[Any]:
            for i in range(10):
                await router.ask(task(str(i), max_tokens=100))
            one.delay_s = 1.5
            changed = {"idempotent": True, "max_tokens": 100} | changes
            (reply,) = await asked(router, [task("slow", **changed)])
            return reply

        return asyncio.run(course())

    return make


def test_a_second_model_answers_in_the_place_of_a_late_one_and_both_are_paid(
    hedged: Callable[..., Reply[Any]], one: Server, two: Server, ledger: Ledger
) -> None:
    reply = hedged(at(one, **PAID), at(two, **PAID))
    assert reply.model == "m2"
    assert two.posts == 1
    assert one.was_cut(1)
    (call,) = [entry for entry in ledger.calls.of("one") if entry.key == reply.key]
    (beside,) = json.loads(ledger.objects.get(call.reply))["beside"]
    assert (beside["model"], beside["why"]) == ("m1", "the other answered first; charged at its worst")
    assert call.attempts == 2
    assert call.cost_usd == pytest.approx((11 + 70 + beside["tokens_in"] + 1000) / 1e6)


@pytest.mark.parametrize("changes", [{"idempotent": False}, {"max_tokens": 4_001}])
def test_only_what_is_short_and_idempotent_is_asked_twice(
    hedged: Callable[..., Reply[Any]], one: Server, two: Server, changes: dict[str, Any]
) -> None:
    assert hedged(at(one), at(two), **changes).model == "m1"
    assert two.posts == 0


@pytest.mark.parametrize("other", [{"place": "region", "region": "CH"}, {"tier": "frontier"}])
def test_no_model_of_another_place_or_tier_is_asked_beside_the_first(
    hedged: Callable[..., Reply[Any]], one: Server, two: Server, other: dict[str, Any]
) -> None:
    free = {"input_cost_per_mtok": 0, "output_cost_per_mtok": 0}
    assert hedged(at(one, **free), at(two, **free, **other)).model == "m1"
    assert two.posts == 0


def test_an_answer_that_does_not_fit_does_not_win(
    hedged: Callable[..., Reply[Any]], one: Server, two: Server, ledger: Ledger
) -> None:
    two.text = "Sure!"
    reply = hedged(at(one, **PAID), at(two, **PAID))
    assert (reply.model, reply.repairs) == ("m1", 0)
    (call,) = [entry for entry in ledger.calls.of("one") if entry.key == reply.key]
    (beside,) = json.loads(ledger.objects.get(call.reply))["beside"]
    assert (beside["model"], beside["tokens_out"], beside["why"]) == ("m2", 7, "it answered beside the other")


def test_a_model_that_became_slow_is_asked_last_for_a_while(build: Build, task: Make, one: Server, two: Server) -> None:
    router = build(**settings(at(one), at(two, model="hosted_vllm/other")))

    async def course() -> list[str]:
        said = [(await router.ask(task(str(i)))).model for i in range(10)]
        one.delay_s = 0.6
        said += [(await router.ask(task(f"slow {i}"))).model for i in range(8)]
        await router.close()
        return said

    said = asyncio.run(course())
    assert said[:11] == ["m1"] * 11
    assert said[-1] == "m2"


def metrics(waiting: int, cache: float) -> str:
    return f'vllm:num_requests_waiting{{m="t"}} {waiting}\nvllm:kv_cache_usage_perc{{m="t"}} {cache}\n'


@pytest.mark.parametrize(("loads", "wins"), [(((9, 0.1), (0, 0.5)), "m2"), (((0, 0.2), (0, 0.9)), "m1")])
def test_of_two_servers_of_one_model_the_one_with_the_shorter_queue_is_asked(
    build: Build, task: Make, one: Server, two: Server, loads: Any, wins: str
) -> None:
    one.metrics, two.metrics = (metrics(*load) for load in loads)
    replies = asyncio.run(asked(build(**settings(at(one), at(two))), [task(str(i)) for i in range(5)], together=False))
    assert {reply.model for reply in replies} == {wins}
    assert one.gets["/metrics"] <= 2


def test_equal_servers_share_a_crowd(build: Build, task: Make, one: Server, two: Server) -> None:
    one.metrics = two.metrics = metrics(0, 0.0)
    one.delay_s = two.delay_s = 0.3
    asyncio.run(asked(build(**settings(at(one), at(two))), [task(str(i)) for i in range(20)]))
    assert 8 <= one.posts <= 12


def test_another_model_of_the_tier_keeps_its_place_however_free_it_is(
    build: Build, task: Make, one: Server, two: Server
) -> None:
    one.metrics, two.metrics = metrics(9, 0.9), metrics(0, 0.0)
    router = build(**settings(at(one), at(two, model="hosted_vllm/other")))
    (reply,) = asyncio.run(asked(router, [task()]))
    assert reply.model == "m1"


def test_hearts_beat_only_while_calls_are_made(build: Build, task: Make, one: Server) -> None:
    router = build(**settings(at(one)))

    async def course() -> tuple[int, int, int]:
        await router.ask(task("quick"))
        before = sum(one.gets.values())
        await asyncio.sleep(0.5)
        idle = sum(one.gets.values())
        one.delay_s = 0.6
        await router.ask(task("slow"))
        during = sum(one.gets.values())
        await router.close()
        return before, idle, during

    before, idle, during = asyncio.run(course())
    assert before == idle <= 2
    assert during - idle >= 3


def test_no_look_is_a_paid_call_and_strangers_are_left_in_peace(build: Build, task: Make, one: Server) -> None:
    one.delay_s = 0.5
    asyncio.run(asked(build(**settings(at(one, **PAID))), [task()]))
    assert one.gets == {"/v1/models": 1}
    assert one.posts == 1


def test_time_is_handed_in(build: Build, task: Make, one: Server) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    one.statuses = [503, 503]
    timing = replace(Timing(), sleep=sleep, chance=lambda: 0.0)
    health = QUICK | {"heartbeat_seconds": 0}
    asyncio.run(asked(build(timing=timing, **settings(at(one), retries=2, health=health)), [task()]))
    assert slept == [0.5, 1.0]
