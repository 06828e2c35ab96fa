import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alphaloom.ledger import Ledger, UnknownRun, compute_digest
from alphaloom.router import (
    AccessRefused,
    BudgetEnded,
    Confidential,
    ModelFailed,
    NoModel,
    ReplyRefused,
    RequestRefused,
    Router,
    Task,
)
from alphaloom.router.endpoints.failures import ServerRefused

from .scripted import ScriptedModel, ScriptedReply

Build = Callable[..., Router]
Make = Callable[..., Task]
GOOD = ScriptedReply('{"text": "reversal", "direction": -1}')
BAD = ScriptedReply('{"text": "reversal", "direction": "down"}')
SMALL = {"model": "double/small", "place": "local", "input_cost_per_mtok": 1, "output_cost_per_mtok": 10}
LARGE = {"model": "double/large", "tier": "frontier", "input_cost_per_mtok": 3, "output_cost_per_mtok": 15}


def refused(status: int, words: str) -> Exception:
    """Return the error of a server's refusal."""
    return ServerRefused(status, words, {})


REFUSALS = {
    "429": refused(429, "slow down"),
    "500": refused(500, "broken"),
    "400": refused(400, "too long"),
    "401": refused(401, "bad key sk-0123456789"),
}


def test_a_reply_is_a_record_of_the_schema_with_its_price(build: Build, task: Make, ledger: Ledger) -> None:
    reply = asyncio.run(build().ask(task()))
    assert (reply.value.text, reply.value.direction) == ("reversal", -1)
    assert (reply.model, reply.tier, reply.tokens_in, reply.tokens_out) == ("small", "local", 100, 20)
    assert reply.cost_usd == pytest.approx((100 * 1 + 20 * 10) / 1e6)
    assert (reply.cached, reply.repairs) == (False, 0)
    (call,) = ledger.calls.of("one")
    assert (call.key, call.role, call.intent, call.prompt, call.attempts) == (reply.key, "factor", "new", "p" * 64, 1)
    assert json.loads(ledger.objects.get(call.request))["messages"][1] == {"role": "user", "content": "propose"}


def test_schema_seed_and_length_reach_the_model(build: Build, task: Make, double: ScriptedModel) -> None:
    asyncio.run(build().ask(task(max_tokens=90)))
    (seen,) = double.seen
    assert (seen["model"], seen["seed"], seen["max_tokens"]) == ("small", 7, 90)
    described = seen["response_format"]["json_schema"]
    assert seen["response_format"]["type"] == "json_schema"
    assert described["name"] == "Idea"
    assert described["strict"] is True
    assert described["schema"]["required"] == ["text", "direction"]


def test_the_same_task_is_sent_once_ever(build: Build, task: Make, double: ScriptedModel) -> None:
    first = asyncio.run(build().ask(task()))
    again = asyncio.run(build().ask(task()))
    assert len(double.seen) == 1
    assert (again.value, again.key, again.cached) == (first.value, first.key, True)


