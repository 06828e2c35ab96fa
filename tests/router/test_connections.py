"""What a server sends is bounded before it is unpacked, and what it says of a failure before it is searched."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from typing import Any

import httpx2
import pytest

from alphaloom.router.calls.completions import MAX_ERROR_BYTES, REFUSED, Completion, Unreadable, parse_completion
from alphaloom.router.calls.connections import MAX_COMPLETION_BYTES, read_body, require_success
from alphaloom.router.endpoints.failures import ServerRefused

CHAT = json.dumps({"choices": [{"message": {"content": "well"}}]}).encode()


def read(body: bytes, packed: str = "", status: int = 200) -> Completion:
    """Return what is read of an answer."""
    headers = {"content-encoding": packed} if packed else {}
    response = httpx2.Response(status, headers=headers, stream=httpx2.ByteStream(body))

    async def told() -> bytes:
        return await read_body(response)

    answer = asyncio.run(told())
    require_success(response, answer)
    return parse_completion(answer)


def test_what_is_packed_once_is_read() -> None:
    assert read(gzip.compress(CHAT), "gzip").content == "well"


@pytest.mark.parametrize("packed", ["gzip", "gzip, gzip", "zstd"])
def test_no_answer_is_unpacked_beyond_the_bound(packed: str) -> None:
    bomb = gzip.compress(b" " * (20 * MAX_COMPLETION_BYTES))
    body = _zstd(20 * MAX_COMPLETION_BYTES) if packed == "zstd" else gzip.compress(bomb) if "," in packed else bomb
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            read(body, packed)
        assert tracemalloc.get_traced_memory()[1] < 5 * MAX_COMPLETION_BYTES
    finally:
        tracemalloc.stop()


def test_of_an_error_no_more_is_kept_than_is_read() -> None:
    with pytest.raises(ServerRefused) as refused:
        read(b"x" * MAX_COMPLETION_BYTES, status=500)
    assert len(str(refused.value)) == MAX_ERROR_BYTES
    with pytest.raises(Unreadable) as told:
        read(json.dumps({"error": "x" * (1 << 20)}).encode())
    assert len(str(told.value)) < 2 * MAX_ERROR_BYTES


@pytest.mark.parametrize(
    ("message", "finish", "said"),
    [
        ({"content": None, "refusal": "I won't."}, "stop", Completion("I won't.", finish=REFUSED)),
        ({"content": "", "refusal": None}, REFUSED, Completion("", finish=REFUSED)),
        ({"content": "well", "refusal": "I won't."}, "stop", Completion("well")),
    ],
)
def test_a_refusal_is_told_from_a_reply(message: dict[str, Any], finish: str, said: Completion) -> None:
    body = json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode()
    assert parse_completion(body) == said


def _zstd(size: int) -> bytes:
    """Return a frame of blank runs, each of four bytes for 128 KiB."""
    run = 1 << 17
    blocks = [
        ((run << 3 | 2 | (number == size // run - 1)).to_bytes(3, "little") + b" ") for number in range(size // run)
    ]
    return b"\x28\xb5\x2f\xfd\x00\x38" + b"".join(blocks)
