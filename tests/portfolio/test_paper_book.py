"""A paper book holds what the backtest holds, keeps values when prices are adjusted anew, and invents no money."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.evidence.scoring import Costs
from alphaloom.market import SyntheticConfig, simulate
from alphaloom.portfolio import (
    CASH,
    SILENT_DAYS,
    DayPrices,
    PaperAccount,
    TradingTerms,
    chain_returns,
    compare_positions,
    divide_profit,
    find_corrections,
    measure_profit,
    target_weights,
    trade_day,
)
from alphaloom.portfolio.backtest import _account_plainly, _build_orders
from alphaloom.portfolio.paper_book import Holding

FREE = TradingTerms(Costs(0.0, 0.0))
COSTLY = TradingTerms(Costs(10.0, 0.0))


def quotes(
    day: str,
    opens: dict[str, float],
    closes: dict[str, float] | None = None,
    volumes: dict[str, float] | None = None,
    earlier: dict[str, dict[str, float]] | None = None,
    renamed: dict[str, str] | None = None,
) -> DayPrices:
    """Return the prices of a day on which every symbol trades a thousand shares, and the closes of days before."""
    earlier = earlier or {}
    previous = {symbol: (told[last], last) for symbol, told in earlier.items() if (last := max(told, default=""))}
    volumes = dict.fromkeys(opens, 1e3) if volumes is None else volumes
    return DayPrices(day, opens, closes or opens, volumes, earlier, previous, renamed or {})


def test_fed_the_weights_of_the_backtest_it_earns_the_same_to_twelve_digits() -> None:
    panel = simulate(SyntheticConfig(seed=5, days=120, names=30)).panel
    opens, closes = panel.fields["open"], panel.fields["close"]
    whole = np.isfinite(opens).all(axis=0) & np.isfinite(closes).all(axis=0)
    opens, closes = opens[:, whole], closes[:, whole]
    score = np.random.default_rng(1).normal(size=opens.shape).astype(np.float32)
    plain = _account_plainly(_build_orders(score, opens, closes, 5), COSTLY.costs).returns
    names = [f"N{place:02d}" for place in range(opens.shape[1])]
    weights = target_weights(score, 5)
    book, worth = PaperAccount.of_cash(1.0), [1.0]
    for day in range(1, len(opens)):
        prices = quotes(
            f"{day:04d}", dict(zip(names, opens[day], strict=True)), dict(zip(names, closes[day], strict=True))
        )
        book, _ = trade_day(book, dict(zip(names, weights[day - 1], strict=True)), prices, COSTLY)
        worth.append(book.cash + math.fsum(one.shares * prices.opens[name] for name, one in book.holdings.items()))
    earned = np.array(worth[1:]) / np.array(worth[:-1]) - 1.0
    np.testing.assert_allclose(earned, plain, rtol=0, atol=1e-12)


def test_a_split_a_dividend_and_another_vendor_s_scale_keep_the_value() -> None:
    book = PaperAccount("1", 0.0, {"A": Holding(10.0, 100.0, "1", 0, 90.0, 0.0, "0")}, 1_000.0)
    prices = quotes("2", {"A": 51.0}, {"A": 52.0}, earlier={"A": {"0": 45.0, "1": 50.0}})
    after, fills = trade_day(book, {}, prices, FREE)
    assert fills == ()
    assert after.holdings["A"] == Holding(20.0, 52.0, "2", 0, 50.0, 52.0, "1")
    assert after.pnl == pytest.approx(40.0)


def test_a_corrected_price_makes_no_shares() -> None:
    held = Holding(10.0, 1_000.0, "1", 0, 99.0, 0.0, "0")  # ten times too high
    book = PaperAccount("1", 0.0, {"A": held}, 10_000.0)
    prices = quotes("2", {"A": 100.0}, earlier={"A": {"0": 99.0, "1": 100.0}})
    after, _ = trade_day(book, {}, prices, FREE)
    assert (after.holdings["A"].shares, after.equity, after.pnl) == (10.0, 1_000.0, -9_000.0)
    assert find_corrections(book, prices) == [("A", 1_000.0, 100.0)]


@pytest.mark.parametrize("split", [2, 3, 4, 7, 10])
def test_a_split_of_a_cheap_name_in_cents_keeps_the_value(split: int) -> None:
    for cents in range(150, 700, 7):
        closes = (cents / 100, round(cents * 1.013) / 100)
        book = PaperAccount("1", 0.0, {"A": Holding(1_000.0, closes[1], "1", 0, closes[0], 0.0, "0")}, 1e4)
        told = {day: round(close / split, 2) for day, close in zip("01", closes, strict=True)}
        prices = quotes("2", {"A": told["1"]}, earlier={"A": told})
        assert trade_day(book, {}, prices, FREE)[0].pnl == pytest.approx(0.0, abs=1e-6)
        assert find_corrections(book, prices) == []


@given(
    st.tuples(st.integers(1, 300), st.integers(1, 300)),
    st.sampled_from([0.05, 0.1, 0.5, 1.5, 2.0, 3.0, 7.0, 20.0]),
    st.sampled_from([0.01, 0.0001]),
)
def test_a_split_of_a_name_of_a_few_cents_keeps_the_value(steps: tuple[int, int], split: float, step: float) -> None:
    """Whatever is left of its price: a cent, or a hundredth of one."""
    closes = [count * step for count in steps]
    told = {day: round(close / split / step) * step for day, close in zip("01", closes, strict=True)}
    if not all(told.values()):
        return  # no price is left, so the panel has none
    book = PaperAccount("1", 0.0, {"A": Holding(1_000.0, closes[1], "1", 0, closes[0], 0.0, "0")}, 1e4)
    prices = quotes("2", {"A": told["1"]}, earlier={"A": told})
    assert trade_day(book, {}, prices, FREE)[0].pnl == pytest.approx(0.0, abs=1e-9 * book.equity)
    assert find_corrections(book, prices) == []


@given(st.tuples(st.integers(1, 300), st.integers(1, 300)), st.sampled_from([0.01, 0.1, 10.0, 100.0]))
def test_a_price_of_a_few_cents_that_was_in_other_units_is_a_correction(steps: tuple[int, int], factor: float) -> None:
    before, price = (count * 0.01 for count in steps)
    told = round(price * factor, 2)
    if not told:
        return
    book = PaperAccount("1", 0.0, {"A": Holding(1_000.0, price, "1", 0, before, 0.0, "0")}, 1e4)
    prices = quotes("2", {"A": told}, earlier={"A": {"0": before, "1": told}})
    assert find_corrections(book, prices) == [("A", price, told)]
    assert trade_day(book, {}, prices, FREE)[0].holdings["A"].shares == 1_000.0


def test_a_split_after_a_day_without_a_price_keeps_the_value() -> None:
    book = PaperAccount("1", 0.0, {"A": Holding(10.0, 90.0, "1")}, 900.0)
    book, _ = trade_day(book, {}, quotes("2", {"B": 1.0}), FREE)
    book, _ = trade_day(book, {}, quotes("3", {"A": 100.0}, earlier={"A": {"1": 90.0}}), FREE)
    assert (book.holdings["A"].before, book.holdings["A"].before_day) == (90.0, "1")
    split = quotes("4", {"A": 10.0}, earlier={"A": {"1": 9.0, "3": 10.0}})
    assert trade_day(book, {}, split, FREE)[0].pnl == 0.0


def test_a_holding_goes_on_under_its_new_symbol_and_joins_what_it_has_there() -> None:
    held = {"OLD": Holding(10.0, 100.0, "1", 3, 90.0, 110.0, "0"), "NEW": Holding(1.0, 120.0, "2", 0, 100.0, 0.0, "1")}
    book = PaperAccount("2", 0.0, held, 1_120.0)
    earlier = {"OLD": {"0": 45.0, "1": 50.0}, "NEW": {"1": 50.0, "2": 60.0}}
    prices = quotes("3", {"NEW": 60.0}, earlier=earlier, renamed={"OLD": "NEW"})
    after, _ = trade_day(book, {}, prices, FREE)
    assert {name: one.shares for name, one in after.holdings.items()} == {"NEW": 22.0}
    assert after.pnl == pytest.approx(200.0), "the old holding stood at a price of before"


@pytest.mark.parametrize(("shares", "target"), [(10.0, 0.09), (10.0, 0.0), (-10.0, -0.09), (-10.0, 0.0)])
@pytest.mark.parametrize("price", [50.0, 100.0, 200.0])
def test_what_may_only_be_reduced_is_never_increased(shares: float, target: float, price: float) -> None:
    book = PaperAccount("0", 10_000.0 - shares * 100.0, {"A": Holding(shares, 100.0, "0")}, 10_000.0)
    after, _ = trade_day(book, {"A": target}, quotes("1", {"A": price}), FREE, reducing={"A"})
    left = after.holdings["A"].shares if "A" in after.holdings else 0.0
    assert abs(left) <= abs(shares)
    assert left * shares >= 0


def test_a_ruined_book_is_seen_whole() -> None:
    book = PaperAccount("0", -1_500.0, {"A": Holding(10.0, 100.0, "0")}, 10_000.0)
    assert book.equity == -500.0
    assert book.weights() == {"A": 1.0}


def test_what_has_no_open_waits_and_what_is_gone_is_sold_at_its_last_price() -> None:
    book = PaperAccount("0", 1_000.0, {"A": Holding(10.0, 100.0, "0")}, 2_000.0)
    for day in range(1, SILENT_DAYS):
        book, fills = trade_day(book, {"A": 0.0}, quotes(str(day), {"B": 1.0}), COSTLY)
        assert fills == ()
    book, (fill,) = trade_day(book, {"A": 0.0}, quotes("last", {"B": 1.0}), COSTLY)
    assert (fill.shares, fill.price, fill.cost) == (-10.0, 100.0, 1.0)
    assert (book.cash, dict(book.holdings)) == (1_999.0, {})


def test_no_more_than_a_share_of_the_volume_is_traded_and_the_rest_is_told() -> None:
    prices = quotes("1", {"A": 10.0}, volumes={"A": 50.0})
    book, (fill,) = trade_day(PaperAccount.of_cash(1_000.0), {"A": 0.5}, prices, TradingTerms(Costs(0.0, 0.0), 0.1))
    assert (fill.shares, fill.short_of, book.cash) == (5.0, 45.0, 950.0)


def test_what_is_short_over_night_pays_for_borrowing() -> None:
    costs = Costs(0.0, 252.0 * 100)
    book = PaperAccount("0", 2_000.0, {"A": Holding(-10.0, 100.0, "0")}, 1_000.0)
    after, _ = trade_day(book, {}, quotes("1", {"A": 100.0}), TradingTerms(costs))
    assert after.cash == pytest.approx(2_000.0 - 1_000.0 * costs.borrow)


PRICE = st.floats(1.0, 200.0)
SYMBOLS = st.sampled_from(("A", "B", "C"))
PRICES = st.dictionaries(SYMBOLS, PRICE)
DAY = st.tuples(PRICES, PRICES, PRICES, st.dictionaries(SYMBOLS, st.floats(-1, 1)))


@given(st.lists(DAY, min_size=1, max_size=6), st.floats(0, 50))
def test_money_is_moved_and_never_made(days: list[tuple[dict[str, float], ...]], bps: float) -> None:
    trading = TradingTerms(Costs(bps, 0.0), 0.5)
    book = PaperAccount.of_cash(1e4)
    for number, (opens, closes, told, targets) in enumerate(days):
        earlier = {name: {str(number - 1): close} for name, close in told.items()}
        prices = quotes(str(number), opens, closes or {"Z": 1.0}, earlier=earlier)
        before, (book, fills) = book, trade_day(book, targets, prices, trading)
        shares = {name: one.shares for name, one in before.holdings.items()}
        worth = before.cash
        for fill in fills:  # what is traded is paid for, at its price, and no more
            worth -= fill.shares * fill.price + fill.cost
            shares[fill.symbol] = shares.get(fill.symbol, 0.0) + fill.shares
        assert book.cash == pytest.approx(worth, abs=1e-6)
        held = {name: one.shares for name, one in book.holdings.items()}
        assert held == pytest.approx({name: value for name, value in shares.items() if value}, abs=1e-9)
        assert book.high_water >= book.equity
        again = PaperAccount.restore(json.loads(json.dumps(book.record())))
        assert again == replace(book, holdings=dict(book.holdings))


@given(st.floats(1.0, 1e6), st.floats(1.0, 3.0), st.floats(-0.99, 10.0))
def test_money_paid_in_changes_no_return_and_no_share_of_the_fall(cash: float, fall: float, share: float) -> None:
    book = replace(PaperAccount.of_cash(cash), high_water=cash * fall)
    after = book.with_flow(share * cash)
    assert after.equity == pytest.approx(cash * (1 + share))
    assert after.high_water / after.equity == pytest.approx(book.high_water / book.equity)
    closed, _ = trade_day(after, {}, quotes("1", {"A": 1.0}), FREE)
    assert closed.pnl == 0.0
    assert list(chain_returns([book.equity, closed.equity], [0.0, share * cash])) == pytest.approx([0.0], abs=1e-9)


WEIGHTS = st.dictionaries(st.sampled_from(("run 1", "run 2")), st.dictionaries(SYMBOLS, st.floats(-1, 1)))


@given(st.lists(DAY, min_size=1, max_size=4), st.floats(0, 50), WEIGHTS)
def test_parts_of_the_profit_add_up_to_it(
    days: list[tuple[dict[str, float], ...]], bps: float, weights: dict[str, dict[str, float]]
) -> None:
    trading, book = TradingTerms(Costs(bps, 100.0), 0.5), PaperAccount.of_cash(1e4)
    for number, (opens, closes, told, targets) in enumerate(days):
        paid = book.with_flow(100.0)
        earlier = {name: {str(number - 1): close} for name, close in told.items()}
        prices = quotes(str(number), opens, closes or {"Z": 1.0}, earlier=earlier)
        after, fills = trade_day(paid, targets, prices, trading)
        profit = measure_profit(paid, after, fills)
        costs = math.fsum(fill.cost for fill in fills) + after.borrow
        assert math.fsum(profit.values()) - costs == pytest.approx(after.pnl, abs=1e-5)
        divided = divide_profit(profit, weights)
        assert math.fsum(divided.values()) == pytest.approx(math.fsum(profit.values()), abs=1e-5)
        book = after


def test_a_book_that_was_short_of_what_is_held_loses_what_the_other_earns() -> None:
    divided = divide_profit({"A": 10.0, "B": 1.0, "C": 5.0}, {"x": {"A": 0.3, "B": 0.1}, "y": {"A": -0.1, "B": -0.099}})
    assert divided == pytest.approx({"x": 15.0, "y": -5.0, "other": 6.0})


def test_a_broker_that_differs_is_told_by_name() -> None:
    book = PaperAccount("1", 500.0, {"A": Holding(10.0, 100.0, "1"), "B": Holding(-5.0, 10.0, "1")}, 1_450.0)
    assert compare_positions(book, {"A": 10.0, "B": -5.0}, 500.0) == []
    a, c, cash = compare_positions(book, {"A": 9.0, "B": -5.0, "C": 1.0}, 500.145)
    assert (a.symbol, a.value) == ("A", -100.0)
    assert (c.symbol, c.value, c.exceeds(1e9)) == ("C", None, True)
    assert (cash.symbol, cash.exceeds(0.9), cash.exceeds(1.1)) == (CASH, True, False)
    (unknown,) = compare_positions(book, {"A": 10.0, "B": -5.0}, math.nan)
    assert unknown.exceeds(1e9)
