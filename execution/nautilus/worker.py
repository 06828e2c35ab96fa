"""NautilusTrader behind a pipe: run by a Python 3.12 or later that has it, never imported by Alphaloom, which it lacks.

`python worker.py` reads requests from its standard input and answers each one, a JSON object a line. `TargetStrategy`
turns approved orders into orders of the venue. The same class runs in a backtest, in a sandbox node and in a live node.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import platform
import resource
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from importlib import metadata
from typing import Any, BinaryIO, Final, Protocol

from nautilus_trader.adapters.sandbox import SandboxExecutionClientConfig, SandboxExecutionClientFactory
from nautilus_trader.backtest import BacktestEngine, BacktestEngineConfig
from nautilus_trader.common import Environment, LoggerConfig, LogLevel
from nautilus_trader.config import DataClientConfig
from nautilus_trader.execution import MakerTakerFeeModel
from nautilus_trader.live import LiveNode, LiveRiskEngineConfig
from nautilus_trader.live.clients import DataClientFactory, MarketDataClient
from nautilus_trader.model import (
    AccountType,
    AggregationSource,
    Bar,
    BarAggregation,
    BarSpecification,
    BarType,
    BookAction,
    BookOrder,
    BookType,
    ClientOrderId,
    Currency,
    Equity,
    InstrumentId,
    Money,
    OmsType,
    OrderBookDelta,
    OrderBookDeltas,
    OrderSide,
    Price,
    PriceType,
    Quantity,
    QuoteTick,
    StrategyId,
    Symbol,
    TraderId,
    Venue,
)
from nautilus_trader.risk import RiskEngineConfig
from nautilus_trader.trading import Strategy, StrategyConfig

Row = dict[str, Any]

PROTOCOL: Final = 1
MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
ORDER_RATE: Final = "1000000000/00:00:01"
"""Orders in a second that the engine's own risk check lets pass: practically all. Its default of 100 counts simulated
time, in which a rebalance is one instant, and would deny the rest. The order gate counts orders before they come here.
"""
VENUE_ID: Final = Venue("ALPHALOOM")
TRADER: Final = TraderId("ALPHALOOM-001")
NOMINAL: Final = Currency.from_str("USD")
"""The engine wants a currency. Prices here are in whatever currency the panel has."""
RAW_PER_E4: Final = 10**12
"""Units of the engine's whole-number prices (1e-16) in 1e-4."""
PRICE_DIGITS: Final = 4
UNLIMITED_SHARES: Final = 10**9
"""Size of an opening quote where no depth of the book is given: every order fills wholly at that price."""
NS_PER_US: Final = 1_000
SETTLE_S: Final = 30.0
"""Seconds in which a node must have dealt with what it was given."""
NODE_POLL_S: Final = 0.001
DEATH_SIGNAL: Final = 1
"""Argument of prctl(2): the signal that a process gets when its parent ends."""


def make_price(price_e4: int) -> Price:
    """Return a price of the engine, exactly."""
    return Price.from_raw(price_e4 * RAW_PER_E4, PRICE_DIGITS)


