"""The venue of a session: paper and NautilusTrader fill from the panel, a FIX venue is somewhere else."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from ...execution import (
    EXECUTION_FILE,
    PRICE_UNITS,
    US_PER_SECOND,
    ExecutionError,
    ExecutionReport,
    FixSettings,
    Halt,
    HaltSwitch,
    MarketTerms,
    NameSession,
    OrderLimits,
    OrderRecord,
    PaperSession,
    PaperVenue,
    PresentTime,
    SimulatedPaper,
    SimulatedTime,
    Timeline,
    Venue,
    read_execution_policy,
)
from ...execution.fix import (
    TRADING_RESENT,
    CopiedVenue,
    DropCopy,
    DropCopyBreak,
    FixConnection,
    FixLink,
    FixVenue,
    QuickFixLink,
    SessionSettings,
)
from ...execution.nautilus import NautilusVenue, SessionPrices
from ...execution.simulation import SimulatedVenue
from ...market import PRICE_FIELDS, Panel
from ..facts import read_prices
from .plan import SessionPlan
from .step import read_decision_inputs

FIX_VENUE: Final = "fix"
FIX_FOLDER: Final = "fix"
"""Of the workspace: a file for each session, with its numbers and messages."""
DROP_COPY: Final = "drop copy"
LOGON_SECONDS: Final = 10.0
"""How long a FIX venue has to answer the Logon."""


@dataclass(frozen=True)
class ReachedVenue:
    """A venue, and the clock by which orders are sent to it."""

    venue: Venue
    time: Timeline


def open_venue(
    workspace: Path, plan: SessionPlan, panel: Panel, row: int | None, now: datetime, record: OrderRecord
) -> ReachedVenue:
    """Return the venue that a plan names.

    Parameters
    ----------
    row
        The session's day in the panel; None of a FIX venue, which has prices of its own.
    now
        The present.
    record
        The session in the ledger, with which a drop copy is compared.

    Raises
    ------
    ExecutionError
        The venue cannot be reached, or the session was over before it was planned.
    """
    settings = read_execution_policy(workspace)
    if plan.request.venue == FIX_VENUE:
        return _open_fix(settings.fix, (workspace, record), plan, round(now.timestamp() * US_PER_SECOND))
    assert row is not None
    moved = SimulatedTime(plan.opens_us)
    if plan.request.venue == NautilusVenue.name:
        return ReachedVenue(_open_nautilus(settings.nautilus.python, plan, panel, row), moved)
    if plan.request.schedule != "market":
        return ReachedVenue(_open_market(plan, panel, row, moved), moved)
    return ReachedVenue(PaperVenue(_open_session(plan, panel, row)), moved)


def refuse_schedule(plan: SessionPlan, limits: OrderLimits, from_us: int) -> None:
    """Refuse a schedule where the venue cannot trade it; a session that has begun is traded from `from_us` on.

    Raises
    ------
    ExecutionError
        NautilusTrader is given opening prices alone; or orders of a FIX venue are further from each other and from the
        opening than the gate lets the last price be old, and no other price than that of a fill comes from there.
    """
    request = plan.request
    if request.venue == NautilusVenue.name and request.schedule != "market":
        raise ExecutionError(
            "NautilusTrader is fed with the panel's opening prices alone, so it trades no schedule here.",
            field="--schedule",
            got=request.schedule,
            allowed="market",
            hint="Nothing was sent. --venue paper simulates the session between open and close.",
            code="schedule_venue",
        )
    times = {plan.opens_us, *(max(at_us, from_us) for cut in plan.cuts.values() for at_us, _ in cut.slices)}
    apart_us = max((after - before for before, after in pairwise(sorted(times))), default=0)
    if request.venue == FIX_VENUE and apart_us > limits.max_quote_age_s * US_PER_SECOND:
        raise ExecutionError(
            "The FIX session brings no prices but those of fills, and they would be too old for the order gate.",
            field=f"{EXECUTION_FILE}: orders.max_quote_age_s",
            got=limits.max_quote_age_s,
            allowed=f"{math.ceil(apart_us / US_PER_SECOND)} or more for this schedule",
            hint="Nothing was sent. Allow older prices, plan more slices (schedule.slices), or begin earlier.",
            code="schedule_quotes",
        )


def _open_market(plan: SessionPlan, panel: Panel, row: int, clock: Timeline) -> SimulatedPaper:
    """Return a simulated session of each name, pinned to its prices and volume, whose path its parent's id decides."""
    settings, share = plan.settings, plan.close.settings.max_volume_share
    prices, names = _read_session(plan, panel, row).rows, dict[str, NameSession]()
    for parent in plan.parents:
        volatility_bp = plan.cuts[parent.id].past.volatility_bp
        cells = prices.get(parent.asset)
        if cells is not None and cells[-1] > 0 and volatility_bp:
            start, high, low, last, shares = cells
            room = int(share * shares) if share else None
            seed = int(parent.id, 16)
            names[parent.asset] = NameSession(start, high, low, last, shares, volatility_bp, seed, room)
    venues = tuple(
        SimulatedVenue(one.name, one.depth_bp, one.fee_e6, one.order_fee_e6, one.latency_us, one.hidden_bp)
        for one in settings.venues
    )
    cost_bp = plan.close.settings.bps_per_side
    terms = MarketTerms(plan.spans, cost_bp, settings.half_spread_bp, settings.participation_bp)
    return SimulatedPaper(names, replace(terms, venues=venues) if venues else terms, clock)


