"""Several processes spend from one budget, and one of them may be killed."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from alphaloom.router import BudgetEnded

from ..ledger import postgres
from ..ledger.postgres import Cluster
from . import spender

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2] / ".root"
KINDS = ["file"] if postgres.lacking() else ["file", "postgres"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from postgres.cluster()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Return a workspace and the address of its record."""
    address = request.getfixturevalue("cluster").database() if request.param == "postgres" else ""
    return str(tmp_path / "workspace"), address


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Let a database be reached; nothing else is asked for."""


@contextmanager
def process(place: tuple[str, str], run: str, numbers: range, budget: Any, seconds: float) -> Iterator[Any]:
    arguments = [str(ROOT), *place, run, json.dumps([*numbers]), json.dumps(budget), str(seconds)]
    command = [sys.executable, str(Path(spender.__file__)), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def spent(place: tuple[str, str]) -> tuple[int, float]:
    """Return how many calls are recorded, and their price."""
    with spender.ledger(*place) as ledger:
        assert ledger.holds.open() == []
        calls = ledger.holds.calls(day="2026-01-02")
        assert calls == ledger.holds.calls(tenant="desk")
        return len(calls), sum(call.cost_usd for call in calls)


BUDGETS = [
    ({"day_usd": 10.0, "usd": 100.0}, ("a", "b", "c", "d")),
    ({"tenants": {"desk": {"usd": 10.0}}, "usd": 100.0}, ("a", "b", "c", "d")),
    ({"usd": 10.0}, ("a", "a", "a", "a")),
]
PARTS = [range(first, first + 50) for first in range(0, 200, 50)]


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "runs"), BUDGETS, ids=["day", "tenant", "run"])
def test_200_callers_in_four_processes_never_pass_a_budget_of_ten(
    place: tuple[str, str], budget: Any, runs: tuple[str, ...]
) -> None:
    with ExitStack() as stack:
        started = [
            stack.enter_context(process(place, run, part, budget, 0.02)) for run, part in zip(runs, PARTS, strict=True)
        ]
        told = [worker.communicate(timeout=240) for worker in started]
    outcomes = [json.loads(out.splitlines()[-1]) for out, _ in told]
    sent = sum(line.startswith("sent") for out, _ in told for line in out.splitlines())
    calls, usd = spent(place)
    assert [outcome["other"] for outcome in outcomes] == [[], [], [], []]
    assert sum(outcome["ended"] for outcome in outcomes) == 200 - calls > 0
    assert sent == calls  # nothing was paid for twice
    print(f"{calls} calls, {usd:.3f} of 10 USD, {outcomes}")
    assert 10 - 2 * spender.WORST < usd <= 10


@pytest.mark.parametrize("run", ["theirs", pytest.param("mine", marks=pytest.mark.slow)])
@pytest.mark.parametrize("cap", [0.5, 0.8])
def test_what_a_killed_process_held_is_not_under_way_but_stays_counted(
    place: tuple[str, str], run: str, cap: float
) -> None:
    """The cost of the killed call, at most 0.3 USD, is unknown: another one fits under a cap of 0.8, not of 0.5."""
    if place[1] and run == "mine":
        pytest.skip("a database elsewhere waits for the longest time of a call: see tests/ledger/test_holds.py")
    budget = {"day_usd": cap}

    async def ask(router: Any, other: Any) -> float | None:
        waiting = asyncio.create_task(router.ask(spender.task(run, 0)))
        done, _ = await asyncio.wait([waiting], timeout=0.5)
        assert cap > 0.5 or not done  # the other's call may take 0.3 of 0.5 USD
        other.kill()
        other.wait()
        try:
            return float((await asyncio.wait_for(waiting, 60)).cost_usd)
        except BudgetEnded:
            return None
        finally:
            await router.close()

    with process(place, "theirs", range(1), budget, 600.0) as other:
        assert other.stdout.readline() == "sent 0\n", other.stderr.read()
        with spender.ledger(*place, run) as ledger:
            paid = asyncio.run(ask(spender.router(ledger, budget, 0.0), other))
            assert (paid is None) == (cap == 0.5)
            ledger.holds.lapse("theirs")
            assert ledger.holds.open() == []
            assert len(ledger.calls.of(run)) == (cap > 0.5)


@pytest.mark.slow
def test_a_call_that_another_process_has_sent_is_waited_for_and_not_paid_twice(place: tuple[str, str]) -> None:
    async def ask(router: Any) -> bool:
        reply = await asyncio.wait_for(router.ask(spender.task("theirs", 0)), 60)
        await router.close()
        return bool(reply.cached)

    with process(place, "theirs", range(1), {}, 2.0) as other:
        assert other.stdout.readline() == "sent 0\n", other.stderr.read()
        with spender.ledger(*place, "theirs") as ledger:
            assert asyncio.run(ask(spender.router(ledger, {}, 0.0)))
            assert len(ledger.calls.of("theirs")) == 1
            assert other.wait(timeout=300) == 0
