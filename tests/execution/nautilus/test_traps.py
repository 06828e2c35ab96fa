"""What surprises in NautilusTrader 2.0, each as a test: `make nautilus` runs this."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from alphaloom.execution import PRICE_UNITS, ExecutionError, ExecutionReport
from alphaloom.execution.nautilus import NautilusMode, NautilusVenue, SessionPrices, venue as venue_file
from alphaloom.execution.nautilus.venue import WORKER

from .engine import (
    CASH_E4,
    OPEN_US,
    ROW,
    make_child,
    make_inputs,
    make_parents,
    make_session,
    name_assets,
    write_worker,
)
from .market import find_nautilus

pytestmark = pytest.mark.slow
NODES: Sequence[NautilusMode] = ("backtest", "sandbox", "live")
MANY = 400


@pytest.fixture
def python() -> Path:
    return find_nautilus()


def trade_many(python: Path, mode: NautilusMode, count: int = MANY) -> Sequence[ExecutionReport]:
    """Return the reports on one order in each of many symbols, all due at one instant."""
    assets = name_assets(count)
    inputs = make_inputs(assets)
    decision, parents = make_parents(inputs)
    with closing(NautilusVenue(python, assets, CASH_E4, mode)) as venue:
        venue.admit(inputs, decision, parents)
        venue.send([make_child(parent) for parent in parents])
        venue.run_session(make_session(assets))
        return venue.read_reports()


@pytest.mark.parametrize("mode", NODES)
def test_orders_of_one_simulated_instant_all_fill(python: Path, mode: NautilusMode) -> None:
    assert Counter(report.kind for report in trade_many(python, mode)) == {"accepted": MANY, "filled": MANY}


@pytest.mark.parametrize("mode", NODES)
def test_what_the_engine_denies_is_a_reject_with_its_reason(
    python: Path, mode: NautilusMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's default of 100 orders a second counts simulated time in a backtest, and denies the others."""
    monkeypatch.setattr(venue_file, "WORKER", write_worker(tmp_path, 'worker.ORDER_RATE = "100/00:00:01"'))
    reports = trade_many(python, mode)
    kinds = Counter(report.kind for report in reports)
    assert (kinds["filled"], kinds["rejected"]) == (100, MANY - 100)
    assert {report.reason[:21] for report in reports if report.kind == "rejected"} == {"denied by the engine:"}