def test_another_router_needs_no_model_library_for_what_is_recorded(
    build: Build, task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(build().ask(task()))
    monkeypatch.setattr("alphaloom.router.calls.recorded_calls.ModelBackend", None)
    assert asyncio.run(build().ask(task())).cached


def test_equal_tasks_at_once_are_sent_once(build: Build, task: Make, double: ScriptedModel) -> None:
    async def many() -> list[Any]:
        router = build()
        return list(await asyncio.gather(*(router.ask(task()) for _ in range(20))))

    assert len({reply.key for reply in asyncio.run(many())}) == 1
    assert len(double.seen) == 1


@pytest.mark.parametrize("changes", [{"seed": 8}, {"max_tokens": 10}, {"text": "other"}])
def test_whatever_could_change_the_reply_changes_the_key(build: Build, task: Make, changes: dict[str, Any]) -> None:
    router = build()
    assert asyncio.run(router.ask(task())).key != asyncio.run(router.ask(task(**changes))).key


def test_the_key_is_the_hash_of_what_is_asked_and_of_nothing_else(build: Build, task: Make) -> None:
    integer, string = ({"title": name, "type": kind} for name, kind in (("Direction", "integer"), ("Text", "string")))
    request: dict[str, Any] = {
        "model": "double/small",
        "messages": [{"role": "system", "content": "You are."}, {"role": "user", "content": "propose"}],
        "schema": {
            "additionalProperties": False,
            "properties": {"text": string, "direction": integer},
            "required": ["text", "direction"],
            "title": "Idea",
            "type": "object",
        },
        "sampling": {"max_tokens": 4000, "seed": 7},
    }
    assert asyncio.run(build().ask(task())).key == compute_digest(request)


def test_a_bad_reply_is_repaired_with_the_exact_error(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger
) -> None:
    double.script = [BAD, GOOD]
    reply = asyncio.run(build().ask(task()))
    assert (reply.repairs, reply.tokens_in, reply.value.direction) == (1, 200, -1)
    first, second = double.seen
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": BAD.text}
    assert second["messages"][3]["content"] == (
        "Your reply does not fit the schema:\n"
        "- direction: Input should be a valid integer, unable to parse string as an integer\n"
        "Send the whole reply again, corrected: JSON only."
    )
    assert len(ledger.calls.of("one")) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        (ScriptedReply('{"text": "x", "direction": 1}', finish="length"), "cut off after 20 tokens"),
        (ScriptedReply(""), "the reply was empty"),
        (ScriptedReply("Sure! Here it is"), "Invalid JSON"),
        (ScriptedReply('{"text": "x"}'), "direction: Field required"),
        (ScriptedReply('{"text": "x", "direction": 1, "more": 2}'), "more: Extra inputs are not permitted"),
        (BAD, "direction: Input should be a valid integer"),
    ],
)
def test_two_repairs_are_made_and_no_more(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger, tmp_path: Path, wrong: tuple[ScriptedReply, str]
) -> None:
    line, reason = wrong
    double.script = [line]
    with pytest.raises(ReplyRefused, match="after 2 repairs") as caught:
        asyncio.run(build().ask(task()))
    assert reason in str(caught.value)
    assert (tmp_path / "workspace" / caught.value.hint.rpartition(": ")[2].split(", ")[0]).is_file()
    assert len(double.seen) == len(ledger.calls.of("one")) == 3
    with pytest.raises(ReplyRefused):
        asyncio.run(build().ask(task()))
    assert len(double.seen) == 3


def test_a_reply_in_a_code_fence_is_read(build: Build, task: Make, double: ScriptedModel) -> None:
    double.script = [ScriptedReply(f"```json\n{GOOD.text}\n```")]
    assert asyncio.run(build().ask(task())).value.direction == -1


def test_a_refusal_to_serve_is_tried_again(build: Build, task: Make, double: ScriptedModel, ledger: Ledger) -> None:
    double.script = [REFUSALS["429"], GOOD]
    reply = asyncio.run(build().ask(task()))
    assert reply.value.direction == -1
    assert [call.attempts for call in ledger.calls.of("one")] == [2]


def test_the_tier_above_answers_when_this_one_does_not(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger
) -> None:
    double.script = [REFUSALS["500"], GOOD]
    reply = asyncio.run(build(models={"small": SMALL, "large": LARGE}, retries=0).ask(task()))
    assert [seen["model"] for seen in double.seen] == ["small", "large"]
    assert (reply.model, reply.tier) == ("large", "frontier")
    assert reply.cost_usd == pytest.approx((100 * 3 + 20 * 15) / 1e6)


def test_no_reply_at_all_is_said_and_costs_nothing(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger
) -> None:
    double.script = [REFUSALS["500"]]
    router = build(retries=0)
    with pytest.raises(ModelFailed, match=r"no reply from small: .*broken") as caught:
        asyncio.run(router.ask(task()))
    assert caught.value.exit_code == 3
    assert ledger.calls.of("one") == []
    double.script = [GOOD]
    assert asyncio.run(build(budget={"calls": 1}).ask(task())).value.direction == -1


