"""The servers as a person starts them: data, callers, transport (standard input or HTTP), and shutdown."""

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
from ....evidence.values import LazySandbox
from ....ledger import Ledger, WorkspaceError
from ....ledger.calls import CALLS_FOLDER, CallLog
from ....ledger.database import has_record
from ....mcp_servers import CallerContexts, CallerEntry, CallerLimits, ServedCaller, ServerSetup, build_web_app
from ....mcp_servers.access import AnyOf, Caller, Protected, Tokens, TokenVerifier, read_oauth
from ....mcp_servers.tools import SERVER_NAMES, SUPERVISOR_SERVERS, build_server
from ....news import NEWS_FOLDER, NewsStore
from ....search import SearchConstraints
from ..console import stderr_console
from ..evaluator import settings_at
from ..options import DataOptions
from .listen import format_host, open_listener, quiet_signals

LOG = logging.getLogger(__name__)
SHUTDOWN_GRACE_SECONDS = 2
"""Seconds that requests under way have when the servers end; the rooms' calls have one second more."""
STDIO = "stdio"
"""The caller's name in the record where there is no token."""


@dataclass(frozen=True)
class ServerDoor:
    """Where the servers listen, and whom they admit.

    Attributes
    ----------
    host, port
        The address; port 0: any that is free.
    tokens, oauth : Path or None
        The file of `alphaloom token`, and that of OAuth servers.
    limits : CallerLimits
        How much one caller may ask, and the names under which the servers are reached.
    """

    host: str
    port: int
    tokens: Path | None
    oauth: Path | None
    limits: CallerLimits


def _read_clock() -> datetime:
    return datetime.now(UTC)


def _open_contexts(stack: ExitStack, place: DataOptions, ceiling: date | None) -> CallerContexts:
    """Return the callers' contexts on the given data; each part is on the stack as soon as it is open.

    Calls are recorded in the workspace.
    """
    settings = settings_at(place)
    ledger = stack.enter_context(Ledger.open(place.workspace or WORKSPACE, clock=_read_clock))
    calls = stack.enter_context(CallLog.open(ledger.workspace / CALLS_FOLDER, clock=_read_clock))
    sandbox = stack.enter_context(LazySandbox(settings.sandbox)).ready()
    news = stack.enter_context(NewsStore(ledger.workspace / NEWS_FOLDER))
    setup = ServerSetup(
        lambda: settings.market.open(settings.seed), ledger, settings.evidence, settings.budget,
        SearchConstraints(settings.steer.fields, settings.steer.avoid), _read_clock, calls.append,
        settings.market.read_actions(), settings.market.volumes, sandbox, settings.seed,
        settings.model_dump(mode="json"), news, settings.market.labels, columns=settings.market.columns,
    )  # fmt: skip  # a table
    if settings.market.panel is not None:
        _ = setup.panel  # a mistake in a file is reported before anything is served; a simulated market can wait
    return stack.enter_context(CallerContexts(setup, ceiling))


def serve_stdio(server: str, place: DataOptions, scopes: frozenset[str], ceiling: date | None) -> None:
    """Serve one of the servers over standard input and output, until the client hangs up or a signal arrives."""
    opened, closing = ExitStack(), Lock()
    for number in (signal.SIGINT, signal.SIGTERM):  # clients send SIGTERM when they wait no longer
        signal.signal(number, lambda *_: Thread(target=_end_process, args=(opened, closing)).start())
    try:
        caller = Caller(STDIO, scopes)
        if server in SUPERVISOR_SERVERS:
            served = _open_record(opened, place.workspace or WORKSPACE, caller, ceiling)
        else:
            served = _open_contexts(opened, place, ceiling).serve(caller)
            Thread(target=_open_for_caller, args=(served,), daemon=True).start()
        build_server(server, served).run("stdio")
    finally:
        with closing:
            opened.close()


def _open_record(stack: ExitStack, workspace: Path, caller: Caller, ceiling: date | None) -> ServedCaller:
    """Return what a supervisor is served from; only the record of calls is written.

    Raises
    ------
    WorkspaceError
        The folder holds no record.
    """
    if not has_record(workspace):
        raise WorkspaceError(f"there is no record in {workspace}", field="--workspace", got=str(workspace))
    calls = stack.enter_context(CallLog.open(workspace / CALLS_FOLDER, clock=_read_clock))
    return ServedCaller.for_supervisor(workspace, CallerEntry(caller, calls.append, ceiling), _read_clock)


def _open_for_caller(served: ServedCaller) -> None:
    """Open a caller's data while the client introduces itself: the first time takes longer than clients wait.

    An error here is reported by the first tool that is called.
    """
    with suppress(Exception):
        _ = served.evaluator


def serve_http(place: DataOptions, door: ServerDoor, ceiling: date | None) -> None:
    """Serve all of them over HTTP until a signal, which ends the process; calls under way are answered first.

    Raises
    ------
    DeskError
        The address is in use or not permitted, or the servers ended without a request.
    """
    from .server import ServerTerms, serve_until_signal

    verifier, protected = _make_verifier(door)
    with open_listener(door.host, door.port, "--http") as listener, ExitStack() as opened:
        rooms = _open_contexts(opened, place, ceiling)
        _ = rooms.setup.panel
        with quiet_signals() as signals:
            host, port = listener.getsockname()[:2]
            stderr_console().out(f"http://{format_host(host)}:{port}/NAME/mcp, NAME one of: {', '.join(SERVER_NAMES)}")
            serve_until_signal(
                build_web_app(rooms, verifier, door.limits, protected),
                listener,
                ServerTerms(SHUTDOWN_GRACE_SECONDS),
                lambda: bool(signals),
            )
            opened.close()
    sys.stderr.flush()
    os._exit(0)  # otherwise the exit would wait for a job's thread


def _end_process(opened: ExitStack, closing: Lock) -> None:
    """Close everything and end the process at once: the thread that reads the client's input would be waited for.

    It runs on a thread of its own, since a signal may arrive while the main thread holds a lock that closing needs. A
    second caller (another signal, or the client that hangs up) waits until all is closed.
    """
    with closing:
        code = 0
        try:
            opened.close()
        except BaseException:
            LOG.exception("not all that was open could be closed")
            code = 1
        os._exit(code)


def _make_verifier(door: ServerDoor) -> tuple[TokenVerifier, Protected | None]:
    """Return the verifier of callers, and the clients' information about an OAuth server."""
    ways: list[TokenVerifier] = [Tokens.open(door.tokens, clock=_read_clock)] if door.tokens else []
    if door.oauth is None:
        return AnyOf(ways), None
    verifier, protected = read_oauth(door.oauth, _read_clock)
    return AnyOf([*ways, verifier]), protected
