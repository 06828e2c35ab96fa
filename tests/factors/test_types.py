from __future__ import annotations

import pytest

from alphaloom.factors import ParseError, parse
from alphaloom.factors.language.interval import Interval, find_days_read
from alphaloom.factors.language.node import call_node, field_node

UNITS = {
    "close": "price",
    "close_raw + vwap": "price",
    "volume": "volume",
    "close * volume": "money",
    "amount / volume": "price",
    "cap / close": "volume",
    "close / open": "ratio",
    "returns": "return",
    "2 * returns": "return",
    "returns + rank(close)": "ratio",
    "rank(volume)": "rank",
    "zscore(close)": "ratio",
    "scale(close) + rank(volume)": "ratio",
    "ts_mean(close, 5)": "price",
    "ts_var(close, 5)": "price^2",
    "sqrt(ts_var(close, 5))": "price",
    "abs(returns) / amount": "money^-1",
    "ts_beta(close, volume, 5)": "price*volume^-1",
    "ts_cov(close, volume, 5)": "money",
    "ts_corr(close, volume, 5)": "ratio",
    "log(close) - log(volume)": "ratio",
    "close > open": "bool",
    "ts_count(close > open, 5)": "number",
    "(close > open) * returns": "return",
    "max(close - open, 0)": "price",
    "where(close > open, volume, 0)": "volume",
    "where(delay(close > open, 1), 1, -1)": "number",
    "delta(close, 1) > 0": "bool",
    "close ** 2": "price^2",
    "1 / volume": "volume^-1",
}


@pytest.mark.parametrize("text", UNITS)
def test_units(text: str) -> None:
    assert parse(text).unit == UNITS[text]


REFUSED = {
    "close + volume": "close is in units of price and volume is in units of volume: they cannot be added",
    "returns - amount": "returns is a return and amount is in units of money: they cannot be subtracted",
    "close > 5": "close is in units of price and 5 is a plain number: they cannot be compared",
    "max(close, volume)": "close is in units of price and volume is in units of volume: they cannot be compared",
    "where(close > open, close, volume)": (
        "close is in units of price and volume is in units of volume: they cannot be branches of one choice"
    ),
    "tanh(close)": "tanh needs a dimensionless argument; close is in units of price",
    "power(close, returns)": "close is in units of price: only a literal number can be its exponent",
    "returns ** close": "the exponent close is in units of price",
    "ts_count(close, 5)": "ts_count needs a condition that is true or false; close is in units of price",
    "~returns": "~ needs a condition that is true or false; returns is a return",
    "rank(1)": "rank needs something that changes; 1 is a constant",
    "close * (1 < 2)": "1 < 2 compares constants",
}


@pytest.mark.parametrize("text", REFUSED)
def test_units_that_do_not_agree_are_refused_in_words(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert (caught.value.stage, caught.value.message) == ("types", REFUSED[text])
    assert caught.value.hint


INTERVALS = {
    "close": (0, 0),
    "returns": (-1, 0),
    "delay(close, 5)": (-5, -5),
    "delta(close, 5)": (-5, 0),
    "ts_returns(close, 5)": (-5, 0),
    "ts_mean(close, 5)": (-4, 0),
    "ts_mean(returns, 5)": (-5, 0),
    "ts_mean(delay(close, 3), 5)": (-7, -3),
    "ts_corr(returns, delay(volume, 10), 20)": (-29, 0),
    "rank(ts_mean(close, 5)) + ts_std(returns, 9)": (-9, 0),
    "where(close > delay(close, 1), 1, -1)": (-1, 0),
    "group_rank(ema(close, 10), sector)": (-9, 0),
}


@pytest.mark.parametrize("text", INTERVALS)
def test_days_read(text: str) -> None:
    expression = parse(text)
    assert expression.lookback == Interval(*INTERVALS[text])
    assert expression.warmup == -INTERVALS[text][0]


def test_a_look_ahead_built_by_hand_shows_in_the_interval() -> None:
    assert find_days_read(call_node("delay", field_node("close"), window=-1)).hi == 1


def test_all_unit_mistakes_of_a_formula_come_at_once() -> None:
    with pytest.raises(ParseError) as caught:
        parse("rank(close + volume) * ts_mean(high + volume, 5) + (open < volume)")
    assert [error.at for error in caught.value.mistakes] == [13, 38, 59]


def test_a_guessed_unit_does_not_hide_what_disagrees_beside_it() -> None:
    with pytest.raises(ParseError) as caught:
        parse("close + volume + (high + volume)")
    assert [error.at for error in caught.value.mistakes] == [8, 25]
