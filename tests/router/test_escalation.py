"""A small model's failure goes up with its reason; what was learned steers the next call, and is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from alphaloom.ledger import Ledger
from alphaloom.router import AccessRefused, ModelFailed, ReplyRefused, Router, Task
from alphaloom.router.calls.recorded_calls import ROUTE_EVENT
from alphaloom.router.endpoints.failures import ServerRefused

from .scripted import ScriptedModel, ScriptedReply

Make = Callable[..., Task]
Build = Callable[..., Router]
MODELS = {
    "small": {"model": "double/small", "place": "local", "input_cost_per_mtok": 1, "output_cost_per_mtok": 1},
    "large": {"model": "double/large", "tier": "frontier", "input_cost_per_mtok": 100, "output_cost_per_mtok": 100},
}
GOOD, BAD = ScriptedReply('{"text": "calm names", "direction": 1}'), ScriptedReply("not JSON")
DOWN = ServerRefused(400, "no such model", {})


def routed(build: Build, double: ScriptedModel, *script: ScriptedReply | Exception, **routing: Any) -> Router:
    double.script = list(script)
    return build(models=MODELS, routing=routing, roles={"factor": "local"})


def asked_of(double: ScriptedModel) -> list[str]:
    return [str(call["model"]).rpartition("/")[2] for call in double.seen]


def test_the_cascade_takes_the_failure_along_and_counts_what_was_spent(
    build: Build, double: ScriptedModel, ledger: Ledger, task: Make
) -> None:
    reply = asyncio.run(routed(build, double, BAD, BAD, GOOD).ask(task()))
    assert asked_of(double) == ["small", "small", "large"]
    assert "does not fit the schema" in str(double.seen[-1]["messages"])
    assert (reply.tier, reply.repairs, reply.tokens_in) == ("frontier", 2, 300)
    last = ledger.events.get("one", ROUTE_EVENT, reply.key)
    assert last is not None
    assert last.body["tier"] == "frontier"
    assert "2 replies of the local tier did not fit" in last.body["reason"]


def test_the_direct_policy_stays_where_it_is(build: Build, double: ScriptedModel, task: Make) -> None:
    with pytest.raises(ReplyRefused):
        asyncio.run(routed(build, double, BAD, policy="direct").ask(task()))
    assert asked_of(double) == ["small"] * 3


def test_a_reply_that_was_cut_off_is_a_failure_like_any_other(build: Build, double: ScriptedModel, task: Make) -> None:
    reply = asyncio.run(
        routed(build, double, ScriptedReply('{"text": "calm', finish="length"), GOOD, local_tries=1).ask(task())
    )
    assert reply.tier == "frontier"
    assert "cut off" in str(double.seen[-1]["messages"])


def test_what_was_refused_again_and_again_is_repaired_above(build: Build, double: ScriptedModel, task: Make) -> None:
    routing = routed(build, double, GOOD)
    assert asyncio.run(routing.ask(task(refused=1))).tier == "local"
    assert asyncio.run(routing.ask(task(refused=2, seed=9))).tier == "frontier"


def test_a_fixed_role_keeps_its_escalation_where_others_learn(build: Build, double: ScriptedModel, task: Make) -> None:
    reply = asyncio.run(routed(build, double, BAD, BAD, GOOD, policy="learned").ask(task()))
    assert (asked_of(double), reply.tier) == (["small", "small", "large"], "frontier")


def test_replies_are_not_compared_where_no_tier_is_above(build: Build, double: ScriptedModel, task: Make) -> None:
    double.script = [GOOD]
    router = build(models={"small": MODELS["small"]}, roles={"factor": "local"})
    asyncio.run(router.ask(task(compared=("direction",))))
    assert len(double.seen) == 1


@pytest.mark.parametrize(("policy", "tier"), [("cascade", "frontier"), ("learned", "frontier"), ("direct", "local")])
def test_a_reply_that_its_asker_has_no_use_for_goes_up(
    build: Build, double: ScriptedModel, ledger: Ledger, task: Make, policy: str, tier: str
) -> None:
    async def check(reply: Any) -> str:
        return f"nobody wants {reply.text}"

    reply = asyncio.run(routed(build, double, GOOD, GOOD, policy=policy).ask(task(check=check)))
    assert (reply.tier, asked_of(double)) == (tier, ["small", "large"] if tier == "frontier" else ["small"])
    event = ledger.events.get("one", ROUTE_EVENT, reply.key)
    assert event is not None
    assert ("nobody wants calm names" in event.body["reason"]) == (tier == "frontier")


@pytest.mark.parametrize("above", [[DOWN], [BAD]], ids=["away", "says nothing that fits"])
def test_a_reply_of_no_use_never_stands_where_the_tier_above_gives_none(
    build: Build, double: ScriptedModel, task: Make, above: list[ScriptedReply | Exception]
) -> None:
    async def check(_reply: Any) -> str:
        return "nobody wants it"

    with pytest.raises((ReplyRefused, ModelFailed)):
        asyncio.run(routed(build, double, BAD, BAD, GOOD, *above, local_tries=3).ask(task(check=check)))
    assert asked_of(double)[:4] == ["small"] * 3 + ["large"]
    assert len(double.seen[3]["messages"]) == len(double.seen[0]["messages"]), "the tier above begins anew"


def test_what_was_learned_steers_and_a_resumed_run_asks_for_nothing_again(
    build: Build, double: ScriptedModel, ledger: Ledger, task: Make
) -> None:
    """The small model never succeeds here: after a while it is seldom asked, and what was paid stays paid."""
    double.script = [BAD]
    routing = {"policy": "learned", "most_hard": 1.0}
    tasks = [task(f"Which field holds volume, number {seed}?", role="data", seed=seed) for seed in range(40)]

    async def ask_all() -> list[str]:
        router, found = build(models=MODELS, routing=routing), []
        for each in tasks:
            try:
                found.append((await router.ask(each)).tier)
            except ReplyRefused:
                found.append("none")
        return found

    first = asyncio.run(ask_all())
    asked = asked_of(double)
    assert asked[:40].count("small") > asked[-40:].count("small")
    assert asyncio.run(ask_all()) == first
    assert asked_of(double) == asked, "nothing is asked, so nothing is paid, twice"
    assert len(ledger.calls.of("one")) == len(asked)


@pytest.mark.parametrize(("second", "tier"), [(1, "local"), (-1, "frontier")])
def test_replies_that_disagree_go_up(build: Build, double: ScriptedModel, task: Make, second: int, tier: str) -> None:
    script = [GOOD, ScriptedReply(f'{{"text": "other words", "direction": {second}}}'), ScriptedReply("not JSON"), GOOD]
    reply = asyncio.run(routed(build, double, *script).ask(task(compared=("direction",))))
    assert reply.tier == tier
    assert asked_of(double) == ["small"] * 3 + ["large"] * (tier == "frontier")
    assert reply.tokens_in == 100 * len(double.seen), "what was asked in vain is counted"


def test_a_reply_that_fits_is_never_given_up_for_want_of_a_further_try(
    build: Build, double: ScriptedModel, task: Make
) -> None:
    other = ScriptedReply('{"text": "other words", "direction": -1}')
    router = routed(build, double, BAD, BAD, GOOD, other, other, local_tries=3)
    reply = asyncio.run(router.ask(task(compared=("direction",))))
    assert (reply.tier, reply.value.direction) == ("local", 1)


@pytest.mark.parametrize("above", [[DOWN], [BAD]], ids=["away", "says nothing that fits"])
def test_a_reply_that_fits_stands_where_the_tier_above_gives_none(
    build: Build, double: ScriptedModel, task: Make, above: list[ScriptedReply | Exception]
) -> None:
    disputed = [GOOD, ScriptedReply('{"text": "other words", "direction": -1}'), BAD]
    reply = asyncio.run(routed(build, double, *disputed, *above).ask(task(compared=("direction",))))
    assert (reply.tier, reply.value.direction, asked_of(double)[3]) == ("local", 1, "large")


def test_a_wrong_key_of_the_tier_above_is_told_at_once(build: Build, double: ScriptedModel, task: Make) -> None:
    refused = ServerRefused(401, "no such key", {})
    with pytest.raises(AccessRefused):
        asyncio.run(routed(build, double, BAD, BAD, refused, GOOD).ask(task()))
    assert asked_of(double) == ["small", "small", "large"]


def test_where_the_tier_above_is_away_the_own_one_repairs_its_reply(
    build: Build, double: ScriptedModel, task: Make
) -> None:
    reply = asyncio.run(routed(build, double, BAD, BAD, DOWN, GOOD).ask(task()))
    assert (reply.tier, asked_of(double)) == ("local", ["small", "small", "large", "small"])


def test_where_money_ends_among_replies_that_are_compared_the_one_that_fits_stands(
    build: Build, double: ScriptedModel, ledger: Ledger, task: Make
) -> None:
    double.script = [GOOD]
    router = build(models=MODELS, roles={"factor": "local"}, budget={"calls": 2})
    reply = asyncio.run(router.ask(task(compared=("direction",))))
    assert (reply.tier, reply.key) == ("local", ledger.calls.of("one")[0].key)
    assert len(double.seen) == 2


def test_where_only_a_large_model_is_set_up_its_price_stays_told_when_a_reply_goes_up(
    build: Build, double: ScriptedModel, ledger: Ledger, task: Make
) -> None:
    double.script = [BAD, BAD, GOOD]
    router = build(models={"large": MODELS["large"]}, roles={"factor": "local"})
    reply = asyncio.run(router.ask(task()))
    told = ledger.events.get("one", ROUTE_EVENT, reply.key)
    assert told is not None
    assert told.body["cost_usd"] > 0
