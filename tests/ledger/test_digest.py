import hashlib
import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger import JSON, canonical_json, compute_digest

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
trees = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(trees)
def test_the_spelling_reads_back_and_is_its_own_fixed_point(value: JSON) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(st.text(), scalars))
def test_the_order_of_keys_does_not_matter(value: dict[str, JSON]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_the_spelling_is_compact_sorted_and_not_escaped() -> None:
    assert canonical_json({"b": [1, 2.0, 1e-7], "a": "µ"}) == '{"a":"µ","b":[1,2.0,1e-07]}'


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [number]})


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="a key of a record must be text, got 1"):
        canonical_json({"a": {1: "x"}})  # type: ignore[dict-item]


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="set is no JSON"):
        canonical_json({1})  # type: ignore[arg-type]


def test_read_only_mappings_and_tuples_are_spelled_as_dicts_and_lists() -> None:
    assert canonical_json(MappingProxyType({"a": (1, range(2))})) == '{"a":[1,[0,1]]}'


def test_the_digest_is_sha_256_of_the_bytes() -> None:
    expected = hashlib.sha256(b'{"a":1}').hexdigest()
    assert compute_digest({"a": 1}) == compute_digest('{"a":1}') == compute_digest(b'{"a":1}') == expected
