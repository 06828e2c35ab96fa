"""Model servers that misbehave in 93 ways: who is asked, what is charged, and what the caller gets.

`python -m bench.router misbehaving` prints the same table.
"""

import pytest

from .misbehaving import EXPECTED, Outcome, expected, outcome
from .misbehaviours import KEY, PLAYS

pytestmark = pytest.mark.integration


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask servers of their own."""


def holds(found: Outcome) -> None:
    """Check what holds of every call, whatever its servers do."""
    assert found.least_usd <= found.usd <= found.most_usd * (1 + 1e-9)
    assert found.held == 0
    assert not {word for word in (KEY, KEY[::-1], "Traceback", "read as") if word in found.said}
    assert len(found.said) < 2_000


@pytest.mark.parametrize("priced", [True, False], ids=["priced", "free"])
@pytest.mark.parametrize("models", [1, 2], ids=["alone", "before-a-healthy-one"])
@pytest.mark.parametrize("kind", EXPECTED)
def test_a_call_that_a_healthy_model_can_answer_is_answered_and_charged_as_used(
    kind: str, models: int, priced: bool
) -> None:
    found = outcome(kind, models, priced=priced)
    assert found.row == expected(kind, models, priced=priced)
    assert models == 1 or found.row.got in ("m1", "m2")
    holds(found)


@pytest.mark.slow
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("kind", EXPECTED)
def test_the_same_holds_of_a_model_of_openai(kind: str, models: int) -> None:
    found = outcome(kind, models, priced=True, provider="openai")
    assert found.row == expected(kind, models, priced=True)
    holds(found)


def test_every_kind_has_a_row() -> None:
    assert EXPECTED.keys() == {"refuses connections", *PLAYS}
    assert len(EXPECTED) == 93
