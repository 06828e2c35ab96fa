"""JSON objects are found anywhere in a text, ambiguous ones are not, and only closed schemas are strict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ConfigDict

from alphaloom.router.calls.completions import REFUSED
from alphaloom.router.calls.replies import (
    MAX_REPLY_OBJECTS,
    Misfit,
    ModelAnswer,
    NotJson,
    Refusal,
    build_repair_request,
    build_response_format,
    check_json,
    find_objects,
    quote_reply,
    read_reply,
    split_thoughts,
)

from ..growth import linear
from .conftest import Idea


class Many(BaseModel):
    """A list without a bound, and nothing beside it."""

    model_config = ConfigDict(extra="forbid")

    ideas: list[Idea]


GOOD, OTHER = '{"text": "a } b { \\" c", "direction": 1}', '{"text": "other", "direction": 1}'
words = st.text(st.characters(exclude_characters="{}<>", exclude_categories=["Cs"]), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(text: str, finish: str = "stop") -> Any:
    return read_reply(ModelAnswer(text, finish, 1, 1, "m"), Idea)


@given(before=words, value=st.dictionaries(st.text(max_size=5), values, max_size=4), after=words)
def test_an_object_among_words_is_found_as_it_was_written(before: str, value: dict[str, Any], after: str) -> None:
    assert find_objects(before + json.dumps(value) + after) == [json.dumps(value)]


@given(st.text())
def test_what_is_found_stands_in_the_text_in_order_and_apart(text: str) -> None:
    at = 0
    for each in find_objects(text):
        assert each.startswith("{")
        at = text.index(each, at) + len(each)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"<think>perhaps {OTHER}</think>\n{GOOD}",
        f"perhaps {OTHER}</think>{GOOD}",
        f"<think>{GOOD}",
        f"{GOOD} and again {GOOD}",
        f"A {{set}} of {{one}}: {GOOD}. And {{no more}}",
        f'{{"text": "no direction"}} was wrong, so: {GOOD}',
        f"\ufeff {GOOD} ",
    ],
)
def test_one_object_that_fits_is_read_wherever_it_stands(text: str) -> None:
    assert read(text).text == 'a } b { " c'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{GOOD} or {OTHER}", "2 objects that fit and differ"),
        (f'[{GOOD}, {{"text": "cut', "Invalid JSON: EOF"),
        ('{"ideas": [' + GOOD, "Invalid JSON: EOF"),
        ('{"idea": ' + GOOD + "}", "idea: Extra inputs"),
        ('{"text": "a", "direction": 1, "direction": 2}', "the key 'direction' stands twice"),
        ('{"text": "a", "direction": NaN}', "NaN is no finite number"),
        ('{"text": "a", "direction": -1e999}', "-1e999 is no finite number"),
        ("".join(f"{{{i}}}" for i in range(MAX_REPLY_OBJECTS + 1)), "holds 1001 objects"),
        ("<think>nothing yet", "Invalid JSON"),
        (" \ufeff ", "the reply was empty"),
    ],
)
def test_what_is_broken_or_means_two_things_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(Misfit, match=why):
        read(text)


def test_the_reason_is_that_of_the_object_and_not_of_the_words_around_it() -> None:
    with pytest.raises(Misfit, match=r"^- direction: Field required$"):
        read('Sure {it} is: {"text": "a long text without a direction"}')


def test_a_key_twice_with_one_value_is_no_matter() -> None:
    check_json('{"a": [1, {"b": 2}], "a": [1, {"b": 2}]}')
    with pytest.raises(NotJson):
        check_json('{"a": [{"b": 1, "b": 2}]}')


def test_a_text_is_read_in_time_that_grows_with_its_length_only() -> None:
    for text in (
        '"' * 200_000,
        "{" * 200_000,
        '{"' * 100_000,
        "<think>" * 50_000,
        "{}" * 100_000,
        "\\" * 200_000,
        '{"' + '\\"' * 100_000,
    ):
        find_objects(text)
        split_thoughts(text)


def test_a_reply_that_is_sent_back_is_no_longer_than_one_can_be() -> None:
    assert quote_reply("short", 10) == "short"
    assert quote_reply("x" * 1000, 10) == "x" * 80 + "..."


@pytest.mark.parametrize("end", ["", "\\", '"', "x"])
def test_a_text_that_never_closes_is_read_once(end: str) -> None:
    assert linear(lambda text: find_objects('{"' + text + end), '\\"', 1_000)
    assert find_objects('{"a": "' + '\\"}' * 3 + end)[0].startswith('{"a"')


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"ideas": [{}] * 5_000}),
        json.dumps({f"k{number}": 1 for number in range(5_000)}),
        json.dumps({"k" * 100_000: 1}),
        '{"' + "k" * 100_000 + '": 1, "' + "k" * 100_000 + '": 2}',
    ],
)
def test_a_reply_does_not_choose_how_long_the_question_for_its_repair_is(text: str) -> None:
    with pytest.raises(Misfit) as misfit:
        read_reply(ModelAnswer(text, "stop", 1, 1, "m"), Many)
    assert len(build_repair_request(misfit.value)) < 10_000


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 1


class Holder(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: list[Open]


def test_only_a_schema_that_leaves_nothing_open_is_called_strict() -> None:
    strict = [build_response_format(schema)["json_schema"]["strict"] for schema in (Closed, Open, Holder)]
    assert strict == [True, False, False]


def test_a_reply_that_fits_is_read_however_its_provider_ends_it() -> None:
    fits = ModelAnswer('{"text": "drift", "direction": 1}', REFUSED, 10, 10, "m")
    assert read_reply(fits, Idea) == Idea(text="drift", direction=1)
    with pytest.raises(Refusal, match="it refused: I would rather not"):
        read_reply(ModelAnswer("I would rather not.", REFUSED, 10, 10, "m"), Idea)
