"""Times are those of the stream; requests and time are bounded; a server that misbehaves is told and not waited for."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from alphaloom.serving import DEVICES, Request, ServingError, find_model
from alphaloom.serving.measurement import Measurement, MeasurementTerms, ServerClient, compare_plan, measure_server

from . import streaming
from .streaming import EACH_S, FIRST_S, Seen, serving

QUICK: dict[str, Any] = {"levels": (1, 4), "rounds": 2, "time_limit_s": 30.0, "mark": "now"}


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask a server of their own, on this machine."""


def measured(seen: Seen, key: str | None = None, **more: Any) -> Measurement:
    terms = MeasurementTerms(**{"prompt_tokens": 50, "reply_tokens": 6} | QUICK | more)

    async def ask() -> Measurement:
        async with ServerClient(seen.address, key, time.monotonic) as client:
            return await measure_server(client, terms, time.monotonic, lambda _: None)

    return anyio.run(ask)


def test_times_are_those_of_the_stream() -> None:
    with serving(streaming.well) as seen:
        found = measured(seen)
    one, four = found.levels
    assert one.time_to_first_token_ms is not None
    assert one.per_token_ms is not None
    assert one.time_to_first_token_ms >= FIRST_S * 1e3
    assert one.per_token_ms == pytest.approx(EACH_S * 1e3, rel=0.8)
    assert (one.answered, four.answered, one.failed, four.failed) == (2, 8, 0, 0)
    assert (one.prompt_tokens, one.reply_tokens) == (77, 6)
    assert one.tokens_per_second is not None
    assert four.tokens_per_second is not None
    assert four.tokens_per_second > 2 * one.tokens_per_second
    assert seen.most == 4


def test_what_the_server_says_of_itself_is_kept() -> None:
    with serving(streaming.well) as seen:
        found = measured(seen, levels=(1,))
    assert (found.server.version, found.model, found.server.max_model_len) == ("0.32.0", "tiny", 4096)
    assert found.server.cache == {"block_size": "16", "cache_dtype": "auto", "num_gpu_blocks": "27000"}
    with serving(streaming.well, version=None, metrics=None) as seen:
        bare = measured(seen, levels=(1,)).server
    assert (bare.version, bare.cache) == ("", {})


def test_requests_are_bounded_and_no_prompt_begins_like_another() -> None:
    with serving(streaming.well) as seen:
        measured(seen, key="secret-key")
    assert len(seen.calls) == 1 + 2 * (1 + 4) <= MeasurementTerms(1, 1, **QUICK).most_requests
    prompts = [call["messages"][0]["content"][:10] for call in seen.calls]
    assert len(set(prompts)) == len(prompts)
    assert {call["max_tokens"] for call in seen.calls} == {6}
    assert set(seen.keys) == {"Bearer secret-key"}
    assert MeasurementTerms(1, 1).most_requests == 28


def test_prompts_are_as_long_as_asked_in_the_servers_own_tokens() -> None:
    with serving(streaming.syllables) as seen:
        level = measured(seen, levels=(1,), prompt_tokens=600).levels[0]
    assert level.prompt_tokens == pytest.approx(600, rel=0.05)
    assert len(seen.calls[0]["messages"][0]["content"]) < len(seen.calls[1]["messages"][0]["content"])


@pytest.mark.parametrize(
    ("play", "said"),
    [
        (streaming.half, r"ended after 1 pieces without \[DONE\]"),
        (streaming.refuses, "answered 400: .*maximum context length"),
        (streaming.fails, "answered 500: .*CUDA out of memory"),
        (streaming.errs_midway, "streamed an error: .*engine died"),
        (streaming.babbles, "streamed no JSON object"),
        (streaming.empty, "streamed no token"),
        (streaming.pours, "more than a reply has"),
        (streaming.redirects, "answered 307"),
    ],
)
def test_a_server_that_misbehaves_is_told(play: streaming.Play, said: str) -> None:
    with serving(play) as seen, pytest.raises(ServingError, match=said) as caught:
        measured(seen, key="secret-key")
    assert (caught.value.code, caught.value.exit_code) == ("not_measured", 3)
    assert "secret-key" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(seen.calls) <= 2


@pytest.mark.parametrize("play", [streaming.silent, streaming.hangs])
def test_a_silent_server_is_not_waited_for(play: streaming.Play) -> None:
    with serving(play) as seen, pytest.raises(ServingError, match=r"did not answer the first request within 0\.3 s"):
        measured(seen, time_limit_s=0.3)


def test_nobody_there_and_no_models_are_told() -> None:
    with pytest.raises(ServingError, match="/v1/models does not answer: ConnectError"):
        measured(Seen("http://127.0.0.1:9"))
    with serving(streaming.well, models=b'{"data": []}') as seen, pytest.raises(ServingError, match="names no model"):
        measured(seen)
    with serving(streaming.well, models=b"<html>") as seen, pytest.raises(ServingError, match="names no model"):
        measured(seen)


def test_time_that_ends_midway_leaves_what_was_measured() -> None:
    with serving(streaming.well) as seen:
        found = measured(seen, levels=(1, 8), rounds=4, time_limit_s=0.9, reply_tokens=10)
    assert found.seconds < 2.0
    assert found.levels[0].answered >= 1
    assert sum(level.given_up for level in found.levels) > 0


def test_requests_that_fail_are_counted_beside_those_that_do_not() -> None:
    with serving(streaming.every_other) as seen:
        level = measured(seen, levels=(4,)).levels[0]
    assert level.answered > 0
    assert level.failed > 0
    assert level.answered + level.failed == 8
    assert "without [DONE]" in level.first_failure


def test_a_server_without_vllms_fields_is_measured_with_notes() -> None:
    with serving(streaming.strict) as seen:
        found = measured(seen, levels=(1,))
    assert found.levels[0].reply_tokens == 3
    assert "takes no ignore_eos" in found.notes[0]
    assert "counts no tokens" in found.notes[1]
    assert sum("ignore_eos" in call for call in seen.calls) == 1


def test_tokens_that_come_all_at_once_are_noted() -> None:
    with serving(streaming.bunched) as seen:
        assert "some replies came all at once" in measured(seen, levels=(1,), reply_tokens=20).notes[0]
    with serving(streaming.well) as seen:
        assert measured(seen, levels=(1,), reply_tokens=20).notes == ()


def test_the_plans_figures_stand_beside_the_measured_ones() -> None:
    request = Request(find_model("Llama-3.1-8B"), prompt_tokens=50, reply_tokens=6)
    at = datetime(2026, 11, 24, tzinfo=UTC)
    with serving(streaming.well) as seen:
        record = compare_plan(measured(seen), request, DEVICES["h100"], at)
    json.dumps(record, allow_nan=False)
    assert record["measured_at"] == "2026-11-24T00:00:00+00:00"
    device = {"name": "h100", "title": "NVIDIA H100 80 GB SXM", "count": 1, "told_by": "the caller"}
    assert record["device"] == device
    one, four = record["levels"]
    assert 5 < one["planned"]["per_token_ms"] < 8
    assert one["measured"]["per_token_ms"] > one["planned"]["per_token_ms"]
    assert four["planned"]["time_to_first_token_ms"] == pytest.approx(
        2.5 * one["planned"]["time_to_first_token_ms"], rel=0.01
    )
