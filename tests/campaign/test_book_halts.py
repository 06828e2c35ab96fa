"""Trading of a paper book is stopped, held to reductions, and resumed by two people."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from alphaloom.campaign import BookData, BookSettings, BookStep, open_book, order_mode, replay_book, step_book
from alphaloom.ledger import Ledger
from alphaloom.market import Panel
from alphaloom.risk import POLICY_FILE, Mode, RiskError

pytestmark = pytest.mark.integration
LATER = datetime(2199, 7, 9, tzinfo=UTC)
NAME = "stopped"


def evening(panel: Panel, left: int) -> datetime:
    """Return the evening of the day that has so many behind it."""
    day = panel.dates[-1 - left].astype(object)
    return datetime(day.year, day.month, day.day, 21, tzinfo=UTC)


def step_to(ledger: Ledger, panel: Panel, left: int) -> list[BookStep]:
    """Take the book up to the day that has so many behind it."""
    data = BookData(panel.rows(0, panel.days - left), "small", since=panel.dates[-12].astype(object))
    return step_book(ledger, NAME, data, lambda: LATER)


def test_people_stop_and_resume(ledger: Ledger, panel: Panel) -> None:
    open_book(ledger, NAME, BookSettings(max_volume_share=0.0), LATER)
    assert step_to(ledger, panel, 9)[-1].fills
    order_mode(ledger, NAME, "halted", ("odd prices", "Ada", ""), evening(panel, 9))
    halted = step_to(ledger, panel, 7)
    assert not any(step.fills for step in halted)
    assert {rule for step in halted for row in step.decision["rulings"] for rule in row["refusals"]} >= {
        "trading_state"
    }
    order_mode(ledger, NAME, "reducing", ("checked", "Ada", "Bob"), evening(panel, 7))
    before = halted[-1].account.holdings
    (first, second) = step_to(ledger, panel, 5)
    assert not first.fills, "a halted gate approved nothing"
    for fill in second.fills:
        assert abs(before[fill.symbol].shares + fill.shares) <= abs(before[fill.symbol].shares)
    order_mode(ledger, NAME, "active", ("prices were right", "Ada", "Bob"), evening(panel, 5))
    last = step_to(ledger, panel, 0)
    assert [step.mode for step in last] == ["active"] * 5
    assert any(fill.symbol not in before for step in last for fill in step.fills)
    assert not any(parts for _, parts in replay_book(ledger, NAME))


def test_a_book_that_falls_too_far_halts_itself(ledger: Ledger, panel: Panel, workspace: Path) -> None:
    (workspace / POLICY_FILE).write_text("max_drawdown_cap_bp: 0\n")
    open_book(ledger, NAME, BookSettings(), LATER)
    steps = step_to(ledger, panel, 0)
    fallen = next(place for place, step in enumerate(steps) if step.account.equity < step.account.high_water)
    assert [step.mode for step in steps] == ["active"] * fallen + ["halted"] * (len(steps) - fallen)
    assert not any(step.fills for step in steps[fallen + 1 :])
    assert not any(parts for _, parts in replay_book(ledger, NAME))


def test_two_people_resume_a_book_that_its_drawdown_holds_to_reductions(
    ledger: Ledger, panel: Panel, workspace: Path
) -> None:
    (workspace / POLICY_FILE).write_text("trailing_drawdown_cap_bp: 0\n")
    open_book(ledger, NAME, BookSettings(), LATER)
    left = next(left for left in range(9, 0, -1) if falls_on_the_last_day(ledger, panel, left))
    order_mode(ledger, NAME, "active", ("we know why", "Ada", "Bob"), evening(panel, left))
    (step,) = step_to(ledger, panel, left - 1)
    account = step.account
    assert account.high_water - account.equity == pytest.approx(max(-account.pnl, 0.0), abs=1e-3)


def falls_on_the_last_day(ledger: Ledger, panel: Panel, left: int) -> bool:
    """Take the book up to a day, and return whether the drawdown refused something there."""
    steps = step_to(ledger, panel, left)
    return any("trailing_drawdown" in row["refusals"] for row in steps[-1].decision["rulings"])


@pytest.mark.parametrize(
    ("mode", "signed", "field"),
    [
        ("halted", ("", "Ada", ""), "--reason"),
        ("halted", ("why", " ", ""), "--by"),
        ("active", ("why", "Ada", ""), "--second"),
        ("active", ("why", "Ada", "ada "), "--second"),
    ],
)
def test_an_order_is_signed(ledger: Ledger, mode: Mode, signed: tuple[str, str, str], field: str) -> None:
    open_book(ledger, NAME, BookSettings(), LATER)
    with pytest.raises(RiskError, check=lambda error: error.code == "book_order" and error.field == field):
        order_mode(ledger, NAME, mode, signed, LATER)
