"""Tokens are counted as replies pass, however they are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.serving.errors import GatewayError
from alphaloom.serving.gateway.calls import (
    CHAT,
    COMPLETIONS,
    MAX_WHOLE_REPLY_BYTES,
    PICTURE_LETTERS,
    GatewayRequest,
    ReplyCounter,
    ReplyLimits,
    TokenSize,
    count_text_bytes,
    read_call,
)
from alphaloom.serving.gateway.tenants import MAX_CALL_TOKENS

from ...growth import linear
from .modelled import events


def refuses_call(said: str) -> pytest.RaisesExc[GatewayError]:
    """Expect a refusal of a call that cannot be passed on, and its words."""
    return pytest.raises(GatewayError, match=said, check=lambda error: error.code == "bad_call")


TOLD = {"max_tokens": 6, "stream_options": {"include_usage": True}, "really": 9}


@given(st.lists(st.integers(0, 900), max_size=12), st.booleans())
def test_it_does_not_matter_where_a_stream_is_cut(cuts: list[int], carriage: bool) -> None:
    whole = b"".join(events(TOLD))
    whole = whole.replace(b"\n", b"\r\n") if carriage else whole
    reply, places = ReplyCounter(streams=True), sorted({0, *cuts, len(whole)})
    for begin, end in zip(places, [*places[1:], len(whole)], strict=True):
        reply.feed(whole[begin:end])
    reply.end()
    assert (reply.parts, reply.tokens_in, reply.tokens_out) == (6, 9, 12)


def test_an_event_that_comes_in_many_pieces_is_read_once() -> None:
    def fed(text: str) -> None:
        reply, event = ReplyCounter(streams=True), text.encode()
        for at in range(0, len(event), 8):
            reply.feed(event[at : at + 8])

    assert linear(fed, "data: {", 1 << 14)


@pytest.mark.parametrize(
    "body",
    [b"", b"data: [DONE]\n\n", b"data: 7\n\n", b"data: {\n\n", b": a comment\n\n",
     b'data: {"choices": 3, "usage": 4}\n\n', b'data: {"choices": [1], "usage": {"completion_tokens": -1}}\n\n',
     b"\xff\xfe\n\n", b"data: " + b"[" * 100_000 + b"\n\n"],
)  # fmt: skip  # a table
@pytest.mark.parametrize("streams", [False, True])
def test_what_is_no_reply_counts_nothing(body: bytes, streams: bool) -> None:
    reply = ReplyCounter(streams)
    reply.feed(body)
    reply.end()
    assert (reply.parts, reply.tokens_in, reply.tokens_out) == (0, None, None)


def test_tools_and_thoughts_are_written_too() -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    reply = ReplyCounter(streams=True)
    for delta in ({"tool_calls": [call]}, {"reasoning_content": "so"}, {"role": "assistant"}, {"content": ""}):
        reply.feed(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n")
    assert (reply.parts, reply.written) == (2, 6)


def test_a_yardstick_learns_how_long_tokens_are() -> None:
    yard = TokenSize()
    for _ in range(100):
        yard.learn(250, 100)
    assert yard.estimate_tokens(1000) == pytest.approx(400, abs=3)
    yard.learn(10**9, 1)
    assert yard.estimate_tokens(1000) > 250, "one strange call moves it a little"


def body(**told: Any) -> bytes:
    return json.dumps(told).encode()


def shown(url: str) -> bytes:
    parts = [{"type": "text", "text": "x" * 80}, {"type": "image_url", "image_url": {"url": url}}]
    return body(messages=[{"role": "user", "content": parts}])


def test_a_picture_weighs_the_same_however_many_bytes_it_has() -> None:
    small, large = (read_call(shown("data:image/png;base64," + "A" * many), ReplyLimits(100)) for many in (0, 10**6))
    assert small.letters == large.letters == len(small.body) - len("data:image/png;base64,") + PICTURE_LETTERS
    assert small.most_tokens_out == 100
    assert count_text_bytes([1, 2, 3]) == 12
    assert count_text_bytes({"content": "data: more"}) == 10, "a reply has no pictures"


@pytest.mark.parametrize(
    "url",
    [
        "data:text/plain,a b",
        "data:image/png",
        "DATA:,x",
        "http://10.0.0.1/",
        "file:///etc/passwd",
        7,
        ["data:image/png,"],
    ],
)
def test_what_is_no_picture_is_not_taken_for_one(url: Any) -> None:
    with refuses_call("a picture must be in the call itself"):
        read_call(shown(url), ReplyLimits(100))


@pytest.mark.parametrize(
    ("name", "value"),
    [("priority", -9), ("kv_transfer_params", {}), ("vllm_xargs", {}), ("min_tokens", 9), ("cache_salt", "another's"),
     ("request_id", "x"), ("chat_template", "{{ 1 }}"), ("use_beam_search", True), ("prompt_logprobs", 1),
     ("ignore_eos", True), ("prompt_embeds", "x"), ("guided_grammar", "x"), ("cache_\u017falt", "x"),
     ("x" * 10_000, 1)],
)  # fmt: skip  # a table
def test_a_field_that_would_steer_the_endpoint_is_refused_by_its_name(name: str, value: Any) -> None:
    with refuses_call("does not pass the field") as refused:
        read_call(body(messages=[], **{name: value}), ReplyLimits(100))
    assert str(refused.value.field).startswith(name[:6])
    assert len(str(refused.value)) < 300


def test_what_stands_deeper_is_looked_at_too() -> None:
    kept = {"type": "image_url", "image_url": None, "uuid": "another's"}
    for told in (
        {"chat_template_kwargs": {"chat_template": "x"}},
        {"chat_template_kwargs": {"enable_thinking": False, "tokenize": True}},
        {"messages": [{"role": "user", "content": [kept]}]},
        {"messages": [{"content": [{"video_url": {"url": "http://x"}}]}]},
    ):
        with refuses_call(r"does not pass the (field|member)"):
            read_call(body(**told), ReplyLimits(100))
    read_call(body(chat_template_kwargs={"enable_thinking": False}), ReplyLimits(100))


def test_the_salt_of_a_tenant_is_all_that_is_added() -> None:
    for bare in (b" {} ", b'{"model": "a"}', b'\n{"messages": [{"content": "{"}]}'):
        call = read_call(bare, ReplyLimits(100), salt="tenant's")
        assert json.loads(call.body) == {**json.loads(bare), "cache_salt": "tenant's"}
        assert read_call(bare, ReplyLimits(100)).body == bare
        assert call.letters == len(bare)
    for strange in ('{"model": "a"}'.encode("utf-16"), b'\xef\xbb\xbf{"model": "a"}'):
        with refuses_call("UTF-8"):
            read_call(strange, ReplyLimits(100), salt="tenant's")


LONG = "data: " + "word " * 1000


@pytest.mark.parametrize(
    "told",
    [
        {"messages": [{"role": "user", "content": LONG}]},
        {"prompt": LONG},
        {"messages": [{"role": LONG, "content": "a"}]},
        {"messages": [{"role": "user", "name": LONG}]},
        {"tools": [{"function": {"parameters": {LONG: {}}}}]},
        {"messages": [{"content": [{"type": "text", "text": LONG}]}]},
        {"documents": [LONG]},
    ],
)
def test_no_text_is_free_wherever_it_stands(told: dict[str, Any]) -> None:
    assert read_call(body(**told), ReplyLimits(1)).letters > len(LONG)


def test_sequences_are_counted_whoever_asks_for_them() -> None:
    for told in ({"n": 3}, {"best_of": 3}, {"prompt": ["a", "b", "c"]}, {"prompt": [[1, 2], [3], [4]]}):
        assert read_call(body(**told, max_tokens=10), ReplyLimits(100, 3)).most_tokens_out == 30


def test_a_reply_is_as_long_as_its_path_reads_it() -> None:
    told = body(max_completion_tokens=1, max_tokens=70)
    assert [read_call(told, ReplyLimits(50), path).most_tokens_out for path in (CHAT, COMPLETIONS)] == [70, 70]
    assert read_call(body(max_completion_tokens=1), ReplyLimits(50), COMPLETIONS).most_tokens_out == 50


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n", "best_of"])
def test_a_number_out_of_all_proportion_is_refused(name: str) -> None:
    for many in (MAX_CALL_TOKENS + 1, 10**300, 10**400):
        with refuses_call(name):
            read_call(body(**{name: many}), ReplyLimits(100, MAX_CALL_TOKENS))


def test_the_endpoints_own_length_bounds_what_may_be_asked() -> None:
    assert read_call(body(), ReplyLimits(4096, most_tokens=2000)).most_tokens_out == 2000
    with refuses_call("allowed: 0 to 2000"):
        read_call(body(max_tokens=2001), ReplyLimits(4096, most_tokens=2000))


def test_what_is_too_deep_or_too_finely_cut_is_refused() -> None:
    for deep in (120, 500, 900):
        with refuses_call(r"nests too deep|must be a JSON object"):
            read_call(b'{"messages":' + b"[" * deep + b"]" * deep + b"}", ReplyLimits(1))
    with refuses_call("too many parts"):
        read_call(b'{"messages":[' + b"{}," * 300_000 + b"{}]}", ReplyLimits(1))


def test_a_reply_too_large_to_be_read_says_so() -> None:
    reply = ReplyCounter(streams=False)
    for _ in range(MAX_WHOLE_REPLY_BYTES // 2**20 + 1):
        reply.feed(b" " * 2**20)
    assert reply.lost
    reply.feed(b'{"usage": {"completion_tokens": 1}}')
    reply.end()
    assert reply.tokens_out is None, "what is left of it is not taken for the whole"


@pytest.mark.parametrize(("told", "counted"), [((10**9, 10**9), (120, 50)), ((9, 0), (9, 2)), ((9, 12), (9, 12))])
def test_a_usage_is_believed_as_far_as_the_call_can_have_taken_it(
    told: tuple[int, int], counted: tuple[int, int]
) -> None:
    reply = ReplyCounter(streams=False)
    message = {"role": "assistant", "content": "a reply of some words, forty bytes long."}
    usage = {"prompt_tokens": told[0], "completion_tokens": told[1]}
    reply.feed(body(choices=[{"message": message}], usage=usage))
    reply.end()
    reply.clamp_usage(GatewayRequest(b"x" * 120, 100, 50))
    assert (reply.tokens_in, reply.tokens_out) == counted


@pytest.mark.parametrize("many", [10**20, 10**400])
def test_an_endpoint_that_counts_wildly_is_not_believed(many: int) -> None:
    reply = ReplyCounter(streams=False)
    reply.feed(body(usage={"prompt_tokens": many, "completion_tokens": many}))
    reply.end()
    assert (reply.tokens_in, reply.tokens_out) == (None, None)