def _open_fix(settings: FixSettings, kept: tuple[Path, OrderRecord], plan: SessionPlan, now_us: int) -> ReachedVenue:
    """Return a venue over our own FIX session.

    The orders of a session that is over go to a simulated venue alone, on a simulated clock. Another venue is reached
    to end what was planned in time: the engine sends nothing more there.
    """
    if settings.port is None:
        raise ExecutionError(
            "No FIX venue is named.",
            field=f"{EXECUTION_FILE}: fix.port",
            allowed="fix: {host: 127.0.0.1, port: 9876, sender: DESK, target: VENUE}",
            hint="alphaloom serve venue --port 9876 is one to try it on.",
            code="no_fix_venue",
        )
    over, is_new = now_us >= plan.closes_us, kept[1].read().plan is None
    if over and not settings.rehearsal and is_new:
        raise ExecutionError(
            "The session is over, and an order that is late is another decision.",
            field="--venue",
            got=f"{settings.host}:{settings.port}, session {plan.close.session}",
            allowed="a session that is not over, or a simulated venue (fix: rehearsal: true)",
            hint=f"Nothing was sent. Step the book: alphaloom book step {plan.close.book.removeprefix('book-')}",
            code="session_over",
            exit_code=1,
        )
    rehearsed = over and settings.rehearsal
    clock: Timeline = SimulatedTime(plan.opens_us) if rehearsed else PresentTime(read_clock_us, time.sleep)
    with ExitStack() as opened:
        link = _connect(settings, kept[0], settings.sender, "fix")
        opened.callback(link.close)
        venue = FixVenue(FIX_VENUE, link, clock.now_us, plan.close.renamed)
        if is_new:
            _refuse_known(venue, plan, settings.sender)
        if settings.drop_copy is None:
            reached: Venue = venue
        else:
            copy_link = _connect(settings, kept[0], settings.drop_copy, "fix.drop_copy")
            opened.callback(copy_link.close)
            copies = kept[0] / FIX_FOLDER / f"{settings.sender}-{settings.target}.copies"
            reached = _compare(venue, DropCopy(copy_link, copies, settings.sender, read_clock_us), kept, plan)
        opened.pop_all()
    return ReachedVenue(reached, clock)


def _refuse_known(venue: FixVenue, plan: SessionPlan, sender: str) -> None:
    """Refuse orders whose ids the session has sent: the venue would take them for those, and cancel those for them."""
    known = next((child.id for child in plan.children if venue.has_sent(child.id)), None)
    if known is not None:
        raise ExecutionError(
            "Another book that decided the same has sent these orders over this session.",
            field=f"{EXECUTION_FILE}: fix.sender",
            got=sender,
            allowed=f"a session that has not sent {known}",
            hint="Nothing was sent. Books that decide the same need a session each.",
            code="orders_known",
            exit_code=1,
        )


