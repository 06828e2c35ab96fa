"""Scenarios and the losses of a book in them: laws, on a small market without a campaign."""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.campaign.what_if import (
    BookScenario,
    HeldBook,
    make_crash,
    make_field_move,
    make_given,
    stress_book,
)
from alphaloom.campaign.what_if.stress import find_sold_day
from alphaloom.market import Panel
from alphaloom.portfolio import PaperAccount
from alphaloom.portfolio.paper_book import Holding
from alphaloom.risk import Policy, RiskError

DAYS, NAMES = 400, 6
SYMBOLS = tuple("ABCDEF")
SECTORS = ("banks", "banks", "banks", "tech", "tech", "")
SLOPES = np.array([-0.05, -0.02, 0.0, 0.01, 0.03, 0.0])


def make_panel(noise: float = 1e-4) -> Panel:
    """Return a market whose names move by known sensitivities to a yield, and little else."""
    rng = np.random.default_rng(5)
    moved = rng.normal(0, 0.05, DAYS)
    market = rng.normal(0, 0.01, DAYS)
    returns = np.outer(moved, SLOPES) + np.outer(market, np.linspace(0.5, 1.5, NAMES))
    returns += rng.normal(0, noise, returns.shape)
    close = 50.0 * np.cumprod(1.0 + returns, axis=0)
    fields = {name: close for name in ("open", "high", "low", "close")}
    fields |= {"volume": np.full(close.shape, 1e4), "yield": np.outer(3.0 + np.cumsum(moved), np.ones(NAMES))}
    dates = np.busday_offset("2015-01-01", np.arange(DAYS), roll="forward")
    return Panel.build(dates, SYMBOLS, fields, groups={"sector": SECTORS})


PANEL = make_panel()
LAST = str(PANEL.dates[-1])


def hold(shares: dict[str, int]) -> HeldBook:
    """Return a book that holds shares at the last closes, and has as much cash."""
    closes = dict(zip(PANEL.symbols, PANEL.fields["close"][-1], strict=True))
    holdings = {name: Holding(size, float(closes[name]), LAST) for name, size in sorted(shares.items()) if size}
    account = PaperAccount(LAST, 1e6, MappingProxyType(holdings), 0.0)
    account = PaperAccount(LAST, 1e6, account.holdings, account.equity)
    parts = {"run": dict.fromkeys(list(shares)[:3], 0.01), "fx": dict.fromkeys(list(shares)[2:], -0.02)}
    return HeldBook("b", LAST, account, ("active",), (), parts, "f0")


BOOKS = st.dictionaries(st.sampled_from(SYMBOLS), st.integers(-2_000, 2_000), min_size=1).map(hold)
MOVES = st.fixed_dictionaries({name: st.floats(-1.0, 2.0) for name in SYMBOLS})


@settings(max_examples=40)
@given(BOOKS, MOVES)
def test_losses_add_up_and_the_state_of_the_gate_loses_the_same(held: HeldBook, moves: dict[str, float]) -> None:
    found = stress_book(held, PANEL, Policy(sector_cap_bp=2_000), BookScenario("any", moves, ()))
    for parts in ([one.loss for one in found.names], found.by_sector.values(), found.by_part.values()):
        assert math.fsum(parts) == pytest.approx(found.loss, abs=1e-6)
    left = held.account.equity - found.loss
    assert left > 0
    fall = max(held.account.equity - left, 0.0) / held.account.equity * 1e4
    (check,) = [one for one in found.after if one.rule == "max_drawdown"]
    assert check.actual == pytest.approx(fall, abs=1.5)


@given(BOOKS)
def test_a_scenario_of_nothing_changes_nothing(held: HeldBook) -> None:
    for scenario in (BookScenario("none", dict.fromkeys(SYMBOLS, 0.0), ()), make_given(PANEL, {}, SYMBOLS, "f")):
        found = stress_book(held, PANEL, Policy(), scenario)
        assert found.loss == 0.0
        assert found.before == found.after
        assert {one.loss for one in found.names} <= {0.0}


@given(st.dictionaries(st.sampled_from(SYMBOLS), st.floats(0.1, 1e6)), st.floats(0.01, 50.0))
def test_nine_tenths_are_sold_on_the_first_day_that_is_said(sizes: dict[str, float], each: float) -> None:
    days = {name: each * (place + 1) for place, name in enumerate(sizes)}
    day = find_sold_day(sizes, dict(days))
    assert day is not None

    def sold(when: int) -> float:
        return math.fsum(size * min(when / days[name], 1.0) for name, size in sizes.items())

    whole = 0.9 * math.fsum(sizes.values())
    assert sold(day) >= whole
    assert day == 0 or sold(day - 1) < whole


def test_without_a_volume_nobody_says_when_a_book_is_sold() -> None:
    assert find_sold_day({"A": 1.0, "B": 100.0}, {"A": None, "B": 3.0}) == 3
    assert find_sold_day({"A": 100.0, "B": 1.0}, {"A": None, "B": 3.0}) is None


def test_a_crash_is_beta_times_a_fifth() -> None:
    scenario = make_crash(PANEL, SYMBOLS)
    assert list(scenario.moves.values()) == sorted(scenario.moves.values(), reverse=True)
    assert np.mean(list(scenario.moves.values())) == pytest.approx(-0.2, abs=1e-3)


def test_a_column_of_one_value_a_day_moves_each_name_by_its_sensitivity() -> None:
    scenario = make_field_move(PANEL, "yield", 2.0, SYMBOLS)
    flat = {name: 2.0 * slope for name, slope in zip(SYMBOLS, SLOPES, strict=True)}
    assert scenario.moves == pytest.approx(flat, abs=0.05)
    opposite = make_field_move(PANEL, "yield", -2.0, SYMBOLS)
    assert {name: -move for name, move in opposite.moves.items()} == pytest.approx(dict(scenario.moves))
    for field, words in (("close", "differs by symbol"), ("volume", "does not change"), ("rates", "no column rates")):
        with pytest.raises(RiskError, match=words) as refused:
            make_field_move(PANEL, field, 1.0, SYMBOLS)
        assert refused.value.exit_code == 2
        assert refused.value.hint or field == "volume"


def test_moves_of_a_file_go_by_symbol_then_sector_then_all_others() -> None:
    given_moves = {("symbol", "A"): -0.5, ("sector", "banks"): -0.1, ("symbol", "*"): 0.02}
    moves = make_given(PANEL, given_moves, SYMBOLS, "f").moves
    assert list(moves.values()) == [-0.5, -0.1, -0.1, 0.02, 0.02, 0.02]
    scenario = make_given(PANEL, {("sector", "tech"): 0.1}, SYMBOLS, "f")
    assert any("4 of 6" in note for note in scenario.notes)