@pytest.mark.parametrize(("status", "kind"), [("401", AccessRefused), ("400", RequestRefused), ("429", ModelFailed)])
def test_whether_asking_again_may_help_is_told_apart(
    build: Build, task: Make, double: ScriptedModel, status: str, kind: type[ModelFailed]
) -> None:
    double.script = [REFUSALS[status]]
    with pytest.raises(ModelFailed) as caught:
        asyncio.run(build(retries=0).ask(task()))
    assert type(caught.value) is kind
    assert caught.value.hint


def test_a_call_cap_holds_under_fifty_at_once_and_after_a_restart(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger
) -> None:
    async def many() -> list[Any]:
        router = build(budget={"calls": 10})
        return list(await asyncio.gather(*(router.ask(task(str(i))) for i in range(50)), return_exceptions=True))

    for _ in range(2):
        outcomes = asyncio.run(many())
        assert sum(isinstance(outcome, BudgetEnded) for outcome in outcomes) == 40
        assert len(double.seen) == len(ledger.calls.of("one")) == 10
    (error,) = {str(outcome) for outcome in outcomes if isinstance(outcome, BudgetEnded)}
    assert error.startswith("budget.calls: the model budget is spent: 10 of 10 calls")


@pytest.mark.parametrize("budget", [{"tokens": 1000}, {"usd": 0.0035}])
def test_tokens_and_money_are_never_passed_however_calls_overlap(
    build: Build, task: Make, ledger: Ledger, budget: dict[str, float]
) -> None:
    async def many() -> list[Any]:
        router = build(budget=budget)
        tasks = [task(str(i), max_tokens=200) for i in range(30)]
        return list(await asyncio.gather(*(router.ask(request) for request in tasks), return_exceptions=True))

    outcomes = asyncio.run(many())
    calls = ledger.calls.of("one")
    assert any(isinstance(outcome, BudgetEnded) for outcome in outcomes)
    assert len(calls) >= 4
    assert sum(call.tokens_in + call.tokens_out for call in calls) <= budget.get("tokens", 1e9)
    assert sum(call.cost_usd for call in calls) <= budget.get("usd", 1e9)


def test_the_budget_ends_at_the_same_call_alone_or_together(build: Build, task: Make, ledger: Ledger) -> None:
    async def together(run: str) -> int:
        router = build(budget={"tokens": 1000})
        tasks = [task(str(i), max_tokens=200, run=run) for i in range(12)]
        outcomes = await asyncio.gather(*(router.ask(request) for request in tasks), return_exceptions=True)
        return sum(not isinstance(outcome, Exception) for outcome in outcomes)

    async def alone() -> int:
        router, answered = build(budget={"tokens": 1000}), 0
        for i in range(12):
            try:
                await router.ask(task(str(i), max_tokens=200, run="two", seed=9))
                answered += 1
            except BudgetEnded:
                continue
        return answered

    assert asyncio.run(together("one")) == asyncio.run(alone())


def test_repairs_count_against_the_cap(build: Build, task: Make, double: ScriptedModel) -> None:
    double.script = [BAD]
    with pytest.raises(BudgetEnded) as caught:
        asyncio.run(build(budget={"calls": 2}).ask(task()))
    assert caught.value.exit_code == 4
    assert len(double.seen) == 2


def test_another_run_reuses_replies_and_ends_where_the_first_one_ended(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger
) -> None:
    router = build(budget={"calls": 2})
    for run in ("one", "two"):
        for text in ("a", "b"):
            asyncio.run(router.ask(task(text, run=run)))
        with pytest.raises(BudgetEnded):
            asyncio.run(router.ask(task("c", run=run)))
    assert len(double.seen) == 2
    assert router.spend("one").record() == router.spend("two").record()
    assert [call.attempts for call in ledger.calls.of("two")] == [0, 0]


