import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alphaloom.ledger import ModelCall
from alphaloom.router import BudgetEnded, ModelBudget
from alphaloom.router.budget import Account, Amount

wishes = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60), st.integers(0, 5)), max_size=12)


def call(tokens: int) -> ModelCall:
    return ModelCall("k", "one", "idea", "new", "local", "small", "p", "q", "r", tokens, 0, 0.0)


async def spend(budget: ModelBudget, asked: list[tuple[int, int, int]], *, together: bool) -> tuple[list[bool], int]:
    """Ask for each (worst, share of it really taken, steps it lasts); return which fitted, and the tokens spent."""
    account = Account(budget, [])

    async def one(worst: int, taken: int, steps: int) -> bool:
        try:
            async with account.reserve(Amount(1, worst)):
                for _ in range(steps):
                    await asyncio.sleep(0)
                account.add(call(min(taken, worst)))
            return True
        except BudgetEnded:
            return False

    if together:
        fitted = list(await asyncio.gather(*(one(*each) for each in asked)))
    else:
        fitted = [await one(*each) for each in asked]
    return fitted, account.spent.tokens


@settings(max_examples=80, deadline=None)
@given(asked=wishes, tokens=st.integers(0, 150), calls=st.integers(0, 12))
def test_the_budget_ends_at_the_same_call_together_as_one_by_one(
    asked: list[tuple[int, int, int]], tokens: int, calls: int
) -> None:
    budget = ModelBudget(calls=calls, tokens=tokens)
    together = asyncio.run(spend(budget, asked, together=True))
    assert together == asyncio.run(spend(budget, asked, together=False))
    assert together[1] <= tokens
    assert sum(together[0]) <= calls


def test_a_failed_call_gives_back_what_it_held() -> None:
    account = Account(ModelBudget(calls=1), [])

    async def fail() -> None:
        async with account.reserve(Amount(1)):
            raise OSError("broken")

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(OSError, match="broken"):
                await fail()

    asyncio.run(twice())
    assert account.spent == Amount()


def test_what_was_recorded_before_counts() -> None:
    account = Account(ModelBudget(calls=2, tokens=100), [call(60), call(30)])
    assert account.spent == Amount(2, 90)
    with pytest.raises(BudgetEnded, match="2 of 2 calls, and the next call may need 1"):
        account.check(Amount(1, 5))
