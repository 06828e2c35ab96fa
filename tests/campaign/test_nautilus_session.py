"""A session of a book at NautilusTrader fills as at the paper venue: `make nautilus` runs this."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.campaign import BookData, BookSettings, PlanRequest, execute_session, open_book, step_book
from alphaloom.execution import ExecutionError
from alphaloom.ledger import Ledger
from alphaloom.market import Panel

LATER = datetime(2199, 7, 9, tzinfo=UTC)


@pytest.fixture
def ledger(later_ledger: Ledger) -> Ledger:
    return later_ledger


def execute(ledger: Ledger, panel: Panel, venue: str) -> dict[str, tuple[int, int, int]]:
    """Return shares, price and cost of each fill of a book's first session, by symbol."""
    open_book(ledger, venue, BookSettings(max_volume_share=0.0, bps_per_side=7.0), LATER)
    data = BookData(panel.rows(0, panel.days - 1), "small", since=panel.dates[-2].item())
    step_book(ledger, venue, data, lambda: LATER)
    run = execute_session(ledger, venue, BookData(panel, "small"), PlanRequest(venue), LATER)
    assert run.orders.done is not None
    return {
        state.order.asset: (report.shares, report.price_e4, report.cost_e4)
        for state in run.orders.orders.values()
        for report in state.reports
        if report.kind == "filled"
    }


@pytest.mark.slow
def test_a_session_fills_as_at_the_paper_venue(ledger: Ledger, panel: Panel) -> None:
    python = Path(os.environ.get("NAUTILUS") or Path(sys.prefix) / "nautilus") / "bin" / "python"
    if not python.exists():
        pytest.skip("no NautilusTrader: `make nautilus` installs it, with Python 3.12 and an index")
    (ledger.workspace / "execution.yaml").write_text(f"nautilus: {{python: {python}}}\n")
    paper, there = (execute(ledger, panel, venue) for venue in ("paper", "nautilus"))
    assert len(paper) > 10
    assert {name: row[:2] for name, row in there.items()} == {name: row[:2] for name, row in paper.items()}
    assert all(abs(there[name][2] - cost_e4) <= 50 for name, (_, _, cost_e4) in paper.items())  # cents


@pytest.mark.integration
def test_without_its_python_the_venue_says_what_it_needs_and_nothing_is_planned(ledger: Ledger, panel: Panel) -> None:
    with pytest.raises(ExecutionError, match=r"needs Python 3\.12 or later") as raised:
        execute(ledger, panel, "nautilus")
    assert raised.value.field == "execution.nautilus.python"
    data = BookData(panel, "small")
    assert execute_session(ledger, "nautilus", data, PlanRequest("paper"), LATER).plan.request.venue == "paper"
