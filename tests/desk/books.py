"""A paper book of a few steps on a small synthetic market, which trades one formula that was put in by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from alphaloom.campaign import (
    BookData,
    BookSettings,
    PlanRequest,
    Settings,
    open_book,
    order_mode,
    pay_book,
    preview_session,
    step_book,
)
from alphaloom.evaluation import add_by_hand
from alphaloom.execution import EXECUTION_FILE, OrderRecord
from alphaloom.factors import parse
from alphaloom.ledger import Ledger, Run
from alphaloom.market import Panel

from .workspace import NOON, SCRIPT

LATER = datetime(2199, 7, 9, tzinfo=UTC)
BOOK, PLANTED, EMPTY, ORDERED = "paper", "planted", "empty", "ordered"
HELD = "rank(-ts_mean(returns, 5))"
MARKET = {"synthetic": {"days": 320, "names": 30}}
STEPS = 4
UNLENT = "H.PJF"
"""A symbol of which no short may grow."""


def lay_books(workspace: Path) -> None:
    """Make a book of a few steps with an order and a flow that wait, one whose symbols are script, one without steps.

    Another one, whose symbols are script too, has planned orders of which nothing was sent.
    """
    settings = Settings.model_validate({"market": MARKET})
    panel, dataset = settings.market.open(settings.seed)
    factor = parse(HELD)
    rules = ("proven", "original")
    lines = [
        f"  - {{evidence: {factor.id}, rule: {rule}, reason: a test, owner: ann, until: 2200-01-01}}" for rule in rules
    ]
    (workspace / "policy.yaml").write_text("\n".join(["exceptions:", *lines, f"not_shortable: [{UNLENT}]", ""]))
    with Ledger.open(workspace, clock=lambda: NOON) as ledger:
        ledger.runs.start(Run("data", {"settings": settings.model_dump(mode="json")}, 1, "d", NOON.isoformat()))
        ledger.runs.finish("data", "done")
        add_by_hand(ledger, factor, "2026-06-01")
        for name, rows in ((BOOK, panel), (PLANTED, plant(panel))):
            open_book(ledger, name, BookSettings(max_volume_share=0.0), NOON)
            for left in range(STEPS - 1 if name == BOOK else 1, -1, -1):
                step_book(ledger, name, BookData(rows.rows(0, rows.days - left), dataset), lambda: LATER)
        order_mode(ledger, BOOK, "reducing", (SCRIPT, SCRIPT, ""), LATER)
        pay_book(ledger, BOOK, 5_000.0, SCRIPT, LATER)
        open_book(ledger, EMPTY, BookSettings(), NOON)
        planted = plant(panel)
        open_book(ledger, ORDERED, BookSettings(), NOON)
        step_book(ledger, ORDERED, BookData(planted.rows(0, planted.days - 1), dataset), lambda: LATER)
        request, terms = PlanRequest("paper", schedule="vwap"), workspace / EXECUTION_FILE
        terms.write_text("schedule: {slices: 3}\n")  # the plan keeps it
        plan = preview_session(ledger, ORDERED, BookData(planted, dataset), request, LATER).plan
        terms.unlink()
        OrderRecord(ledger, plan.close.book, plan.close.session).record_plan(plan.record())


def plant(panel: Panel) -> Panel:
    """Return a panel with script in every symbol and every sector."""
    labels = {"sector": tuple(f"{SCRIPT}{word}" for word in panel.group_labels["sector"])}
    return replace(panel, symbols=tuple(f"{SCRIPT}{name}" for name in panel.symbols), group_labels=labels)
