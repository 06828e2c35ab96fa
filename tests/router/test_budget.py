import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger import Event, Ledger, ModelCall, Run
from alphaloom.router import BudgetEnded, ModelBudget, Router, Task
from alphaloom.router.calls.caps import Amount, RunAccount

from .scripted import ScriptedModel, ScriptedReply

wishes = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60), st.integers(0, 5)), max_size=12)
_keys = count()


def call(tokens: int = 0, usd: float = 0.0, **more: str) -> ModelCall:
    fields = {"key": f"k{next(_keys)}", "run": "one", "tenant": ""} | more
    own = {
        "role": "idea",
        "intent": "new",
        "tier": "local",
        "model": "small",
        "prompt": "p",
        "request": "q",
        "reply": "r",
    }
    return ModelCall(**fields, **own, tokens_in=tokens, tokens_out=0, cost_usd=usd)  # type: ignore[arg-type]


def note(call: ModelCall) -> Event:
    return Event(call.run, "route", call.key, {})


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shared(tmp_path: Path, clock: Clock) -> Callable[[], Ledger]:
    """Return what opens one more ledger on the same workspace, as another process would."""

    def open_one() -> Ledger:
        ledger = Ledger.open(tmp_path / "shared", clock=clock)
        for run in ("one", "two"):
            ledger.runs.start(Run(run, {}, 1, "data", "2026-01-02"))
        return ledger

    return open_one


async def pay(account: RunAccount, took: ModelCall, worst: float, steps: int = 0) -> None:
    """Hold the worst of a call, let others go first so many times, and settle it."""
    async with account.reserve(took.key, Amount(0, worst), 60.0, took.tenant) as hold:
        assert hold is not None
        for _ in range(steps):
            await asyncio.sleep(0)
        account.settle(hold, took, note(took))


async def spend(
    ledger: Ledger, budget: ModelBudget, asked: list[tuple[int, int, int]], *, together: bool
) -> tuple[list[bool], int]:
    """Ask for each (worst, share of it really taken, steps it lasts); return which fitted, and the tokens spent."""
    run = "together" if together else "alone"
    ledger.runs.start(Run(run, {}, 1, "data", "2026-01-02"))
    account = RunAccount(ledger, budget, run)

    async def one(worst: int, taken: int, steps: int) -> bool:
        took = call(min(taken, worst), run=run)
        try:
            async with account.reserve(took.key, Amount(worst), 60.0) as hold:
                assert hold is not None
                for _ in range(steps):
                    await asyncio.sleep(0)
                account.settle(hold, took, note(took))
            return True
        except BudgetEnded:
            return False

    if together:
        fitted = list(await asyncio.gather(*(one(*arguments) for arguments in asked)))
    else:
        fitted = [await one(*arguments) for arguments in asked]
    return fitted, sum(call.tokens_in + call.tokens_out for call in ledger.calls.of(run))


