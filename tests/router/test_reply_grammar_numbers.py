"""Numbers within bounds, as digits: all that is written is within, and all short ones can be written."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from alphaloom.router import RouterError
from alphaloom.router.calls.reply_grammar import Numerals

SIDES = (("ge", "gt"), ("le", "lt"))


def pattern(numerals: Numerals) -> str:
    """Return the grammar as a pattern of Python's: quoted text stands for itself, blanks for nothing."""
    return re.sub(r'"(.)"| ', lambda found: re.escape(found[1] or ""), numerals.grammar())


def told(kind: type[int | float], bounds: dict[str, Any]) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Return what validates a number within bounds, and its schema."""
    form: Any = Annotated[kind, Field(**bounds)]
    adapter: TypeAdapter[Any] = TypeAdapter(form)
    return adapter, adapter.json_schema()


def fits(adapter: TypeAdapter[Any], text: str) -> bool:
    try:
        adapter.validate_json(text)
    except ValidationError:
        return False
    return True


@st.composite
def bounded(draw: st.DrawFn, numbers: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Draw bounds in their order, or one, or none; each may be excluded."""
    pair = sorted((draw(numbers), draw(numbers)))
    kept = {draw(st.sampled_from(names)): each for names, each in zip(SIDES, pair, strict=True) if draw(st.booleans())}
    return kept


WHOLES = st.one_of(st.integers(-30, 30), st.integers(-(10**7), 10**7), st.integers(-(10**20), 10**20))
DECIMALS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 100.0, 1e-9, 0.1]),
    st.decimals(-2, 2, places=3).map(float),
    st.floats(-1e12, 1e12, allow_subnormal=False),
)


@given(st.data())
@pytest.mark.parametrize(("kind", "numbers"), [(int, WHOLES), (float, DECIMALS)])
def test_every_number_that_is_written_lies_within_bounds(
    kind: type[int | float], numbers: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    adapter, schema = told(kind, data.draw(bounded(numbers)))
    try:
        numerals = Numerals.of(schema)
    except RouterError:  # between 1 and 1, without either
        return
    text = data.draw(st.from_regex(pattern(numerals), fullmatch=True, alphabet="-.0123456789"))
    assert fits(adapter, text), (schema, text)
    assert len(text) <= numerals.longest


@given(st.data())
@pytest.mark.parametrize("kind", [int, float])
def test_a_short_number_can_be_written_exactly_if_it_lies_within_bounds(
    kind: type[int | float], data: st.DataObject
) -> None:
    places = 0 if kind is int else data.draw(st.integers(0, 6))
    number = data.draw(st.integers(-(10**9), 10**9) | st.integers(-20, 20))
    near = st.integers(-3, 3).map(lambda off: float(Decimal(number + off).scaleb(-places)))
    bounds = data.draw(bounded(near.map(int) if kind is int else near | DECIMALS))
    adapter, schema = told(kind, bounds)
    text = f"{Decimal(number).scaleb(-places):f}"
    if set(text) <= set("-0."):
        text = text.removeprefix("-")
    try:
        written = re.fullmatch(pattern(Numerals.of(schema)), text) is not None
    except RouterError:
        written = False
    assert written == fits(adapter, text), (schema, text)


@pytest.mark.parametrize(
    ("kind", "bounds", "yes", "no"),
    [
        (int, {"ge": 5}, "5 10 999999999999999", "4 0 -5 05"),
        (int, {"ge": 0, "le": 5000}, "0 7 4999 5000", "5001 10000 -1 00"),
        (int, {"gt": -3, "lt": 0}, "-2 -1", "-3 0 -0"),
        (int, {"ge": 10**20}, "100000000000000000000", "99999999999999999999"),
        (int, {}, "0 -7 999999999999999", "1000000000000000 1.0"),
        (float, {"ge": 0, "le": 1}, "0 1 0.0 1.0 0.123456789", "1.1 -0.1 1.000000001 2 1. .5"),
        (float, {"gt": 0, "lt": 1}, "0.000000001 0.999999999", "0 0.0 1 1.0"),
        (float, {"gt": 0, "lt": 1e-12}, "0.0000000000001", "0 0.000000000001"),
        (float, {"ge": -0.5, "le": -0.25}, "-0.5 -0.50 -0.3 -0.25", "-0.51 -0.2 0.3 -1"),
    ],
)
def test_bounds_of_one_side_or_both_are_heeded(
    kind: type[int | float], bounds: dict[str, Any], yes: str, no: str
) -> None:
    written = pattern(Numerals.of(told(kind, bounds)[1]))
    assert [text for text in yes.split() if not re.fullmatch(written, text)] == []
    assert [text for text in no.split() if re.fullmatch(written, text)] == []


@pytest.mark.parametrize("bounds", [{"ge": 5, "le": 4}, {"gt": 1, "lt": 2}, {"ge": 10**45}])
def test_bounds_that_leave_no_number_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(RouterError, match="no number of at most 40 digits") as caught:
        Numerals.of(told(int, bounds)[1])
    got: Any = caught.value.got
    assert sorted(got.values()) == sorted(bounds.values())
