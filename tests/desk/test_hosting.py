"""Where the servers listen."""

from __future__ import annotations

import asyncio
import socket

from alphaloom.desk.cli.serve.listen import open_listener


def test_an_answer_does_not_wait_until_the_client_acknowledges_its_beginning() -> None:
    """Headers and body are sent one after the other; with Nagle's algorithm on, the body would come 40 ms later."""
    told: list[int] = []

    async def look() -> None:
        async def taken(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted: socket.socket = writer.get_extra_info("socket")
            told.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        there = open_listener("127.0.0.1", 0, "--http")
        async with await asyncio.start_server(taken, sock=there):
            reader, writer = await asyncio.open_connection(*there.getsockname())
            await reader.read()
            writer.close()

    asyncio.run(look())
    assert told
    assert all(told)
