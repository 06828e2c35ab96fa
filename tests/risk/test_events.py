"""A book that lives through fills, prices, dividends, flows, rejects, halts and days, beside one in exact money."""

from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from alphaloom.risk import (
    UNITS_PER_BP,
    UNITS_PER_EQUITY,
    BookEvent,
    BookState,
    DayRolled,
    Decision,
    Delisted,
    Filled,
    Flowed,
    Mode,
    ModeSet,
    Paid,
    Policy,
    Priced,
    Rejected,
    Signal,
    apply,
    decide,
)
from alphaloom.risk.signal import RiskError

from .conftest import KNOWN, NOW, facts, state, to_e8

NAMES = ("AAA", "BBB", "CCC")
START = 1_000_000_00
ROUNDING = Fraction(1, UNITS_PER_EQUITY)
POLICY = Policy(gross_cap_bp=9_000, net_cap_bp=4_000, single_name_cap_bp=3_000, interval_width_cap_bp=0)


class Book(RuleBasedStateMachine):
    """The state of the gate, and the same book in exact money: cash, and the value of each holding."""

    def __init__(self) -> None:
        """Begin with cash."""
        super().__init__()
        self.now = NOW
        self.state = BookState({}, {name: facts() for name in NAMES}, START, START)
        self.cash, self.values = Fraction(START), dict.fromkeys(NAMES, Fraction(0))
        self.events = 1

    def happen(self, event: BookEvent) -> None:
        """Apply an event; each may round every exposure once."""
        self.state = apply(self.state, event)
        self.events += 1

    @property
    def equity(self) -> Fraction:
        """Return the money of the exact book."""
        return self.cash + sum(self.values.values())

    @rule(name=st.sampled_from(NAMES), wanted=st.integers(-3_500, 3_500))
    def ask(self, name: str, wanted: int) -> None:
        """Ask the gate for a target, and fill what it approves."""
        goal = to_e8(wanted)
        asked = Signal(name, goal, goal, goal, 5, "test", "f0", self.now)
        decision = decide([asked], self.state, POLICY, self.now, KNOWN)
        held = self.state.positions.get(name, 0)
        rises = not min(held, 0) <= goal <= max(held, 0)
        if not decision.approved:
            return
        assert self.state.mode != "halted"
        assert self.state.mode == "active" or not rises
        traded = Fraction(goal - held, UNITS_PER_EQUITY) * self.equity
        self.happen(Filled(name, goal - held))
        self.values[name], self.cash = self.values[name] + traded, self.cash - traded
        assert self.state.positions.get(name, 0) == goal
        after = list(self.state.positions.values())
        if rises:
            assert sum(map(abs, after)) <= POLICY.gross_cap_bp * UNITS_PER_BP
            assert abs(sum(after)) <= POLICY.net_cap_bp * UNITS_PER_BP

    @rule(name=st.sampled_from(NAMES), move=st.integers(-20_000_000, 20_000_000))
    def price(self, name: str, move: int) -> None:
        """Move a price by up to a fifth."""
        self.happen(Priced(name, self.now, move))
        self.values[name] *= 1 + Fraction(move, UNITS_PER_EQUITY)

    @rule(name=st.sampled_from(NAMES), share=st.integers(0, 10_000_000))
    def pay(self, name: str, share: int) -> None:
        """Pay a dividend of up to a tenth."""
        self.happen(Paid(name, share))
        paid = self.values[name] * Fraction(share, UNITS_PER_EQUITY)
        self.values[name], self.cash = self.values[name] - paid, self.cash + paid

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from([0, 50_000_000, UNITS_PER_EQUITY]))
    def delist(self, name: str, value: int) -> None:
        """Take a name from the exchange; afterwards it has no price and cannot be bought."""
        self.happen(Delisted(name, value))
        self.cash, self.values[name] = self.cash + self.values[name] * Fraction(value, UNITS_PER_EQUITY), Fraction(0)
        assert name not in {item.signal.asset for item in self.decide_small(name).approved}

    def decide_small(self, name: str) -> Decision:
        """Decide on a small purchase."""
        return decide([Signal(name, 9, 9, 9, 5, "test", "f0", self.now)], self.state, POLICY, self.now, KNOWN)

    @rule(cents=st.integers(-START // 10, START // 10), cost=st.integers(0, START // 1_000))
    def pay_and_flow(self, cents: int, cost: int) -> None:
        """Put money in or take it out; pay a cost."""
        falls = Fraction(self.state.high_water - self.state.equity, self.state.high_water)
        if self.state.equity + cents <= START // 10:
            return
        day = self.state.pnl_today
        self.happen(Flowed(cents))
        assert self.state.pnl_today == day, "money that is put in is no gain"
        assert abs(Fraction(self.state.high_water - self.state.equity, self.state.high_water) - falls) < 1e-6
        self.happen(Filled("AAA", 0, cost))
        self.cash += cents - cost

    @rule()
    def roll(self) -> None:
        """Begin the next session."""
        traded, recent = self.state.traded_e8, self.state.recent_e8
        self.now += timedelta(days=1)
        self.happen(DayRolled(self.now))
        assert (self.state.traded_e8, self.state.pnl_today, self.state.rejects) == (0, 0, 0)
        assert self.state.recent_e8 == (*recent, traded)[-19:]

    @rule(mode=st.sampled_from(["active", "active", "reducing", "halted"]))
    def stop(self, mode: Mode) -> None:
        """Halt, hold to reductions, or resume."""
        self.happen(ModeSet(mode))
        assert self.state.mode == mode
        assert mode != "active" or self.state.high_water == max(self.state.equity, 1)

    @precondition(lambda self: self.state.rejects < 3)
    @rule()
    def reject(self) -> None:
        """Reject an order; nothing else changes."""
        before = self.state
        self.happen(Rejected("AAA"))
        assert self.state.rejects == before.rejects + 1
        assert (self.state.positions, self.state.equity) == (before.positions, before.equity)

    @invariant()
    def money_adds_up(self) -> None:
        """Equity and exposures are those of the exact book, up to the rounding of each event."""
        assert abs(self.state.equity - self.equity) <= 4 * self.events
        assert self.state.high_water >= self.state.equity
        for name, value in self.values.items():
            found = Fraction(self.state.positions.get(name, 0), UNITS_PER_EQUITY)
            assert abs(found - value / self.equity) <= 8 * self.events * ROUNDING

    @invariant()
    def the_same_events_give_the_same_state(self) -> None:
        """A state is whole numbers in sorted order."""
        assert list(self.state.positions) == sorted(self.state.positions)
        assert all(type(value) is int and value for value in self.state.positions.values())


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize(("held", "moves", "fall"), [(100, [10, -20], 2_000), (-100, [-10, 20], 2_000), (100, [5], 0)])
def test_a_position_falls_from_its_best_price(held: float, moves: list[int], fall: int) -> None:
    book = state(positions={"AAA": held})
    for move in moves:
        book = apply(book, Priced("AAA", NOW, move * 1_000_000))
    assert book.assets["AAA"].fall_bp == fall
    assert apply(book, Filled("AAA", -book.positions["AAA"])).assets["AAA"].fall_bp == 0, "the next one begins anew"


@pytest.mark.parametrize("event", [Priced("AAA", NOW, -UNITS_PER_EQUITY - 1), Paid("AAA", -1), Flowed(-10_001)])
def test_events_that_cannot_be_are_refused(event: BookEvent) -> None:
    with pytest.raises(RiskError, check=lambda error: error.code == "book_event", match="malformed"):
        apply(state(), event)


def test_a_price_is_fresh_on_its_day_and_jumps_by_its_move() -> None:
    book = apply(state(), Priced("AAA", date(2020, 3, 3), -1_500_001))
    assert (book.assets["AAA"].last_price, book.assets["AAA"].jump_bp) == (date(2020, 3, 3), 151)
