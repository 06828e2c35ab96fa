"""The command that serves a simulated venue over FIX, for anyone who wants to test a FIX client."""

from __future__ import annotations

import gc
import signal
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import print_plain, stderr_console
from ..options import check_file_exists
from .listen import open_listener

if TYPE_CHECKING:
    from ....execution.fix.venue import AcceptorSettings, Exchange, SessionOpens

LOOPBACK = "127.0.0.1"
BASIS_OF_PERCENT = 100
US_PER_MS = 1000


def _parse_percent(text: str) -> str:
    """Return a share such as 5% as a whole number of 1e-4, in digits."""
    try:
        basis = Decimal(text.strip().removesuffix("%")) * BASIS_OF_PERCENT
    except InvalidOperation:
        basis = Decimal("NaN")
    if not basis.is_finite() or basis != int(basis) or not 0 <= basis <= BASIS_OF_PERCENT * 100:
        raise typer.BadParameter(f"{text!r} is no share from 0% to 100% with two decimals at most, such as 5%")
    return str(int(basis))


def _share(option: str, what: str) -> Any:
    """Return an option that is a share in percent."""
    return typer.Option(option, metavar="PERCENT", callback=_parse_percent, help=what)


PricesFile = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        callback=check_file_exists,
        help="CSV: symbol,price. Only these are traded. Without it any symbol is, at a price that is drawn.",
    ),
]
OpensFile = Annotated[
    Path | None,
    typer.Option(
        "--panel",
        callback=check_file_exists,
        help="Orders are filled at its opening prices, each in the session of its TransactTime, instead of depth.",
    ),
]


def venue(
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="Keeps orders and sequence numbers; else they are forgotten."),
    ] = None,
    prices: PricesFile = None,
    panel: OpensFile = None,
    latency_ms: Annotated[
        int, typer.Option("--latency-ms", min=0, max=60_000, help="Between an order and its reports.")
    ] = 0,
    partial_fills: Annotated[bool, typer.Option("--partial-fills", help="Fills come in two to four parts.")] = False,
    rejects: Annotated[str, _share("--rejects", "Of the orders: rejected.")] = "0%",
    disconnects: Annotated[
        str, _share("--disconnects", "Of the orders: the connection breaks before their reports leave.")
    ] = "0%",
    malformed: Annotated[str, _share("--malformed", "Of the reports: a malformed message comes before.")] = "0%",
    wrong_copies: Annotated[
        str, _share("--wrong-copies", "Of the orders: a fill's report or drop copy is lost, or has another price.")
    ] = "0%",
    keep_orders: Annotated[
        bool, typer.Option("--keep-orders", help="Open orders stay when a session is lost; else they are cancelled.")
    ] = False,
    refuse_mass_cancels: Annotated[
        bool, typer.Option("--refuse-mass-cancels", help="Each order has to be cancelled by itself.")
    ] = False,
    drop_copy: Annotated[
        str, typer.Option("--drop-copy", metavar="COMPID", help="This session gets a copy of every report.")
    ] = "",
    guard: Annotated[
        str, typer.Option("--guard", metavar="COMPID", help="It gets copies too, and its cancels reach everyone.")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", help="Of prices, depth, and everything that goes wrong.")] = 0,
) -> None:
    """Serve a simulated venue over FIX 4.4 and 5.0SP2 on this machine alone, until Ctrl-C or SIGTERM.

    Any SenderCompID may log on, each in a session of its own; TargetCompID is VENUE, without encryption. It takes
    NewOrderSingle (market and limit), OrderCancelRequest and OrderMassCancelRequest. Each order meets a synthetic depth
    of ten levels around the symbol's price and the orders of other clients, best price first, then the oldest; with
    --panel it is filled at the session's opening price, as by the paper venue. The same orders and seed give the same
    reports.
    """
    from ....execution.fix.venue import AcceptorSettings, Exchange, ExchangeSettings, VenueFaults, read_prices

    if prices and panel:
        raise typer.BadParameter("one of --prices and --panel", param_hint="--panel")
    traded, opens = read_prices(prices) if prices else None, _read_opens(panel) if panel else None
    settings = ExchangeSettings(seed, traded, partial_fills, int(rejects), drop_copy, guard)
    settings = replace(settings, mass_cancels=not refuse_mass_cancels, opens=opens, wrong_copies_bp=int(wrong_copies))
    faults = VenueFaults(seed, int(disconnects), int(malformed))
    source = f"prices of {panel or prices}" if panel or prices else "prices drawn at random"
    _serve(port, folder, Exchange(settings), AcceptorSettings(latency_ms * US_PER_MS, faults, not keep_orders), source)


def _read_opens(file: Path) -> SessionOpens:
    """Return the opening prices of a panel."""
    import numpy as np

    from ....execution import PRICE_UNITS
    from ....execution.fix.venue import SessionOpens
    from ....market import PanelSource, read_panel

    panel = read_panel(PanelSource(file))
    opens = np.rint(np.nan_to_num(panel.fields["open"]) * PRICE_UNITS).astype(np.int64)
    return SessionOpens(panel.dates.tolist(), panel.symbols, opens)


def _serve(port: int, folder: Path | None, exchange: Exchange, settings: AcceptorSettings, source: str) -> None:
    """Listen until a signal comes; `source` says where the prices are from."""
    from ....execution.fix.venue import VenueAcceptor

    with ExitStack() as stack:
        listener = stack.enter_context(open_listener(LOOPBACK, port, "--port"))
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alphaloom-venue-")))
        acceptor = VenueAcceptor(
            listener, place, exchange, settings, lambda: time.time_ns() // 1000, stderr_console().out
        )
        stack.callback(acceptor.close)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: acceptor.stop())
        # The venue makes no cycles. A collection over 100,000 orders would stop it for a tenth of a second.
        gc.disable()
        stack.callback(gc.enable)
        address = f"{LOOPBACK}:{listener.getsockname()[1]}"
        print_plain(f"FIX venue at {address}, TargetCompID VENUE, {source}; Ctrl-C ends it")
        acceptor.run()
