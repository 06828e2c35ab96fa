"""What a server sends is bounded before it is unpacked, and what it says of a failure before it is searched."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from typing import Any

import httpx
import pytest

from alphaloom.router.calls.connections import MAX_COMPLETION_BYTES, MAX_ERROR_BYTES, Unreadable, wrap_transport

CHAT = json.dumps({"choices": [{"message": {"content": "well"}}]}).encode()


def read(body: bytes, packed: str = "", status: int = 200) -> tuple[bytes, Any]:
    """Return what is read of an answer, and the headers with which it was asked for."""
    seen: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        headers = {"content-encoding": packed} if packed else {}
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))

    async def asked() -> bytes:
        async with httpx.AsyncClient(transport=wrap_transport(httpx.MockTransport(answer))) as client:
            return (await client.get("http://127.0.0.1/")).content

    return asyncio.run(asked()), seen[0]


def test_what_is_packed_once_is_read_and_nothing_else_is_asked_for() -> None:
    body, headers = read(gzip.compress(CHAT), "gzip")
    assert json.loads(body)["choices"][0]["message"]["content"] == "well"
    assert headers["accept-encoding"] == "gzip"


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
    assert len(read(b"x" * MAX_COMPLETION_BYTES, status=500)[0]) == MAX_ERROR_BYTES
    with pytest.raises(Unreadable) as told:
        read(json.dumps({"error": "x" * (1 << 20)}).encode())
    assert len(str(told.value)) < 2 * MAX_ERROR_BYTES


def _zstd(size: int) -> bytes:
    """Return a frame of blank runs, each of four bytes for 128 KiB."""
    run = 1 << 17
    blocks = [
        ((run << 3 | 2 | (number == size // run - 1)).to_bytes(3, "little") + b" ") for number in range(size // run)
    ]
    return b"\x28\xb5\x2f\xfd\x00\x38" + b"".join(blocks)
