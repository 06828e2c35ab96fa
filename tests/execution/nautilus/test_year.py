"""One strategy, three nodes, the same positions as a reference in plain Python: `make nautilus` runs this."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from alphaloom.execution.nautilus import NautilusMode, NautilusVenue

from .market import CASH_E4, Book, Market, find_nautilus, trade_at, trade_plainly

pytestmark = pytest.mark.slow
YEAR, NAMES, DECADE = 250, 100, 2_500


@pytest.fixture(scope="module")
def python() -> Path:
    return find_nautilus()


@pytest.fixture(scope="module")
def market() -> Market:
    return Market.draw(YEAR, NAMES)


@pytest.fixture(scope="module")
def reference(market: Market) -> Book:
    book = trade_plainly(market)
    assert book.orders > 4_000
    assert book.moved > 5
    return book


def measure(market: Market, mode: NautilusMode, python: Path) -> Book:
    """Return the book that a node made, and print what it took."""
    with closing(NautilusVenue(python, market.assets, CASH_E4, mode)) as venue:
        started, own = time.perf_counter(), time.process_time()
        book = trade_at(venue, market)
        usage = venue.measure_usage()
        figures = {
            "mode": mode, "days": len(market.days), "names": len(market.assets), "orders": book.orders,
            "fills": book.fills, "events": book.moved, "wall_s": round(time.perf_counter() - started, 1),
            "own_cpu_s": round(time.process_time() - own, 1), "engine_cpu_s": round(usage["cpu_s"], 1),
            "engine_mib": round(usage["peak_kib"] / 1024), "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip  # a table
        print(json.dumps(figures))
    return book


@pytest.mark.parametrize("mode", ["backtest", "sandbox", "live"])
def test_a_year_of_targets_gives_the_reference_to_the_share(
    mode: NautilusMode, market: Market, reference: Book, python: Path
) -> None:
    assert measure(market, mode, python) == reference


def test_ten_years_in_a_backtest(python: Path) -> None:
    market = Market.draw(DECADE, NAMES)
    assert measure(market, "backtest", python) == trade_plainly(market)
