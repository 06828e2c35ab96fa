"""The gate beside a hostile tenant: counts out of all proportion, calls abandoned or uncountable."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, strategies as st

from alphaloom.serving.errors import ServingError
from alphaloom.serving.gateway.fair_scheduler import FairScheduler, compute_fairness_bound
from alphaloom.serving.gateway.tenants import MAX_CALL_TOKENS, FairnessSettings, TenantSettings

from .fairness import hurried
from .test_fair_scheduler import L_IN, L_OUT, L_WRONG, Ask, Course, Watched, ask, asks, at, one


@given(
    asked=st.lists(asks(), min_size=2, max_size=40),
    huge=st.lists(
        st.tuples(st.integers(0, MAX_CALL_TOKENS), st.integers(2**29, MAX_CALL_TOKENS)), min_size=1, max_size=4
    ),
    share=st.sampled_from([1.0, 1e-9]),
)
def test_what_one_tenant_asked_and_left_is_not_felt_by_others(
    asked: list[Ask], huge: list[tuple[int, int]], share: float
) -> None:
    """Calls abandoned before they say anything, then one that waits alone: everybody is lifted to it.

    A small share stands for many such calls.
    """
    given = FairnessSettings(places=1, tenants={"a": TenantSettings(share=share)})

    async def steps() -> float:
        course = Course(Watched(given, asyncio.get_running_loop().time))
        for tokens_in, most in huge:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0), course.gate.acquire("a", tokens_in, most):
                    await asyncio.sleep(9.0)
        holds = asyncio.create_task(ask(course.gate, "b"))
        await asyncio.sleep(0)
        await asyncio.gather(holds, ask(course.gate, "a", 1))
        course.gate.apart = 0.0
        others = [call for call in asked if call.tenant != "a"]
        await asyncio.gather(*(one(course, number, each) for number, each in enumerate(others)))
        return course.gate.apart

    assert hurried(steps()) <= compute_fairness_bound(FairnessSettings(places=1), L_IN, L_OUT, L_WRONG) + 1e-6


class Uncounted(int):
    """A number that something is wrong with."""

    def __float__(self) -> float:
        raise OverflowError("too large")


def test_a_call_that_cannot_be_counted_fails_alone() -> None:
    async def steps(gate: FairScheduler) -> None:
        first, wrong, last = (
            asyncio.create_task(ask(gate, name, many)) for name, many in (("a", 1), ("b", Uncounted(1)), ("c", 1))
        )
        found = await asyncio.wait_for(asyncio.gather(first, wrong, last, return_exceptions=True), 60)
        assert [type(outcome) for outcome in found] == [float, OverflowError, float]
        assert (gate.free, gate.count_waiting("b")) == (1, 0)

    at(steps, places=1)


@pytest.mark.parametrize("many", [MAX_CALL_TOKENS + 1, 10**400])
def test_no_call_has_tokens_without_end(many: int) -> None:
    async def steps(gate: FairScheduler) -> None:
        for size in ((many, 1), (1, many)):
            with pytest.raises(ServingError, match="no call has so many tokens"):
                async with gate.acquire("a", *size):
                    """It is not let in."""
        async with gate.acquire("a", 1, 1) as place:
            with pytest.raises(ServingError, match="no call has so many tokens"):
                place.report_output(many)

    at(steps, places=1)
