"""The servers as a person starts them: which data, whose callers, over standard input or HTTP, until the end."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Lock, Thread

from ....campaign import WORKSPACE
from ....evidence.code.sandbox import Jail
from ....ledger import Ledger
from ....ledger.calls import FOLDER, CallLog
from ....mcp_servers.access import AnyOf, Caller, Tokens, Verifier
from ....mcp_servers.access.oauth import read_oauth
from ....mcp_servers.callers import Ground, Rooms
from ....mcp_servers.http.web import Limits, Protected, web
from ....mcp_servers.served import Served
from ....mcp_servers.tools.servers import ALL, SERVERS, build_server
from ....news import NEWS, Shelf
from ....search.constraints import Mandate
from ..console import notices
from ..data_options import Place
from ..research import settings_at
from .listen import listening, quiet_signals, spelled

__all__ = ["Door", "serve_http", "serve_stdio"]

LOG = logging.getLogger(__name__)
GRACE_S = 2
"""How long requests under way may take when the servers end; the rooms' calls have a second more."""
STDIO = "stdio"
"""Whom the record names where no token tells who calls."""


@dataclass(frozen=True)
class Door:
    """Where the servers listen, and who is let in.

    Attributes
    ----------
    host, port
        Where they listen; port 0: any that is free.
    tokens, oauth : Path or None
        The file of `alphaloom token`, and that of OAuth servers.
    limits : Limits
        How much one caller may ask, and which names the servers are reached under.
    """

    host: str
    port: int
    tokens: Path | None
    oauth: Path | None
    limits: Limits


def _now() -> datetime:
    return datetime.now(UTC)


def _rooms(stack: ExitStack, place: Place, ceiling: date | None) -> Rooms:
    """Return the rooms on what a place names, each part on the stack as soon as it is open; calls are written down there."""
    settings = settings_at(place)
    ledger = stack.enter_context(Ledger.open(place.workspace or WORKSPACE, clock=_now))
    calls = stack.enter_context(CallLog.open(ledger.workspace / FOLDER, clock=_now))
    jail = stack.enter_context(Jail(settings.sandbox)).ready()
    news = stack.enter_context(Shelf(ledger.workspace / NEWS))
    ground = Ground(
        lambda: settings.market.open(settings.seed), ledger, settings.evidence, settings.budget,
        Mandate(settings.steer.fields, settings.steer.avoid), _now, calls.append, settings.market.read_actions(),
        settings.market.volumes, jail, settings.seed, settings.model_dump(mode="json"), news, settings.market.labels,
        columns=settings.market.columns,
    )  # fmt: skip
    if settings.market.panel is not None:
        _ = ground.panel  # what is wrong with a file is told before anything is served; a simulated market can wait
    return stack.enter_context(Rooms(ground, ceiling))


def serve_stdio(server: str, place: Place, scopes: frozenset[str], ceiling: date | None) -> None:
    """Serve one of the servers over standard input and output, until the client hangs up or a signal asks to end."""
    opened, closing = ExitStack(), Lock()
    for number in (signal.SIGINT, signal.SIGTERM):  # clients that wait no longer send it
        signal.signal(number, lambda *_: Thread(target=_end, args=(opened, closing)).start())
    try:
        served = _rooms(opened, place, ceiling).served(Caller(STDIO, scopes))
        Thread(target=_opened, args=(served,), daemon=True).start()
        build_server(server, served).run("stdio")
    finally:
        with closing:
            opened.close()


def _opened(served: Served) -> None:
    """Open what a caller's tools work on while the client says who it is: the first time it takes longer than clients wait.

    What cannot be opened is told by the first tool that is called.
    """
    with suppress(Exception):
        _ = served.evaluator


def serve_http(place: Place, door: Door, ceiling: date | None) -> None:
    """Serve all of them over HTTP until a signal asks to end, which ends the process; calls under way are answered first.

    Raises
    ------
    AddressTaken
        Somebody listens there already, or nobody may.
    ServingBroken
        They ended though nobody asked them to.
    """
    from .server import Terms, serve

    verifier, protected = _verifier(door)
    with listening(door.host, door.port, "--http") as there, ExitStack() as opened:
        rooms = _rooms(opened, place, ceiling)
        _ = rooms.ground.panel
        with quiet_signals() as came:
            host, port = there.getsockname()[:2]
            notices().out(f"http://{spelled(host)}:{port}/NAME/mcp, NAME one of: {', '.join([*sorted(SERVERS), ALL])}")
            serve(web(rooms, verifier, door.limits, protected), there, Terms(GRACE_S), lambda: bool(came))
            opened.close()
    sys.stderr.flush()
    os._exit(0)  # a job's thread may still run, and would be waited for


def _end(opened: ExitStack, closing: Lock) -> None:
    """Close what is open and end at once: a thread reads what the client says next, and would be waited for.

    On a thread of its own, since a signal may come while the main one holds what closing needs. Who comes second, a signal
    more or the client that hangs up, waits until all is closed.
    """
    with closing:
        code = 0
        try:
            opened.close()
        except BaseException:
            LOG.exception("not all that was open could be closed")
            code = 1
        os._exit(code)


def _verifier(door: Door) -> tuple[Verifier, Protected | None]:
    """Return what says who calls, and what clients are told of an OAuth server."""
    ways: list[Verifier] = [Tokens.open(door.tokens, clock=_now)] if door.tokens else []
    if door.oauth is None:
        return AnyOf(ways), None
    verifier, protected = read_oauth(door.oauth, _now)
    return AnyOf([*ways, verifier]), protected