def test_a_venue_without_a_fee_model_is_an_error(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change = "worker.MakerTakerFeeModel = lambda *rates: None"
    monkeypatch.setattr(venue_file, "WORKER", write_worker(tmp_path, change))
    with pytest.raises(ExecutionError, match=r"(?i)fee.?model") as raised:
        trade_many(python, "backtest", 1)
    assert raised.value.code == "engine"


def test_a_strategy_takes_at_most_one_argument(python: Path) -> None:
    """So `TargetStrategy` gets its symbols as attributes, before the node starts."""
    code = """
from nautilus_trader.trading import Strategy
class Two(Strategy):
    def __init__(self, one, two):
        super().__init__()
try:
    Two(1, 2)
except TypeError as error:
    print(error)
"""
    ran = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "argument" in ran.stdout


@pytest.mark.parametrize("mode", NODES)
def test_the_worker_prints_answers_alone(python: Path, mode: NautilusMode) -> None:
    """`bypass_logging` bypasses nothing; a level of OFF does."""
    orders = [
        {"id": f"p-{place}", "asset": "N000", "side": "buy", "shares": 5, "kind": "market", "at_us": OPEN_US}
        for place in range(50)
    ]
    requests: list[dict[str, object]] = [
        {"type": "start", "assets": ["N000"], "cash_e4": CASH_E4, "mode": mode, "cost": "0", "depth": False},
        {"type": "send", "orders": orders},
        {"type": "session", **make_session(["N000"]).record()},
    ]
    with subprocess.Popen(
        [python, "-I", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdin
        assert worker.stdout
        assert worker.stderr
        answers = [json.loads(worker.stdout.readline())]
        for request in requests:
            worker.stdin.write(json.dumps(request) + "\n")
            worker.stdin.flush()
            answers.append(json.loads(worker.stdout.readline()))
        worker.stdin.close()
        assert (worker.stdout.read(), worker.stderr.read(), worker.wait()) == ("", "", 0)
    assert [answer["type"] for answer in answers] == ["hello", "done", "done", "done"]
    assert len(answers[3]["reports"]) == 100


PANIC = """
def panic(strategy, bar):
    worker.BookOrder(worker.OrderSide.NO_ORDER_SIDE, worker.make_price(1), worker.Quantity.from_int(1), 0).signed_size()
worker.TargetStrategy.on_bar = panic
"""


@pytest.mark.parametrize("mode", NODES)
def test_a_panic_of_the_engine_ends_the_worker_alone(
    python: Path, mode: NautilusMode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(venue_file, "WORKER", write_worker(tmp_path, PANIC))
    with pytest.raises(ExecutionError, match="NautilusTrader ended by SIGABRT") as raised:
        trade_many(python, mode, 1)
    assert raised.value.code == "process_ended"
    assert "Integrity error" in str(raised.value.got)
    monkeypatch.undo()
    assert len(trade_many(python, mode, 1)) == 2


@pytest.mark.parametrize("mode", NODES)
def test_orders_of_a_session_end_with_it(python: Path, mode: NautilusMode) -> None:
    """A limit within the day's range fills, one beyond it expires, and so does an order without an opening price."""
    assets = name_assets(3)
    inputs = make_inputs(assets)
    decision, parents = make_parents(inputs)
    limits = (ROW[2] + 500, ROW[2] - 500, None)
    with closing(NautilusVenue(python, assets, CASH_E4, mode)) as venue:
        venue.admit(inputs, decision, parents)
        venue.send([make_child(one, limit_e4=limit) for one, limit in zip(parents, limits, strict=True)])
        venue.run_session(make_session(assets[:2]))
        last = {report.order[:-2]: (report.kind, report.price_e4) for report in venue.read_reports()}
    assert [last[one.id] for one in parents] == [("filled", ROW[2] + 500), ("expired", 0), ("expired", 0)]


@pytest.mark.parametrize("mode", NODES)
def test_an_order_walks_through_the_depth_of_a_book(python: Path, mode: NautilusMode) -> None:
    assets = name_assets(2)
    inputs = make_inputs(assets)
    decision, parents = make_parents(inputs, 1_500)
    book = (((99_900, 700),), ((100_000, 1_000), (100_300, 400)))
    with closing(NautilusVenue(python, assets, CASH_E4, mode, depth=True)) as venue:
        venue.admit(inputs, decision, parents)
        venue.send([make_child(one) for one in parents])
        venue.run_session(SessionPrices(OPEN_US, OPEN_US + 10**9, dict.fromkeys(assets, ROW), {assets[0]: book}))
        reports = venue.read_reports()
        assert venue.positions[assets[0]] == 1_400
    walked = [(report.shares, report.price_e4) for report in reports if report.kind == "filled"]
    assert walked == [(1_000, 100_000), (400, 100_300)]
    last = {report.order[:-2]: (report.kind, report.reason) for report in reports}
    assert last[parents[0].id][0] in ("cancelled", "expired")
    assert last[parents[1].id] == ("rejected", f"No market for {assets[1]}.ALPHALOOM")


@pytest.mark.parametrize("mode", NODES)
def test_costs_are_a_share_of_the_value(python: Path, mode: NautilusMode) -> None:
    """A session that was opened runs when reports are waited for, as the order engine does."""
    inputs = make_inputs(["N000"])
    decision, (parent,) = make_parents(inputs, 12_345)
    with closing(NautilusVenue(python, ["N000"], CASH_E4, mode, cost_bp=7.5)) as venue:
        venue.admit(inputs, decision, [parent])
        venue.open_session(make_session(["N000"]))
        venue.send([make_child(parent)])
        assert venue.read_reports(0.0) == []
        accepted, filled = venue.read_reports(0.2)
        value_e4 = 12_345 * ROW[0]
        assert (accepted.kind, filled.kind, filled.shares, filled.price_e4) == ("accepted", "filled", 12_345, ROW[0])
        assert abs(filled.cost_e4 - value_e4 * 75 // 100_000) <= PRICE_UNITS // 100
        assert venue.cash_e4 == CASH_E4 - value_e4 - filled.cost_e4
