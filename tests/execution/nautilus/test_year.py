"""The same targets through every venue, the same positions as in plain Python: `make nautilus` runs this."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from .desks import Book, Desk, NautilusDesk, PaperDesk, open_desk, open_nautilus, trade_at, trade_plainly
from .market import EVERY, Market

pytestmark = pytest.mark.slow
YEAR, NAMES, DECADE = 250, 100, 2_500
VENUES = ("paper", "nautilus backtest", "nautilus sandbox", "nautilus live", "fix", "fix quickfix")
COST_BP, ROOM = 7.0, 0.02
HALF_CENT_E4 = 50


@pytest.fixture(scope="module")
def market() -> Market:
    return Market.draw(YEAR, NAMES)


@pytest.fixture(scope="module")
def reference(market: Market) -> Book:
    book = trade_plainly(market)
    assert book.orders > 4_000
    assert min(book.moved[kind] for kind in ("split", "rename", "cash", "delisting")) > 2
    return book


def measure(name: str, desk: Desk, market: Market, folder: Path) -> Book:
    """Return the book that a desk made, and print what it took."""
    started, own = time.perf_counter(), time.process_time()
    book = trade_at(desk, market, folder)
    figures: dict[str, Any] = {
        "venue": name, "days": len(market.days), "names": len(market.assets), "orders": book.orders,
        "fills": book.fills, "events": book.moved, "wall_s": round(time.perf_counter() - started, 1),
        "own_cpu_s": round(time.process_time() - own, 1), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip  # a table
    if isinstance(desk, NautilusDesk):
        usage = desk.venue.measure_usage()
        figures |= {"engine_cpu_s": round(usage["cpu_s"], 1), "engine_mib": round(usage["peak_kib"] / 1024)}
    print(json.dumps(figures))
    return book


@pytest.mark.parametrize("name", VENUES)
def test_a_year_of_targets_gives_the_reference_to_the_share_after_each_session(
    name: str, market: Market, reference: Book, tmp_path: Path
) -> None:
    if name == "fix quickfix" and find_spec("quickfix") is None:
        pytest.skip("QuickFIX is not installed: make fix builds it")
    with open_desk(name, market, tmp_path) as desk:
        assert measure(name, desk, market, tmp_path) == reference


def test_costs_differ_by_the_cents_to_which_the_engine_rounds(market: Market, reference: Book, tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "nautilus").mkdir()
    paper = trade_at(PaperDesk(COST_BP), market, tmp_path / "paper")
    with closing(open_nautilus("nautilus backtest", market, COST_BP)) as venue:
        there = trade_at(NautilusDesk(venue), market, tmp_path / "nautilus")
    assert paper.positions == there.positions == reference.positions
    gaps = [abs(one - other) for one, other in zip(paper.cash_e4, there.cash_e4, strict=True)]
    print(json.dumps({"cost_bp": COST_BP, "cash_differs_by_e4": gaps[-1], "most_e4": max(gaps), "fills": paper.fills}))
    assert 0 < gaps[-1] <= HALF_CENT_E4 * paper.fills


def test_a_share_of_the_volume_leaves_what_the_paper_venue_reports(
    market: Market, reference: Book, tmp_path: Path
) -> None:
    """After a rebalance each difference is the rest that expired: the next one orders it again."""
    capped = trade_at(PaperDesk(room=ROOM), market, tmp_path)
    cut = {row: rests for row, rests in capped.unfilled.items() if row % EVERY == 0}
    for row, rests in cut.items():
        own, there = capped.positions[row - 1], reference.positions[row - 1]
        traded = [asset for place, asset in enumerate(market.assets) if market.prices[0][row, place]]
        gaps = {name: there.get(name, 0) - own.get(name, 0) for name in traded}
        assert {name: gap for name, gap in gaps.items() if gap} == {
            name: rest for name, rest in rests.items() if name in traded
        }
    shares = sum(abs(rest) for rests in cut.values() for rest in rests.values())
    print(json.dumps({"room": ROOM, "orders": capped.orders, "cut": sum(map(len, cut.values())), "shares": shares}))
    assert shares


@pytest.mark.parametrize("name", ["paper", "nautilus backtest"])
def test_ten_years_without_fix(name: str, tmp_path: Path) -> None:
    market = Market.draw(DECADE, NAMES)
    with open_desk(name, market, tmp_path) as desk:
        assert measure(name, desk, market, tmp_path) == trade_plainly(market)