def test_the_bill_is_split_by_role_and_by_model(build: Build, task: Make) -> None:
    router = build(models={"small": SMALL, "large": LARGE})
    for role in ("factor", "idea", "idea"):
        asyncio.run(router.ask(task(role, role=role)))
        asyncio.run(router.ask(task(role, role=role)))
    spend = router.spend("one")
    assert (spend.calls, spend.tokens_in, spend.tokens_out) == (2, 200, 40)
    assert {role: bill.calls for role, bill in spend.by_role.items()} == {"factor": 1, "idea": 1}
    assert spend.usd == pytest.approx(spend.by_model["small"].usd + spend.by_model["large"].usd)
    assert json.loads(json.dumps(spend.record()))["by_role"]["idea"]["usd"] == pytest.approx(0.0006)


def test_a_run_that_never_started_is_refused_before_anything_is_paid(
    build: Build, task: Make, double: ScriptedModel
) -> None:
    with pytest.raises(UnknownRun):
        asyncio.run(build().ask(task(run="ghost")))
    assert double.seen == []


def test_a_missing_key_names_its_variable(build: Build, task: Make, double: ScriptedModel) -> None:
    with pytest.raises(NoModel, match="the environment variable MY_KEY is not set") as caught:
        asyncio.run(build(models={"large": LARGE | {"api_key_env": "MY_KEY"}}).ask(task()))
    assert caught.value.exit_code == 3
    assert double.seen == []


def test_no_key_is_ever_written_down_or_said(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-0123456789"
    router = build({"MY_KEY": key}, models={"large": LARGE | {"api_key_env": "MY_KEY"}}, retries=0)
    asyncio.run(router.ask(task()))
    double.script = [REFUSALS["401"]]
    with pytest.raises(ModelFailed) as failed:
        asyncio.run(router.ask(task("again")))
    with pytest.raises(Confidential) as leaked:
        asyncio.run(router.ask(task(f"my key is {key}")))
    ledger.close()
    stored = b"".join(path.read_bytes() for path in ledger.workspace.rglob("*") if path.is_file())
    assert key.encode() not in stored
    assert key not in str(failed.value) + str(leaked.value) + str(failed.value.record()) + caplog.text


def test_a_model_without_a_known_price_is_refused(build: Build, task: Make, double: ScriptedModel) -> None:
    with pytest.raises(NoModel, match="the price of double/large is not known"):
        asyncio.run(build(models={"large": {"model": "double/large"}}).ask(task()))
    assert double.seen == []


WONT = ScriptedReply("I can't help with that.", finish="content_filter")
HELD_BACK = ScriptedReply("", finish="content_filter")


def test_a_refusal_is_said_in_the_models_own_words_and_not_asked_for_again(
    build: Build, task: Make, double: ScriptedModel
) -> None:
    double.script = [WONT]
    for _ in range(2):  # a resumed run asks nobody again
        with pytest.raises(ReplyRefused) as refused:
            asyncio.run(build().ask(task()))
        assert refused.value.message == "small gave no reply: it refused: I can't help with that."
        assert len(double.seen) == 1


def test_a_second_model_is_asked_for_what_the_first_refused(build: Build, task: Make, double: ScriptedModel) -> None:
    double.script = [WONT, GOOD]
    models = {"small": SMALL, "large": LARGE}
    reply = asyncio.run(build(models=models).ask(task()))
    assert (reply.model, [seen["model"] for seen in double.seen]) == ("large", ["small", "large"])


def test_who_refused_and_whose_reply_did_not_fit_are_told_apart(
    build: Build, task: Make, double: ScriptedModel
) -> None:
    double.script = [HELD_BACK, BAD]
    with pytest.raises(ReplyRefused) as refused:
        asyncio.run(build(models={"small": SMALL, "large": LARGE}).ask(task()))
    first, second, *reasons = refused.value.message.split("\n")
    assert first == "small gave no reply: its provider's content filter held it back"
    assert second == "large gave no reply that fits Idea, after 2 repairs:"
    assert "direction" in "".join(reasons)
    assert len(double.seen) == 4


def test_a_refusal_of_a_repair_ends_the_repairs(build: Build, task: Make, double: ScriptedModel) -> None:
    double.script = [BAD, WONT]
    with pytest.raises(ReplyRefused, match="small gave no reply: it refused"):
        asyncio.run(build().ask(task()))
    assert len(double.seen) == 2