class TargetStrategy(Strategy):  # type: ignore[misc]  # the engine is not installed where types are checked
    """Send approved orders when the market in which they are due opens; take back what is open when it closes.

    It chooses nothing: every order comes from Alphaloom with its id, side, shares and limit. Its clock is the time of
    the last quote, in microseconds, so that it need not know whether that time is simulated.

    Attributes
    ----------
    instruments
        Instrument of each symbol; set before the node starts, since the engine's strategies take no arguments.
    closes_us
        End of the session: at the first quote from then on, open orders are taken back.
    reports
        What happened to orders, the oldest first; whoever reads them empties the list.
    seen
        Quotes and bars that came.
    """

    def __init__(self, config: StrategyConfig | None = None) -> None:
        quiet = StrategyConfig(strategy_id=StrategyId("ALPHALOOM-001"), log_events=False, log_commands=False)
        super().__init__(config or quiet)
        self.instruments: dict[str, InstrumentId] = {}
        self.bars: tuple[BarType, ...] = ()
        self.closes_us = 0
        self.now_us = 0
        self.seen = 0
        self.reports: list[Row] = []
        self.waiting: dict[str, list[Row]] = {}
        self.open: dict[str, Row] = {}
        self.ending: set[str] = set()

    def take(self, orders: Iterable[Row]) -> None:
        """Accept orders; each is sent at the first quote of its symbol from its time on, before the session ends."""
        for order in orders:
            self.waiting.setdefault(order["asset"], []).append({**order, "left": order["shares"], "said": 0})

    def drop(self, ids: Sequence[str]) -> None:
        """Take orders back: those that were not sent at once, those at the venue when it says so."""
        for asset, orders in self.waiting.items():
            for order in [one for one in orders if one["id"] in ids]:
                self._report(order, "cancelled")
            self.waiting[asset] = [one for one in orders if one["id"] not in ids]
        for name in ids:
            if name in self.open:
                self.cancel_order(ClientOrderId(name))

    def end_session(self) -> None:
        """Let orders expire that were due and found no quote of their symbol."""
        for asset, orders in self.waiting.items():
            for order in [one for one in orders if one["at_us"] < self.closes_us]:
                self._report(order, "expired", reason="no price of the symbol in this session")
            self.waiting[asset] = [one for one in orders if one["at_us"] >= self.closes_us]

    def list_unsettled(self) -> list[str]:
        """Return the ids of orders of which the venue has said nothing yet, or after the session not how they ended."""
        ended = self.now_us >= self.closes_us
        return [name for name, one in self.open.items() if ended or not one["said"]]

    def on_start(self) -> None:
        """Ask for the quotes and bars of all symbols."""
        for instrument in self.instruments.values():
            self.subscribe_quotes(instrument)
        for kind in self.bars:
            self.subscribe_bars(kind)

    def on_bar(self, bar: Bar) -> None:
        """Count a bar."""
        self.seen += 1

    def on_quote(self, quote: QuoteTick) -> None:
        """Send what is due, or at the end of the session take back what is open."""
        self.seen += 1
        self.now_us = quote.ts_event // NS_PER_US
        asset = quote.instrument_id.symbol.value
        if self.now_us < self.closes_us:
            orders = self.waiting.get(asset, [])
            self.waiting[asset] = [one for one in orders if one["at_us"] > self.now_us]
            for order in [one for one in orders if one["at_us"] <= self.now_us]:
                self.open[order["id"]] = order
                self.submit_order(self._make_order(quote.instrument_id, order))
        else:
            for name in [name for name, one in self.open.items() if one["asset"] == asset]:
                self.ending.add(name)
                self.cancel_order(ClientOrderId(name))

    def _make_order(self, instrument: InstrumentId, order: Row) -> Any:
        side = OrderSide.BUY if order["side"] == "buy" else OrderSide.SELL
        shares, name = Quantity.from_int(order["shares"]), ClientOrderId(order["id"])
        if order["kind"] == "market":
            return self.order_factory.market(instrument, side, shares, client_order_id=name)
        return self.order_factory.limit(instrument, side, shares, make_price(order["limit_e4"]), client_order_id=name)

    def on_order_event(self, event: Any) -> None:
        """Report what happened to an order. A denial of the engine's own checks is a reject, and never silent."""
        order = self.open.get(event.client_order_id.value)
        if order is None:
            return
        match type(event).__name__:
            case "OrderAccepted":
                self._report(order, "accepted")
            case "OrderFilled":
                self._fill(order, event)
            case "OrderDenied":
                self._finish(order, "rejected", f"denied by the engine: {event.reason}")
            case "OrderRejected":
                self._finish(order, "rejected", str(event.reason))
            case "OrderCanceled" if order["id"] not in self.ending:
                self._finish(order, "cancelled")
            case "OrderCanceled" | "OrderExpired":
                self._finish(order, "expired", "the session ended")

    def _fill(self, order: Row, event: Any) -> None:
        shares = int(event.last_qty.as_decimal())
        cost = event.commission.as_decimal() if event.commission else Decimal(0)
        price_e4, cost_e4 = event.last_px.raw // RAW_PER_E4, int(cost * 10**PRICE_DIGITS)
        order["left"] -= shares
        self._report(order, "filled", shares=shares, price_e4=price_e4, cost_e4=cost_e4)
        if order["left"] == 0:
            self._forget(order)

    def _finish(self, order: Row, kind: str, reason: str = "") -> None:
        self._report(order, kind, reason=reason)
        self._forget(order)

    def _forget(self, order: Row) -> None:
        self.open.pop(order["id"], None)
        self.ending.discard(order["id"])

    def _report(self, order: Row, kind: str, **values: Any) -> None:
        order["said"] += 1
        name = f"{order['id']}:{order['said']}"
        self.reports.append({"order": order["id"], "kind": kind, "exec_id": name, "at_us": self.now_us, **values})


