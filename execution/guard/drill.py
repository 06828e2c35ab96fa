"""The kill drill: a venue, a guard and a trading process that hangs, all real processes on this machine, and the halt.

One drill: a trading process sends its orders over a FIX session of its own and then computes for ever, so that it
answers nobody. When the guard has seen all orders, the halt file is made. Measured is the time until the guard has the
acknowledgement of the last cancel.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from ..errors import ExecutionError
from ..fix import TRADING_RESENT, FixConnection, FixVenue, SessionSettings
from ..fix.venue import VENUE_NAME, AcceptorSettings, Exchange, ExchangeSettings, VenueAcceptor, VenueFaults
from ..halt import HALT_FILE, Halt, HaltSwitch
from ..orders import PRICE_UNITS, ChildOrder
from .guard import Guard, GuardAnswer

HOST: Final = "127.0.0.1"
GUARD_NAME: Final = "GUARD"
HEARTBEAT_SECONDS: Final = 30
MOST_SECONDS: Final = 60.0
"""Longest time of one drill before it counts as failed."""
DRILL_SHARES: Final = 100
DRILL_SYMBOLS: Final = 20
LOWEST_PRICE_E4: Final = PRICE_UNITS
"""The orders bid this price, so low that nobody sells: they stay open."""


@dataclass(frozen=True, slots=True)
class DrillResult:
    """One drill; times in microseconds since 1970.

    Attributes
    ----------
    orders
        Orders that were open when the halt was made.
    made_us
        When the halt file was on the disk.
    answer
        What the guard did.
    """

    orders: int
    made_us: int
    answer: GuardAnswer

    @property
    def took_ms(self) -> float:
        """Return the milliseconds from the guard's notice to the last acknowledgement."""
        return self.answer.took_ms

    @property
    def noticed_ms(self) -> float:
        """Return the milliseconds from the file on the disk to the guard's notice; below 0 where it was faster."""
        return (self.answer.noticed_us - self.made_us) / 1000


def run_drills(
    folder: Path, orders: int, times: int, told: Callable[[DrillResult], None], *, mass_cancels: bool = True
) -> list[DrillResult]:
    """Run drills in an empty folder, each with a new trading process, and return what was measured.

    `mass_cancels` says whether the venue serves them; else the guard has to cancel each order by itself.

    Raises
    ------
    ExecutionError
        A process did not do its part in time, or an order was not cancelled.
    """
    context = multiprocessing.get_context("spawn")  # nothing is shared with the caller, as with real processes
    results: list[DrillResult] = []
    processes: list[BaseProcess] = []

    def start(target: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
        here, there = context.Pipe()
        process = context.Process(target=target, args=(*arguments, there), daemon=True)
        process.start()
        processes.append(process)
        return process, here

    try:
        _, venue = start(_serve_venue, folder / "venue", mass_cancels)
        port = _receive(venue, "the venue")
        _, guard = start(_serve_guard, folder, port)
        _receive(guard, "the guard")
        with HaltSwitch(folder) as switch:
            for number in range(times):
                trader, line = start(_trade, folder, port, number, orders)
                _receive(line, "the trading process")
                results.append(_halt(switch, guard, orders))
                told(results[-1])
                trader.kill()
                trader.join()
                (folder / HALT_FILE).unlink()
                guard.send("released")
                _receive(guard, "the guard")
    finally:
        for process in processes:
            process.kill()
            process.join()
    return results


def _halt(switch: HaltSwitch, guard: Connection, orders: int) -> DrillResult:
    """Make the halt once the guard has seen all orders, and wait for its answer."""
    guard.send(orders)
    _receive(guard, "the guard")
    switch.set(Halt("a drill", "alphaloom drill kill", _read_clock_us()))
    made_us = _read_clock_us()
    answer: GuardAnswer = _receive(guard, "the guard")
    if answer.cancelled != orders:
        raise _drill_error(f"{answer.cancelled} of {orders} orders were cancelled")
    return DrillResult(orders, made_us, answer)


def _receive(line: Connection, who: str) -> Any:
    if not line.poll(MOST_SECONDS):
        raise _drill_error(f"{who} did not answer within {MOST_SECONDS:.0f} s")
    try:
        return line.recv()
    except EOFError:
        raise _drill_error(f"{who} ended") from None


def _drill_error(what: str) -> ExecutionError:
    hint = "Nothing of yours was touched: a drill has a venue of its own. Run it again on a calm machine."
    return ExecutionError(f"The drill failed: {what}.", hint=hint, code="drill", exit_code=1)


def _read_clock_us() -> int:
    return time.time_ns() // 1000


# The processes.


def _serve_venue(folder: Path, mass_cancels: bool, line: Connection) -> None:
    """Serve a venue whose guard session reaches all others, and tell its port."""
    _ignore_interrupts()
    gc.disable()  # as in `alphaloom serve venue`
    listener = socket.create_server((HOST, 0))
    settings = AcceptorSettings(0, VenueFaults(0, 0, 0), cancel_on_disconnect=True)
    exchange = Exchange(ExchangeSettings(0, guard=GUARD_NAME, mass_cancels=mass_cancels))
    acceptor = VenueAcceptor(listener, folder, exchange, settings, _read_clock_us, lambda text: None)
    line.send(listener.getsockname()[1])
    acceptor.run()


def _serve_guard(folder: Path, port: int, line: Connection) -> None:
    """Guard the folder: answer to a number of orders once they are open, to a halt, and to its release."""
    _ignore_interrupts()
    link = _connect(GUARD_NAME, port, folder / "guard.journal")
    with HaltSwitch(folder) as switch:
        guard = Guard(switch, link, _read_clock_us, line.send)
        link.wait_until_ready(MOST_SECONDS)
        line.send("ready")
        awaited: object = None
        while True:
            guard.step()
            if line.poll():
                awaited = line.recv()
            if awaited == "released" and not switch.is_set():
                guard.step()  # forget the halt that was released
            elif awaited is None or guard.open_orders != awaited:
                continue
            line.send(awaited)
            awaited = None


def _trade(folder: Path, port: int, number: int, orders: int, line: Connection) -> None:
    """Send orders that stay open, and then compute for ever."""
    _ignore_interrupts()
    venue = FixVenue("drill", _connect(f"TRADER-{number}", port, folder / f"trader-{number}.journal"), _read_clock_us)
    bids = [(f"{number}-{place}", f"S{place % DRILL_SYMBOLS}") for place in range(orders)]
    venue.send(
        [ChildOrder(name, str(number), asset, "buy", DRILL_SHARES, "limit", LOWEST_PRICE_E4, 0) for name, asset in bids]
    )
    accepted = 0
    while accepted < orders:
        accepted += sum(report.kind == "accepted" for report in venue.read_reports(1.0))
    line.send("sent")
    while True:
        pass


def _connect(name: str, port: int, path: Path) -> FixConnection:
    settings = SessionSettings("FIX.4.4", name, VENUE_NAME, True, HEARTBEAT_SECONDS, TRADING_RESENT)
    return FixConnection(HOST, port, settings, path, _read_clock_us)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started the drill: it ends the others."""
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
