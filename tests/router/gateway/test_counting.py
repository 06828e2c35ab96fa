"""Tokens are counted as replies pass, however they are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alphaloom.router.errors import BadCall
from alphaloom.router.gateway.calls import CHAT, COMPLETIONS, Limits, asked
from alphaloom.router.gateway.counting import MOST_KEPT, Reply, Yardstick, letters
from alphaloom.router.quota import MOST_TOKENS

from .modelled import events

TOLD = {"max_tokens": 6, "stream_options": {"include_usage": True}, "really": 9}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 900), max_size=12), st.booleans())
def test_it_does_not_matter_where_a_stream_is_cut(cuts: list[int], carriage: bool) -> None:
    whole = b"".join(events(TOLD))
    whole = whole.replace(b"\n", b"\r\n") if carriage else whole
    reply, places = Reply(streams=True), sorted({0, *cuts, len(whole)})
    for begin, end in zip(places, [*places[1:], len(whole)], strict=True):
        reply.feed(whole[begin:end])
    reply.end()
    assert (reply.parts, reply.tokens_in, reply.tokens_out) == (6, 9, 12)


@pytest.mark.parametrize(
    "body",
    [b"", b"data: [DONE]\n\n", b"data: 7\n\n", b"data: {\n\n", b": a comment\n\n", b'data: {"choices": 3, "usage": 4}\n\n',
     b'data: {"choices": [1], "usage": {"completion_tokens": -1}}\n\n', b"\xff\xfe\n\n", b"data: " + b"[" * 100_000 + b"\n\n"],
)  # fmt: skip
@pytest.mark.parametrize("streams", [False, True])
def test_what_is_no_reply_counts_nothing(body: bytes, streams: bool) -> None:
    reply = Reply(streams)
    reply.feed(body)
    reply.end()
    assert (reply.parts, reply.tokens_in, reply.tokens_out) == (0, None, None)


def test_tools_and_thoughts_are_written_too() -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    reply = Reply(streams=True)
    for delta in ({"tool_calls": [call]}, {"reasoning_content": "so"}, {"role": "assistant"}, {"content": ""}):
        reply.feed(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n")
    assert (reply.parts, reply.written) == (2, 6)


def test_a_yardstick_learns_how_long_tokens_are() -> None:
    yard = Yardstick()
    for _ in range(100):
        yard.learn(250, 100)
    assert yard.tokens(1000) == pytest.approx(400, abs=3)
    yard.learn(10**9, 1)
    assert yard.tokens(1000) > 250, "one strange call moves it a little"


def body(**told: Any) -> bytes:
    return json.dumps(told).encode()


def test_a_call_is_judged_by_all_that_it_brings_and_no_picture() -> None:
    text, picture = {"type": "text", "text": "x" * 80}, {"type": "image_url", "image_url": {"url": "data:image/png,"}}
    bare = asked(body(messages=[{"role": "user", "content": [text, picture]}]), Limits(100))
    assert (bare.letters, bare.most_tokens_out) == (len(bare.body) - len("data:image/png,"), 100)
    picture["image_url"] = {"url": "data:image/png," + "A" * 10**6}
    seen = asked(body(messages=[{"role": "user", "content": [text, picture]}]), Limits(100))
    assert seen.letters == bare.letters
    assert letters([1, 2, 3]) == 12
    assert letters({"content": "data: more"}) == 10, "a reply has no pictures"


LONG = "data: " + "word " * 1000


@pytest.mark.parametrize(
    "told",
    [{"messages": [{"role": "user", "content": LONG}]}, {"prompt": LONG}, {"messages": [{"role": LONG, "content": "a"}]},
     {"messages": [{"role": "user", "name": LONG}]}, {"tools": [{"function": {"parameters": {LONG: {}}}}]},
     {"messages": [{"content": [{"type": "text", "text": "a", "image_url": {"url": LONG}}]}]}, {"documents": [LONG]}],
)  # fmt: skip
def test_no_text_is_free_wherever_it_stands(told: dict[str, Any]) -> None:
    assert asked(body(**told), Limits(1)).letters > len(LONG)


def test_sequences_are_counted_whoever_asks_for_them() -> None:
    for told in ({"n": 3}, {"best_of": 3}, {"prompt": ["a", "b", "c"]}, {"prompt": [[1, 2], [3], [4]]}):
        assert asked(body(**told, max_tokens=10), Limits(100, 3)).most_tokens_out == 30


def test_a_reply_is_as_long_as_its_path_reads_it() -> None:
    told = body(max_completion_tokens=1, max_tokens=70)
    assert [asked(told, Limits(50), path).most_tokens_out for path in (CHAT, COMPLETIONS)] == [70, 70]
    assert asked(body(max_completion_tokens=1), Limits(50), COMPLETIONS).most_tokens_out == 50


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n", "best_of"])
def test_a_number_out_of_all_proportion_is_refused(name: str) -> None:
    for many in (MOST_TOKENS + 1, 10**300, 10**400):
        with pytest.raises(BadCall, match=name):
            asked(body(**{name: many}), Limits(100, MOST_TOKENS))


def test_the_endpoints_own_length_bounds_what_may_be_asked() -> None:
    assert asked(body(), Limits(4096, most_tokens=2000)).most_tokens_out == 2000
    with pytest.raises(BadCall, match="allowed: 0 to 2000"):
        asked(body(max_tokens=2001), Limits(4096, most_tokens=2000))


def test_what_is_too_deep_or_too_finely_cut_is_refused() -> None:
    for deep in (120, 500, 900):
        with pytest.raises(BadCall, match=r"nests too deep|must be a JSON object"):
            asked(b'{"messages":' + b"[" * deep + b"]" * deep + b"}", Limits(1))
    with pytest.raises(BadCall, match="too many parts"):
        asked(b'{"messages":[' + b"{}," * 300_000 + b"{}]}", Limits(1))


def test_a_reply_too_large_to_be_read_says_so() -> None:
    reply = Reply(streams=False)
    for _ in range(MOST_KEPT // 2**20 + 1):
        reply.feed(b" " * 2**20)
    assert reply.lost
    reply.feed(b'{"usage": {"completion_tokens": 1}}')
    reply.end()
    assert reply.tokens_out is None, "what is left of it is not taken for the whole"


@pytest.mark.parametrize("many", [10**20, 10**400])
def test_an_endpoint_that_counts_wildly_is_not_believed(many: int) -> None:
    reply = Reply(streams=False)
    reply.feed(body(usage={"prompt_tokens": many, "completion_tokens": many}))
    reply.end()
    assert (reply.tokens_in, reply.tokens_out) == (None, None)