class TradingNode(Protocol):
    """An engine that a strategy runs in."""

    async def start(self) -> None:
        """Start the engine and the strategy."""
        ...

    async def feed(self, data: Sequence[Any]) -> None:
        """Give the engine market data, and return when it and the strategy have dealt with all of it."""
        ...

    def read_positions(self) -> dict[str, int]:
        """Return the shares that the engine counts, by symbol, without zeros."""
        ...


def list_positions(cache: Any) -> dict[str, int]:
    """Return the open positions of an engine's cache, in shares by symbol; its `signed_qty` is a float, not whole."""
    return {
        one.instrument_id.symbol.value: int(one.quantity.as_decimal()) * (1 if one.is_long else -1)
        for one in cache.positions_open()
    }


class BacktestRunner:
    """The strategy on the engine's simulated clock."""

    def __init__(self, strategy: TargetStrategy, market: NodeMarket) -> None:
        self._engine = BacktestEngine(
            BacktestEngineConfig(
                trader_id=TRADER,
                run_analysis=False,
                logging=LoggerConfig(stdout_level=LogLevel.OFF),  # bypass_logging bypasses nothing
                risk_engine=RiskEngineConfig(max_order_submit_rate=ORDER_RATE),
            )
        )
        self._engine.add_venue(
            VENUE_ID,
            OmsType.NETTING,
            AccountType.MARGIN,
            [market.cash],
            base_currency=NOMINAL,
            default_leverage=Decimal(1),
            fee_model=market.fees,
            book_type=market.book,
            use_market_order_acks=True,
        )
        for instrument in market.instruments.values():
            self._engine.add_instrument(instrument)
        self._engine.add_strategy(strategy)

    async def start(self) -> None:
        """Do nothing: the strategy starts with the first data."""

    async def feed(self, data: Sequence[Any]) -> None:
        """Run the engine over data, which need not be in the order of their times."""
        self._engine.add_data(list(data))
        self._engine.run(streaming=True)
        self._engine.clear_data()

    def read_positions(self) -> dict[str, int]:
        """Return the shares that the engine counts, by symbol."""
        return list_positions(self._engine.cache)


class PanelConfig(DataClientConfig):  # type: ignore[misc]
    """Settings of `PanelClient`: none."""


class PanelClient(MarketDataClient):  # type: ignore[misc]
    """NodeMarket data of a node that come from the pipe."""

    market: NodeMarket

    async def _connect(self) -> None:
        for instrument in self.market.instruments.values():
            self._handle_instrument(instrument)

    async def _disconnect(self) -> None:
        pass

    async def _subscribe_quotes(self, command: Any) -> None:
        pass

    async def _subscribe_bars(self, command: Any) -> None:
        pass

    async def _unsubscribe_quotes(self, command: Any) -> None:
        pass

    async def _unsubscribe_bars(self, command: Any) -> None:
        pass

    def publish(self, data: Sequence[Any]) -> None:
        """Pass market data to the node."""
        for one in data:
            self._handle_data(one)


