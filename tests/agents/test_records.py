"""What prompts tell of numbers."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import example, given, strategies as st

from alphaloom.agents.records import round_for_prompt

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
@example(5e-324)  # below 1e-307 a float has fewer digits, and its nearest neighbour is far
@example(1.2345e-322)
def test_a_number_is_told_by_three_digits_that_count(number: float) -> None:
    rounded = round_for_prompt(number)
    assert abs(rounded - number) <= 0.00501 * abs(number)
    assert len(Decimal(json.dumps(rounded)).normalize().as_tuple().digits) <= 3


@given(PLAIN)
def test_nothing_but_numbers_is_changed_and_all_of_it_can_be_written(value: Any) -> None:
    rounded = round_for_prompt(value)
    assert round_for_prompt(rounded) == rounded
    assert skeleton(rounded) == skeleton(value)
    json.dumps(rounded, allow_nan=False)


def skeleton(value: Any) -> Any:
    """Return what is left of plain data without its floats."""
    if isinstance(value, dict):
        return {name: skeleton(each) for name, each in value.items()}
    if isinstance(value, list):
        return [skeleton(part) for part in value]
    return None if isinstance(value, float) else value
