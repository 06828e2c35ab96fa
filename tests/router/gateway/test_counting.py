"""Tokens are counted as replies pass, however they are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alphaloom.router.gateway.calls import asked, letters
from alphaloom.router.gateway.counting import Reply, Yardstick

from .modelled import events

TOLD = {"max_tokens": 6, "stream_options": {"include_usage": True}, "really": 9}


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


def test_a_call_is_judged_by_its_text_and_no_picture() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    told = {"messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 80}, picture]}]}
    call = asked(json.dumps(told).encode(), reply_tokens=100, sequences=1)
    assert (call.letters, call.most_tokens_out) == (80, 100)
    assert letters([1, 2, 3]) == 12


def test_sequences_are_counted_whoever_asks_for_them() -> None:
    for told in ({"n": 3}, {"best_of": 3}, {"prompt": ["a", "b", "c"]}, {"prompt": [[1, 2], [3], [4]]}):
        call = asked(json.dumps({**told, "max_tokens": 10}).encode(), reply_tokens=100, sequences=3)
        assert call.most_tokens_out == 30