class NodeRunner:
    """The strategy in the engine's live node, on the real clock, with an execution client that simulates the venue."""

    def __init__(self, strategy: TargetStrategy, market: NodeMarket, environment: Environment) -> None:
        self._strategy = strategy
        made: list[PanelClient] = []

        class Factory(DataClientFactory):  # type: ignore[misc]
            @staticmethod
            def create(*, name: str, config: Any, cache: Any, clock: Any) -> PanelClient:
                client = PanelClient(name=name, config=config, cache=cache, clock=clock, venue=VENUE_ID)
                client.market = market
                made.append(client)
                return client

        venue = SandboxExecutionClientConfig(
            venue=VENUE_ID,
            starting_balances=[market.cash],
            base_currency=NOMINAL,
            oms_type=OmsType.NETTING,
            account_type=AccountType.MARGIN,
            default_leverage=Decimal(1),
            fee_model=market.fees,
            book_type=market.book,
            use_market_order_acks=True,
        )
        self._node = (
            LiveNode.builder("ALPHALOOM", TRADER, environment)
            .with_reconciliation(False)  # a venue that begins empty has nothing to reconcile
            .with_delay_post_stop_secs(0)
            .with_logging(LoggerConfig(stdout_level=LogLevel.OFF))
            .with_risk_engine_config(LiveRiskEngineConfig(max_order_submit_rate=ORDER_RATE))
            .add_data_client("ALPHALOOM", Factory, PanelConfig())
            .add_simulated_exec_client(None, SandboxExecutionClientFactory(), venue)
            .build()
        )
        self._node.add_strategy(strategy)
        self._client, self._cache = made[0], self._node.cache

    async def start(self) -> None:
        """Start the node, and wait until the strategy runs."""
        self._task = asyncio.create_task(self._node.run_async())
        await self._wait(self._strategy.is_running, "the node did not start")

    async def feed(self, data: Sequence[Any]) -> None:
        """Publish market data, and wait until the strategy has seen them and the venue has answered."""
        target = self._strategy.seen + sum(not isinstance(one, OrderBookDeltas) for one in data)
        self._client.publish(data)
        await self._wait(
            lambda: self._strategy.seen >= target and not self._strategy.list_unsettled(), "the node did not settle"
        )

    def read_positions(self) -> dict[str, int]:
        """Return the shares that the engine counts, by symbol."""
        return list_positions(self._cache)

    async def _wait(self, ready: Callable[[], bool], failed: str) -> None:
        until = asyncio.get_running_loop().time() + SETTLE_S
        while not ready():
            if self._task.done():
                raise RuntimeError(f"the node ended: {self._task.exception()}")
            if asyncio.get_running_loop().time() > until:
                raise TimeoutError(f"{failed} in {SETTLE_S:g} s")
            await asyncio.sleep(NODE_POLL_S)


class NodeMarket:
    """Symbols, money, costs and the kind of book with which a node starts; turns sessions into the engine's data.

    `cost` is the cost of trading as a decimal share of the value. The engine rounds it to cents on each fill.
    """

    def __init__(self, assets: Sequence[str], cash_e4: int, cost: str, depth: bool) -> None:
        self.cash = Money(cash_e4 / 10**PRICE_DIGITS, NOMINAL)
        self.fees = MakerTakerFeeModel(Decimal(cost), Decimal(cost))  # without a fee model a venue refuses to run
        self.book = BookType.L2_MBP if depth else BookType.L1_MBP
        tick, one = make_price(1), Quantity.from_int(1)
        self.ids = {asset: InstrumentId(Symbol(asset), VENUE_ID) for asset in assets}
        self.instruments = {
            asset: Equity(name, name.symbol, NOMINAL, PRICE_DIGITS, tick, 0, 0, lot_size=one)
            for asset, name in self.ids.items()
        }
        day = BarSpecification(1, BarAggregation.DAY, PriceType.LAST)
        self.bars = {asset: BarType(name, day, AggregationSource.EXTERNAL) for asset, name in self.ids.items()}

    def list_phases(self, session: Mapping[str, Any]) -> list[list[Any]]:
        """Return the data of a session in three phases: opening quotes, the day's bars, closing quotes.

        Each row is symbol, open, high, low and close in 1e-4, and shares traded. `books` has for some symbols the bids
        and offers at the open, the best first, each a price in 1e-4 and its shares.
        """
        opens, closes = session["open_us"] * NS_PER_US, session["close_us"] * NS_PER_US
        first: list[Any] = []
        if self.book is BookType.L2_MBP:  # a symbol without a stated book has an empty one: the engine wants some data
            first += [self._make_book(asset, session["books"].get(asset, ((), ())), opens) for asset in self.ids]
        first += [self._make_quote(asset, price_e4, opens) for asset, price_e4, *_ in session["rows"]]
        last = [self._make_quote(row[0], row[4], closes) for row in session["rows"]]
        return [first, [self._make_bar(row, closes - NS_PER_US) for row in session["rows"]], last]

    def _make_quote(self, asset: str, price_e4: int, at_ns: int) -> QuoteTick:
        price, shares = make_price(price_e4), Quantity.from_int(UNLIMITED_SHARES)
        return QuoteTick(self.ids[asset], price, price, shares, shares, at_ns, at_ns)

    def _make_bar(self, row: Sequence[Any], at_ns: int) -> Bar:
        asset, *prices, shares = row
        return Bar(self.bars[asset], *map(make_price, prices), Quantity.from_int(shares), at_ns, at_ns)

    def _make_book(self, asset: str, sides: Sequence[Sequence[Sequence[int]]], at_ns: int) -> OrderBookDeltas:
        name = self.ids[asset]
        deltas = [OrderBookDelta.clear(name, 0, at_ns, at_ns)]
        for side, levels in zip((OrderSide.BUY, OrderSide.SELL), sides, strict=True):
            for price_e4, shares in levels:
                level = BookOrder(side, make_price(price_e4), Quantity.from_int(shares), 0)
                deltas.append(OrderBookDelta(name, BookAction.ADD, level, 0, len(deltas), at_ns, at_ns))
        return OrderBookDeltas(name, deltas)