@given(asked=wishes, tokens=st.integers(0, 150), calls=st.integers(0, 12))
def test_the_budget_ends_at_the_same_call_together_as_one_by_one(
    asked: list[tuple[int, int, int]], tokens: int, calls: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    budget = ModelBudget(calls=calls, tokens=tokens)
    with Ledger.open(tmp_path_factory.mktemp("w"), clock=Clock()) as ledger:
        together = asyncio.run(spend(ledger, budget, asked, together=True))
        assert together == asyncio.run(spend(ledger, budget, asked, together=False))
        assert ledger.holds.open() == []
    assert together[1] <= tokens
    assert sum(together[0]) <= calls


def test_a_failed_call_gives_back_what_it_held(ledger: Ledger) -> None:
    account = RunAccount(ledger, ModelBudget(calls=1), "one")

    async def fail() -> None:
        async with account.reserve("k", Amount(), 60.0):
            raise OSError("broken")

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await fail()

    asyncio.run(twice())
    assert not ledger.calls.of("one")
    assert not ledger.holds.open()


def test_what_was_recorded_before_counts(ledger: Ledger) -> None:
    for tokens in (60, 30):
        ledger.calls.add(call(tokens))
    account = RunAccount(ledger, ModelBudget(calls=2, tokens=100), "one")
    with pytest.raises(BudgetEnded, match="2 of 2 calls, and the next call may need 1"):
        asyncio.run(account.enter(call(5), note(call(5))))


CAPS = [
    (ModelBudget(day_usd=1.0), "the model budget of all runs on 2026-01-02 (UTC) is spent: 0.7 of 1 usd"),
    (
        ModelBudget.model_validate({"tenants": {"desk": {"usd": 1.0}}}),
        "the model budget of the tenant desk is spent: 0.7 of 1 usd",
    ),
    (
        ModelBudget.model_validate({"tenants": {"desk": {"day_usd": 1.0}}}),
        "the model budget of the tenant desk on 2026-01-02 (UTC) is spent: 0.7 of 1 usd",
    ),
]


@pytest.mark.parametrize(("budget", "said"), CAPS)
def test_a_cap_over_all_runs_counts_what_another_ledger_of_the_workspace_spends(
    shared: Callable[[], Ledger], budget: ModelBudget, said: str
) -> None:
    with shared() as mine, shared() as theirs:
        asyncio.run(pay(RunAccount(theirs, budget, "two"), call(usd=0.7, run="two", tenant="desk"), 0.9))
        account = RunAccount(mine, budget, "one")
        with pytest.raises(BudgetEnded) as ended:
            asyncio.run(pay(account, call(usd=0.1, tenant="desk"), 0.4))
        assert said in str(ended.value)
        assert "and the next call may need 0.4" in str(ended.value)
        assert ended.value.exit_code == 4
        asyncio.run(pay(account, call(usd=0.3, tenant="desk"), 0.3))


def test_a_day_ends_at_midnight_utc_and_a_tenant_does_not(shared: Callable[[], Ledger], clock: Clock) -> None:
    budget = ModelBudget.model_validate({"day_usd": 1.0, "tenants": {"desk": {"usd": 1.5, "day_usd": 1.0}}})
    with shared() as ledger:
        account = RunAccount(ledger, budget, "one")
        asyncio.run(pay(account, call(usd=1.0, tenant="desk"), 1.0))
        clock.now = datetime.fromisoformat("2026-01-03T00:30:00+01:00")  # still the 2nd in UTC
        with pytest.raises(BudgetEnded, match="on 2026-01-02"):
            asyncio.run(pay(account, call(usd=0.1, tenant="desk"), 0.1))
        clock.now = datetime.fromisoformat("2026-01-03T01:30:00+01:00")
        asyncio.run(pay(account, call(usd=0.5, tenant="desk"), 0.5))
        with pytest.raises(BudgetEnded, match=r"of the tenant desk is spent: 1\.5 of 1\.5 usd"):
            asyncio.run(pay(account, call(usd=0.1, tenant="desk"), 0.1))
        asyncio.run(pay(account, call(usd=0.5, tenant="other"), 0.5))


def test_one_waits_for_a_call_of_another_run_that_may_leave_room(shared: Callable[[], Ledger]) -> None:
    budget = ModelBudget(day_usd=1.0)

    async def both(first: Ledger, second: Ledger) -> None:
        slow = pay(RunAccount(first, budget, "two"), call(usd=0.1, run="two"), 0.9, steps=50)
        await asyncio.gather(slow, pay(RunAccount(second, budget, "one"), call(usd=0.9), 0.9))

    with shared() as first, shared() as second:
        asyncio.run(both(first, second))
        assert sum(entry.cost_usd for entry in first.holds.calls(day="2026-01-02")) == pytest.approx(1.0)


def test_what_cannot_fit_is_refused_at_once_and_says_what_is_held(shared: Callable[[], Ledger]) -> None:
    budget = ModelBudget(day_usd=1.0)

    async def refused(ledger: Ledger) -> str:
        async with RunAccount(ledger, budget, "two").reserve("k", Amount(0, 0.5), 60.0):
            with pytest.raises(BudgetEnded) as ended:
                await pay(RunAccount(ledger, budget, "one"), call(usd=1.1), 1.1)
        return str(ended.value)

    with shared() as ledger:
        assert "0 of 1 usd and 0.5 held by calls under way (1), and the next" in asyncio.run(refused(ledger))


Make = Callable[..., Task]
Build = Callable[..., Router]


def test_a_reply_that_another_run_paid_for_takes_nothing_of_the_day(
    build: Build, task: Make, double: ScriptedModel, ledger: Ledger
) -> None:
    double.script = [ScriptedReply('{"text": "x", "direction": 1}', tokens_in=0, tokens_out=4000)]  # 0.04 USD each
    router = build(budget={"day_usd": 0.085})
    for run in ("one", "two"):
        for text in "ab":
            asyncio.run(router.ask(task(text, run=run)))
    with pytest.raises(BudgetEnded, match=r"budget.day_usd: .*2026-01-02 \(UTC\) is spent: 0.08 of 0.085 usd"):
        asyncio.run(router.ask(task("c")))
    assert len(double.seen) == 2


def test_a_tenant_has_its_own_cap_and_its_name_in_the_record(build: Build, task: Make, ledger: Ledger) -> None:
    router = build(budget={"tenants": {"desk": {"usd": 0.0405}}})
    asyncio.run(router.ask(task("a", tenant="desk")))
    with pytest.raises(BudgetEnded, match=r"budget\.tenants\.desk\.usd: the model budget of the tenant desk is spent"):
        asyncio.run(router.ask(task("b", tenant="desk")))
    asyncio.run(router.ask(task("b", tenant="other")))
    assert [entry.tenant for entry in ledger.holds.calls(day="2026-01-02")] == ["desk", "other"]
    assert [entry.key for entry in ledger.holds.calls(tenant="desk")] != [
        entry.key for entry in ledger.holds.calls("2026-01-02", "other")
    ]
