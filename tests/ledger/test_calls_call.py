import json
import math

import pytest
from hypothesis import given, strategies as st

from alphaloom.ledger import compute_digest
from alphaloom.ledger.calls import CallOutcome, ToolCall, digest_of_arguments

texts = st.text(st.characters(), max_size=300)


def deep() -> dict[str, object]:
    nested: dict[str, object] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    return nested


@given(texts, texts, texts, st.integers(0, 10**12))
def test_a_call_is_spelled_as_json_whatever_its_names_are(who: str, tool: str, code: str, size: int) -> None:
    spelled = ToolCall(who, "market", tool, CallOutcome.REFUSED, code=code, bytes=size).spell()
    told = json.loads("{" + spelled + "}")
    assert (told["who"], told["tool"], told["code"], told["bytes"]) == (who[:200], tool[:100], code[:100], size)
    assert "\n" not in spelled


def test_what_stands_in_place_of_a_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="kept as SHA-256"):
        ToolCall("stdio", "market", "preview", CallOutcome.OK, arguments='{"secret": 1}').spell()


def test_equal_arguments_have_one_digest() -> None:
    assert digest_of_arguments({"b": [1, 2.5], "a": "µ"}) == digest_of_arguments({"a": "µ", "b": [1, 2.5]})
    assert digest_of_arguments({"a": 1}) == compute_digest({"a": 1})
    assert digest_of_arguments({"a": 1}) != digest_of_arguments({"a": "1"})


@pytest.mark.parametrize("odd", [{"a": math.nan}, {"a": "\ud800"}, {"a": b"x"}])
def test_arguments_that_are_no_json_have_a_digest_too(odd: dict[str, object]) -> None:
    assert len(digest_of_arguments(odd)) == 64
    assert digest_of_arguments(odd) != digest_of_arguments({"a": "other"})


def test_arguments_nested_too_deeply_have_a_digest_too() -> None:
    assert len(digest_of_arguments(deep())) == 64
