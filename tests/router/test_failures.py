"""What an error means; the errors are those of real broken connections, of our client and through LiteLLM."""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from alphaloom.router import AccessRefused, ModelFailed, ModelSettings, RequestRefused
from alphaloom.router.calls.completions import Completion
from alphaloom.router.calls.connections import ServerClients
from alphaloom.router.calls.providers import ProviderClients
from alphaloom.router.endpoints.failures import AttemptFailed, Failure, classify_failure, combine_failures

HEAD = b"HTTP/1.1 %d X\r\nRetry-After: 7\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
BODY = b'{"error": {"message": "no"}}'


@pytest.fixture
def no_network() -> None:
    """Allow what the rest of the room forbids: these tests ask servers of their own."""


def answer(server: socket.socket, what: str) -> None:
    """Take one call and break off as told."""
    with suppress(OSError):
        caller, _ = server.accept()
        caller.recv(1 << 16)
        if what.isdigit():
            caller.sendall(HEAD % (int(what), len(BODY)) + BODY)
        elif what == "half":
            caller.sendall(HEAD % (200, 99) + b"{")
        elif what == "reset":
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif what == "hang":
            while caller.recv(1 << 16):  # until the caller leaves
                pass
        caller.close()


@contextmanager
def saying(what: str) -> Iterator[int]:
    """Serve what breaks as told; yield the port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=answer, args=(server, what))
        thread.start()
        yield free_port() if what == "dead" else server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()


def free_port() -> int:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def ask(model: str, port: int) -> Completion:
    """Ask as the room does: our client for hosted_vllm, LiteLLM for any other provider."""
    settings = ModelSettings(model=model, api_base=f"http://127.0.0.1:{port}/v1")
    request = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9}
    if model.startswith("hosted_vllm/"):
        servers = ServerClients(0.7)
        try:
            return await servers.ask("it", settings, "none", None, request)
        finally:
            await servers.close()
    clients = ProviderClients(0.7)
    try:
        return await clients.ask("it", settings, "none", request)
    finally:
        await clients.close()


async def broken(model: str, port: int) -> Failure:
    outcome = (await asyncio.gather(ask(model, port), return_exceptions=True))[0]
    missed = AttemptFailed("said")
    missed.__cause__ = outcome if isinstance(outcome, BaseException) else None
    return classify_failure("it", missed, 0.7)


@pytest.mark.parametrize("model", ["hosted_vllm/x", "openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize(
    ("what", "kind", "error", "charged", "wait_s"),
    [
        ("dead", "lost", ModelFailed, False, 0),
        ("reset", "lost", ModelFailed, True, 0),
        ("half", "lost", ModelFailed, True, 0),
        ("hang", "late", ModelFailed, True, 0),
        ("500", "broken", ModelFailed, False, 7),
        ("429", "broken", ModelFailed, False, 7),
        ("401", "refused", AccessRefused, False, 0),
        ("404", "refused", AccessRefused, False, 0),
        ("400", "refused", RequestRefused, False, 0),
    ],
)
def test_an_error_is_told_from_what_really_happened(
    model: str, what: str, kind: str, error: type[ModelFailed], charged: bool, wait_s: float
) -> None:
    with saying(what) as port:
        found = asyncio.run(broken(model, port))
    assert (found.kind, found.error, found.charged, found.wait_s) == (kind, error, charged, wait_s)


def test_a_mixture_of_reasons_may_heal_and_is_told_in_full() -> None:
    told = [Failure("a", "refused", "bad key", AccessRefused), Failure("b", "late", "silent", ModelFailed)]
    error = combine_failures(told, {"c": "gone"})
    assert type(error) is ModelFailed
    assert error.message == "no reply from a: bad key; nor from b: silent; nor from c: not asked, gone"
    assert type(combine_failures(told[:1], {})) is AccessRefused
    assert type(combine_failures(told[:1], {"c": "gone"})) is ModelFailed
