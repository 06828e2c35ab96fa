"""A server ends when it is asked to, whatever its application does, and by itself only with an error."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from alphaloom.desk.cli.serve.connections import SPARE_CONNECTIONS
from alphaloom.desk.cli.serve.listen import open_listener, quiet_signals
from alphaloom.desk.cli.serve.server import (
    END_SECONDS,
    MAX_DESCRIPTORS,
    MIN_CONNECTIONS,
    HttpServer,
    ServerTerms,
    count_places,
)

from ..mcp_servers.started import ROOT, environment

SLACK = 6.0
STUCK = """
import sys, threading, time
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from alphaloom.desk.cli.serve.listen import open_listener, quiet_signals
from alphaloom.desk.cli.serve.server import ServerTerms, serve_until_signal

async def stuck(request):
    print("stuck", flush=True)
    {stuck}
    return Response("done")

with open_listener("127.0.0.1", 0, "here") as there, quiet_signals() as came:
    print(there.getsockname()[1], flush=True)
    {first}
    serve_until_signal(Starlette(routes=[Route("/", stuck)]), there, ServerTerms(1), lambda: bool(came))
print("ended", flush=True)
"""


def ask(port: int) -> None:
    """Send a request that gets no answer in time."""
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://127.0.0.1:{port}/", timeout=0.5, trust_env=False)


def ended(stuck: str = "pass", first: str = "pass") -> tuple[int, float, str]:
    """Return the exit code, seconds and output of a server that gets SIGTERM while it works on a request."""
    script = STUCK.format(stuck=stuck, first=first)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, env=environment(), text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            if first == "pass":
                ask(port)
                assert process.stdout.readline() == "stuck\n"
                process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            code = process.wait(END_SECONDS + SLACK)
            return code, time.monotonic() - began, process.stdout.read()
        finally:
            process.kill()


def test_a_request_without_end_is_cut_off() -> None:
    code, _, said = ended("import asyncio; await asyncio.sleep(60)")
    assert (code, said) == (0, "ended\n")


@pytest.mark.parametrize(
    ("stuck", "said"),
    [
        ("threading.Thread(target=time.sleep, args=(60,)).start(); await __import__('asyncio').sleep(60)", "ended\n"),
        ("time.sleep(60)", ""),
    ],
    ids=["a thread", "the loop"],
)
def test_what_cannot_be_cut_off_ends_with_the_process(stuck: str, said: str) -> None:
    code, took, told = ended(stuck)
    assert code == -signal.SIGALRM, "no success, so that a supervisor looks"
    assert took > END_SECONDS / 2
    assert told == said


def test_a_signal_that_comes_before_it_serves_is_not_lost() -> None:
    code, _, said = ended(first="import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert (code, said) == (0, "ended\n")


def test_a_signal_that_ended_the_server_is_not_raised_again() -> None:
    async def serving() -> None:
        with open_listener("127.0.0.1", 0, "here") as there:
            server = HttpServer(Starlette(), ServerTerms(1))
            task = asyncio.create_task(server.serve(sockets=[there]))
            while not server.started:
                await asyncio.sleep(0.01)
            signal.raise_signal(signal.SIGINT)
            await task

    with quiet_signals() as came:
        asyncio.run(serving())
    assert came == []


def test_a_listener_that_breaks_ends_the_server_with_an_error() -> None:
    async def serving() -> bool:
        with open_listener("127.0.0.1", 0, "here") as there:
            server = HttpServer(Starlette(), ServerTerms(1))
            task = asyncio.create_task(server.serve(sockets=[there]))
            while not server.started:
                await asyncio.sleep(0.01)
            there.shutdown(socket.SHUT_RDWR)
            async with asyncio.timeout(SLACK):
                await task
        return server.broken

    assert asyncio.run(serving())


def test_where_no_descriptor_is_left_a_connection_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many errors of accept() as there may be: none ends the listener, and each closes a connection."""

    async def serving() -> int:
        with open_listener("127.0.0.1", 0, "here") as there:
            server = HttpServer(Starlette(), ServerTerms(1))
            task = asyncio.create_task(server.serve(sockets=[there]))
            while not server.started:
                await asyncio.sleep(0.01)
            silent = [await asyncio.open_connection(*there.getsockname()) for _ in range(3)]
            loop, left = asyncio.get_running_loop(), [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED]
            accept = loop.sock_accept

            async def failing(wire: socket.socket) -> Any:
                if left:
                    raise OSError(left.pop(), "no more")
                return await accept(wire)

            monkeypatch.setattr(loop, "sock_accept", failing)
            silent.append(await asyncio.open_connection(*there.getsockname()))  # what waited accepts this one yet
            async with asyncio.timeout(SLACK):
                closed = [await reader.read() for reader, _ in silent[:3]]
            async with httpx2.AsyncClient(trust_env=False) as http:
                answer = await http.get(f"http://127.0.0.1:{there.getsockname()[1]}/")
            for _, writer in silent:
                writer.close()
            server.should_exit = True
            await task
            assert closed == [b""] * 3
        return answer.status_code

    assert asyncio.run(serving()) == 404


def test_there_are_no_more_places_than_the_system_gives_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource")
    limits = [(1024, 1024)]
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _which, wanted: limits.append(wanted))
    for each in (1, 2):
        most = count_places(ServerTerms(1, 1_000, each))
        assert each * (most + SPARE_CONNECTIONS) <= 0.75 * 1024
        assert most > 300
    assert "1024 descriptors" in caplog.text
    limits[:] = [(256, 4096)]
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        assert count_places(ServerTerms(1, 1_000, 2)) == 1_000
    assert (limits[-1], caplog.text) == ((4096, 4096), "")
    limits[:] = [(64, 64)]
    assert count_places(ServerTerms(1)) == MIN_CONNECTIONS
    limits[:] = [(1024, resource.RLIM_INFINITY)]
    assert count_places(ServerTerms(1)) == 1_000
    assert limits[-1] == (MAX_DESCRIPTORS, resource.RLIM_INFINITY)
