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
from alphaloom.portfolio import SILENT_DAYS, DayPrices, PaperAccount, TradingTerms, target_weights, trade_day
from alphaloom.portfolio.backtest import _account_plainly, _build_orders
from alphaloom.portfolio.paper_book import Holding

FREE = TradingTerms(Costs(0.0, 0.0))
COSTLY = TradingTerms(Costs(10.0, 0.0))


def quotes(
    day: str, opens: dict[str, float], closes: dict[str, float] | None = None, **more: dict[str, float]
) -> DayPrices:
    """Return the prices of a day on which every symbol trades a thousand shares."""
    return DayPrices(
        day, opens, closes or opens, more.get("volumes", dict.fromkeys(opens, 1e3)), more.get("earlier", {})
    )


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
    book = PaperAccount("0", 0.0, {"A": Holding(10.0, 100.0, "0")}, 1_000.0)
    after, fills = trade_day(book, {}, quotes("1", {"A": 51.0}, {"A": 52.0}, earlier={"A": 50.0}), FREE)
    assert fills == ()
    assert after.holdings["A"] == Holding(20.0, 52.0, "1")
    assert after.pnl == pytest.approx(40.0)


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


@given(
    st.lists(
        st.tuples(st.dictionaries(SYMBOLS, PRICE), st.dictionaries(SYMBOLS, st.floats(-1, 1))),
        min_size=1, max_size=6,
    ),
    st.floats(0, 50),
)  # fmt: skip  # a table
def test_money_is_moved_and_never_made(days: list[tuple[dict[str, float], dict[str, float]]], bps: float) -> None:
    trading = TradingTerms(Costs(bps, 0.0), 0.5)
    book = PaperAccount.of_cash(1e4)
    for number, (opens, targets) in enumerate(days):
        prices = quotes(str(number), opens)
        before, (book, fills) = book, trade_day(book, targets, prices, trading)
        moved = math.fsum(
            one.shares * (opens.get(name, one.price) - one.price) for name, one in before.holdings.items()
        )
        paid = math.fsum(fill.cost for fill in fills)
        assert book.equity == pytest.approx(before.equity + moved - paid, abs=1e-6)
        assert book.high_water >= book.equity
        assert PaperAccount.restore(json.loads(json.dumps(book.record()))) == replace(
            book, holdings=dict(book.holdings)
        )
