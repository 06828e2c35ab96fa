"""Long work: begun once, asked for often, told as it ended; too much of it is refused."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from alphaloom.evaluation import Evaluator
from alphaloom.ledger import AlphaloomError
from alphaloom.mcp_servers.errors import McpServerError, ToolError
from alphaloom.mcp_servers.jobs import JOBS_AT_ONCE, MAX_ENDED_JOBS, MAX_JOBS_UNDER_WAY, Advance, Jobs

Call = Callable[..., dict[str, Any]]


def ended(jobs: Jobs, name: str) -> dict[str, Any]:
    """Return how a job stands once it is done, after five seconds at the latest."""
    return anyio.run(jobs.wait_for, name, 5.0)


def nothing(_: Advance) -> dict[str, Any]:
    return {}


def test_the_same_work_is_one_job_and_what_failed_may_be_begun_again() -> None:
    jobs, done = Jobs(), list[int]()

    def counted(_: Advance) -> dict[str, int]:
        done.append(1)
        return {"n": len(done)}

    first = jobs.begin("count", {"of": 1}, counted)
    assert ended(jobs, first["job"]) == {**first, "status": "done", "result": {"n": 1}}
    assert jobs.begin("count", {"of": 1}, counted)["status"] == "done"

    def broken(_: Advance) -> dict[str, Any]:
        raise AlphaloomError("no such day", field="day")

    failed = ended(jobs, jobs.begin("count", {"of": 2}, broken)["job"])
    assert (failed["status"], failed["error"]["field"]) == ("failed", "day")
    again = jobs.begin("count", {"of": 2}, lambda _: {"n": 3})
    assert ended(jobs, again["job"])["result"] == {"n": 3}
    assert done == [1]
    jobs.close()


def test_what_breaks_by_a_mistake_of_ours_says_nothing_of_it() -> None:
    jobs = Jobs()
    begun = jobs.begin("break", {}, lambda _: {"n": open("/secret/path").read()})  # noqa: SIM115 - it is to fail
    assert "secret" not in str(ended(jobs, begun["job"]))
    jobs.close()


def test_work_that_runs_says_how_far_it_is() -> None:
    jobs, gate, told = Jobs(), threading.Event(), threading.Event()

    def slow(advance: Advance) -> dict[str, Any]:
        advance(3)
        told.set()
        return {"came": gate.wait(10)}

    job = jobs.begin("slow", {}, slow)["job"]
    assert told.wait(10)
    assert jobs.get(job) == {"job": job, "what": "slow", "status": "running", "steps_done": 3}
    gate.set()
    jobs.close()


def test_jobs_wait_for_each_other_and_too_many_are_refused() -> None:
    jobs, gate = Jobs(), threading.Event()
    told = [jobs.begin("wait", {"n": n}, lambda _: {"came": gate.wait(10)}) for n in range(MAX_JOBS_UNDER_WAY)]
    with pytest.raises(McpServerError, match=str(MAX_JOBS_UNDER_WAY)) as caught:
        jobs.begin("wait", {"n": MAX_JOBS_UNDER_WAY}, nothing)
    assert caught.value.code == "too_many_jobs"
    states = [jobs.get(answer["job"])["status"] for answer in told]
    assert states.count("running") <= JOBS_AT_ONCE
    assert states.count("waiting") >= MAX_JOBS_UNDER_WAY - JOBS_AT_ONCE
    gate.set()
    assert ended(jobs, told[0]["job"])["result"] == {"came": True}
    jobs.close()
    assert {jobs.get(answer["job"])["status"] for answer in told} <= {"done", "cancelled"}


def test_only_the_newest_answers_are_kept() -> None:
    jobs = Jobs()
    names = [jobs.begin("n", {"n": n}, nothing)["job"] for n in range(MAX_JOBS_UNDER_WAY)]
    for n in range(MAX_JOBS_UNDER_WAY, MAX_ENDED_JOBS + MAX_JOBS_UNDER_WAY):
        ended(jobs, names[-1])
        names.append(jobs.begin("n", {"n": n}, nothing)["job"])
    with pytest.raises(McpServerError) as caught:
        jobs.get(names[0])
    assert caught.value.code == "unknown_job"
    assert ended(jobs, names[-1])["status"] == "done"
    jobs.close()


def test_only_what_was_scored_is_looked_at_for_long(call: Call, evaluator: Evaluator) -> None:
    text = "rank(ts_std(returns, 20))"
    with pytest.raises(ToolError, match="scored no factor"):
        call("evaluation.measure_decay", id=evaluator.read(text).id)
    said = {
        "id": "h1",
        "mechanism": "m",
        "statement": "s",
        "direction": 1,
        "horizon_days": 5,
        "fields": ["volume", "open"],
    }
    id = call("evaluation.score_factor", text="rank(ts_skew(volume, 30)) * rank(open)", hypothesis=said, key="k")["id"]
    assert call("evaluation.measure_decay", id=id)["status"] in {"waiting", "running", "done"}


def test_a_call_that_waits_for_a_job_holds_no_thread() -> None:
    jobs, gate = Jobs(), threading.Event()
    job = jobs.begin("wait", {}, lambda _: {"came": gate.wait(10)})["job"]

    async def ask() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        async def wait() -> None:
            found.append(await jobs.wait_for(job, 5.0))

        async with anyio.create_task_group() as tasks:
            for _ in range(60):  # more than there are threads
                tasks.start_soon(wait)
            await anyio.to_thread.run_sync(gate.set)
        return found

    assert {told["status"] for told in anyio.run(ask)} == {"done"}
    jobs.close()


def test_work_under_way_ends_at_its_next_step_when_the_servers_end() -> None:
    jobs, began = Jobs(), threading.Event()

    def endless(advance: Advance) -> dict[str, Any]:
        for step in itertools.count():
            advance(step)
            began.set()
        return {}

    job = jobs.begin("endless", {}, endless)["job"]
    assert began.wait(10)
    jobs.close()
    assert jobs.get(job)["error"]["code"] == "ended"