class NautilusWorker:
    """Answers requests, one after the other."""

    def __init__(self) -> None:
        self._strategy = TargetStrategy()
        self._market: NodeMarket
        self._node: TradingNode

    async def answer(self, request: Row) -> Row:
        """Return the answer to a request; whatever goes wrong is an answer, too."""
        handlers: dict[str, Callable[[Row], Awaitable[Row]]] = {
            "start": self._start,
            "send": self._send,
            "cancel": self._cancel,
            "session": self._run_session,
            "usage": self._measure_usage,
        }
        try:
            handler = handlers[request["type"]]
            answer = await handler(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side must hear of it
            message = f"NautilusTrader failed: {type(error).__name__}: {error}"
            return {"type": "error", "error": {"message": message, "code": "engine"}}
        reports, self._strategy.reports = self._strategy.reports, []
        return {"type": "done", "reports": reports, **answer}

    async def _start(self, request: Row) -> Row:
        self._market = NodeMarket(request["assets"], request["cash_e4"], request["cost"], request["depth"])
        self._strategy.instruments, self._strategy.bars = self._market.ids, tuple(self._market.bars.values())
        modes: dict[str, Callable[[], TradingNode]] = {
            "backtest": lambda: BacktestRunner(self._strategy, self._market),
            "sandbox": lambda: NodeRunner(self._strategy, self._market, Environment.SANDBOX),
            "live": lambda: NodeRunner(self._strategy, self._market, Environment.LIVE),
        }
        self._node = modes[request["mode"]]()
        await self._node.start()
        return {}

    async def _send(self, request: Row) -> Row:
        self._strategy.take(request["orders"])
        return {}

    async def _cancel(self, request: Row) -> Row:
        self._strategy.drop(request["ids"])
        return {}

    async def _run_session(self, request: Row) -> Row:
        self._strategy.closes_us = request["close_us"]
        for data in self._market.list_phases(request):
            if data:
                await self._node.feed(data)
        self._strategy.end_session()
        return {"positions": self._node.read_positions()}

    async def _measure_usage(self, _: Row) -> Row:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {"cpu_s": used.ru_utime + used.ru_stime, "peak_kib": used.ru_maxrss}


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends, also while the engine computes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)


def take_output() -> BinaryIO:
    """Return the pipe for answers; whatever else is printed, by the engine or a panic, goes to standard error."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return pipe


def read_requests(loop: asyncio.AbstractEventLoop, requests: asyncio.Queue[bytes]) -> None:
    """Read requests until the pipe is closed; then, or at a line that is too long, end the process."""
    while line := sys.stdin.buffer.readline(MAX_MESSAGE_BYTES + 1):
        if len(line) > MAX_MESSAGE_BYTES:
            break
        loop.call_soon_threadsafe(requests.put_nowait, line)
    os._exit(0)


async def serve(pipe: BinaryIO) -> None:
    """Say which versions answer, then answer requests until the pipe is closed."""
    requests: asyncio.Queue[bytes] = asyncio.Queue()
    threading.Thread(target=read_requests, args=(asyncio.get_running_loop(), requests), daemon=True).start()
    worker = NautilusWorker()
    versions = {"nautilus": metadata.version("nautilus_trader"), "python": platform.python_version()}
    answer: Row = {"type": "hello", "protocol": PROTOCOL, **versions}
    while True:
        pipe.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        pipe.flush()
        answer = await worker.answer(json.loads(await requests.get()))


if __name__ == "__main__":
    die_with_parent()
    asyncio.run(serve(take_output()))