def _connect(settings: FixSettings, workspace: Path, sender: str, field: str) -> FixLink:
    """Return a connection that is logged on."""
    folder, name, port = workspace / FIX_FOLDER, f"{sender}-{settings.target}", settings.port or 0
    folder.mkdir(exist_ok=True)
    parties = SessionSettings(settings.version, sender, settings.target, True, settings.heartbeat_s, TRADING_RESENT)
    link: FixLink
    if settings.engine == "quickfix":
        link = QuickFixLink(settings.host, port, parties, folder / f"{name}.quickfix")
    else:
        link = FixConnection(settings.host, port, parties, folder / f"{name}.journal", read_clock_us)
    try:
        if link.wait_until_ready(LOGON_SECONDS):
            return link
    except BaseException:
        link.close()
        raise
    link.close()
    raise ExecutionError(
        "The FIX venue does not answer.",
        field=f"{EXECUTION_FILE}: {field}",
        got=f"{sender} at {settings.host}:{settings.port}",
        hint="Nothing was sent. Start the venue, or ask the broker; then give the same command again.",
        code="fix_unreachable",
        exit_code=3,
    )


def _compare(venue: FixVenue, copy: DropCopy, kept: tuple[Path, OrderRecord], plan: SessionPlan) -> CopiedVenue:
    """Return a venue whose drop copy is compared with the record; a difference halts trading and is recorded."""
    workspace, record = kept
    found = record.read()
    with HaltSwitch(workspace) as switch:
        released = not switch.is_set()  # only two people let go on what differs

    def halt(breaks: Sequence[DropCopyBreak]) -> None:
        with HaltSwitch(workspace) as switch:
            switch.set(Halt(breaks[0].reason, DROP_COPY, read_clock_us()))
        record.record_breaks(one.record() for one in breaks)

    return CopiedVenue(
        venue,
        copy,
        {parent.id for parent in plan.parents},
        [one for one in found.trail if isinstance(one, ExecutionReport)],
        [DropCopyBreak.restore(one) for one in found.breaks] if released else [],
        halt,
    )


def _open_nautilus(python: str | None, plan: SessionPlan, panel: Panel, row: int) -> NautilusVenue:
    close = plan.close
    venue = NautilusVenue(
        Path(python) if python else None,
        [parent.asset for parent in plan.parents],
        max(round(close.equity * PRICE_UNITS), 1),
        "backtest",
        cost_bp=close.settings.bps_per_side,
    )
    try:
        venue.admit(read_decision_inputs(close.inputs), close.decision.id, plan.parents)
        venue.open_session(_read_session(plan, panel, row))
    except ExecutionError:
        venue.close()
        raise
    return venue


def _read_session(plan: SessionPlan, panel: Panel, row: int) -> SessionPrices:
    """Return the prices of a session by the plan's symbols; a symbol that did not trade has none."""
    rows = {}
    column = {symbol: place for place, symbol in enumerate(panel.symbols)}
    for parent in plan.parents:
        place = column.get(plan.close.renamed.get(parent.asset, parent.asset))
        cells = [] if place is None else [float(panel.fields[name][row, place]) for name in (*PRICE_FIELDS, "volume")]
        if cells and all(math.isfinite(cell) and cell > 0 for cell in cells[:-1]):
            start, high, low, last = (round(cell * PRICE_UNITS) for cell in cells[:-1])
            shares = int(cells[-1]) if math.isfinite(cells[-1]) else 0
            rows[parent.asset] = (start, max(start, high, last), min(start, low, last), last, shares)
    return SessionPrices(plan.opens_us, plan.closes_us, rows)


def _open_session(plan: SessionPlan, panel: Panel, row: int) -> PaperSession:
    """Return the opening prices of a session and the room that its volumes leave, by the plan's symbols."""
    close = plan.close
    names = {parent.asset: close.renamed.get(parent.asset, parent.asset) for parent in plan.parents}
    prices = read_prices(panel, row, sorted({*names.values()}), {}, {})
    opens = {name: round(prices["opens"].get(there, 0.0) * PRICE_UNITS) for name, there in names.items()}
    share = close.settings.max_volume_share
    room = {name: int(share * prices["volumes"].get(there, 0.0)) for name, there in names.items()} if share else None
    opened = {name: price for name, price in opens.items() if price > 0}
    return PaperSession(opened, room, close.settings.bps_per_side, plan.opens_us)


def read_clock_us() -> int:
    """Return the present, microseconds since 1970: a FIX session lives on the clock of the wall."""
    return time.time_ns() // 1000
