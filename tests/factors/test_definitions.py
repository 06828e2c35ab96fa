"""Operators that are defined in the language itself, against pandas and the formulas of the books."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from alphaloom.factors import OPERATORS, Node, parse, render, walk
from alphaloom.factors.engine.engine import Engine
from alphaloom.factors.language.definitions import expand_operator, expand_tree
from alphaloom.factors.language.node import call_node, field_node
from alphaloom.factors.operators import fill_parameters

from . import panels

Frames = dict[str, pd.DataFrame]
DEFINED = [name for name, operator in OPERATORS.items() if operator.definition]


def true_range(d: Frames) -> pd.DataFrame:
    before = d["close"].shift(1)
    spans = (d["high"] - d["low"], (d["high"] - before).abs(), (d["low"] - before).abs())
    return pd.DataFrame(np.maximum(np.maximum(spans[0], spans[1]), spans[2]))


def strength(x: pd.DataFrame, window: int) -> pd.DataFrame:
    """Relative strength index from mean gain over mean loss."""
    gain = x.diff().clip(lower=0).rolling(window).mean()
    loss = (-x.diff().clip(upper=0)).rolling(window).mean()
    return 100 - 100 / (1 + gain / loss)


def typical(d: Frames) -> pd.DataFrame:
    return (d["high"] + d["low"] + d["close"]) / 3


def money_flow(d: Frames) -> pd.DataFrame:
    flow, move = typical(d) * d["volume"], typical(d).diff()
    known = move.notna() & (flow.notna() | (move == 0))
    up, down = (flow.where(side, 0.0).where(known).rolling(6).sum() for side in (move > 0, move < 0))
    return 100 - 100 / (1 + up / down)


def index_of_channel(d: Frames) -> pd.DataFrame:
    x = typical(d).rolling(6)
    return (typical(d) - x.mean()) / (0.015 * x.apply(lambda w: np.abs(w - w.mean()).mean(), raw=True))


def since(x: pd.DataFrame, best: Callable[..., int]) -> pd.DataFrame:
    return x.rolling(7).apply(lambda w: 6 - best(w), raw=True)


def bands(x: pd.DataFrame, k: float, ddof: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    middle, reach = x.rolling(6).mean(), k * x.rolling(6).std(ddof=ddof)
    return middle - reach, middle, middle + reach


def percent_b(x: pd.DataFrame, k: float, ddof: int = 0) -> pd.DataFrame:
    low, _, high = bands(x, k, ddof)
    return (x - low) / (high - low)


def width(x: pd.DataFrame, k: float) -> pd.DataFrame:
    low, middle, high = bands(x, k, 0)
    return (high - low) / middle


def fading(x: pd.DataFrame, span: int) -> pd.DataFrame:
    return x.ewm(span=span, min_periods=span).mean()


def on_rises(d: Frames) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the volume on days when the close is above the open, 0 on others, and those days; NaN where not known."""
    held = d["close"] > d["open"]
    known = d["close"].notna() & d["open"].notna() & (d["volume"].notna() | ~held)
    return d["volume"].where(held, 0.0).where(known), held.astype(float).where(known)


def weighted_mean(x: pd.DataFrame, window: int) -> pd.DataFrame:
    weights = np.arange(1, window + 1)
    return x.rolling(window).apply(lambda w: (w * weights).sum() / weights.sum(), raw=True)


def spread(d: Frames) -> tuple[pd.DataFrame, pd.DataFrame]:
    return d["low"].rolling(6).min(), d["high"].rolling(6).max()


def grouped(d: Frames, x: pd.DataFrame) -> pd.DataFrame:
    """Divide by the gross sum of the group; names whose group is unknown are NaN."""
    codes = d["sector"].iloc[0]
    gross = x.abs().T.groupby(codes.to_numpy()).transform("sum").T
    return (x / gross).where(d["sector"] >= 0)


MEANINGS: dict[str, Callable[[Frames], pd.DataFrame]] = {
    "aroon(6)": lambda d: 100 * (since(d["low"], np.argmin) - since(d["high"], np.argmax)) / 6,
    "atr(6)": lambda d: true_range(d).rolling(6).mean(),
    "between(close, open, high)": lambda d: (
        ((d["close"] >= d["open"]) & (d["close"] <= d["high"]))
        .astype(float)
        .where(d["close"].notna() & d["open"].notna() & d["high"].notna())
    ),
    "bollinger(close, 6)": lambda d: percent_b(d["close"], 2),
    "bollinger(close, 6, 3, ddof=1)": lambda d: percent_b(d["close"], 3, 1),
    "bollinger_width(close, 6, 1.5)": lambda d: width(d["close"], 1.5),
    "cci(6)": index_of_channel,
    "coalesce(vwap, close)": lambda d: d["vwap"].fillna(d["close"]),
    "fill(returns, 0.5)": lambda d: d["returns"].fillna(0.5),
    "group_scale(returns, sector, to=2)": lambda d: 2 * grouped(d, d["returns"]),
    "inverse(close)": lambda d: 1 / d["close"],
    "macd(close, 2, 4)": lambda d: fading(d["close"], 2) - fading(d["close"], 4),
    "macd_signal(close, 2, 4, 3)": lambda d: fading(fading(d["close"], 2) - fading(d["close"], 4), 3),
    "mfi(6)": money_flow,
    "rsi(close, 6)": lambda d: strength(d["close"], 6),
    "sma(close, 6)": lambda d: d["close"].rolling(6).mean(),
    "square(returns)": lambda d: d["returns"] ** 2,
    "stochastic(6)": lambda d: 100 * (d["close"] - spread(d)[0]) / (spread(d)[1] - spread(d)[0]),
    "true_range()": true_range,
    "truncate(close - vwap, 0.1)": lambda d: (x := d["close"] - d["vwap"]).clip(
        -(most := 0.1 * x.abs().sum(axis=1)), most, axis=0
    ),
    "ts_autocorr(close, 6, 2)": lambda d: d["close"].rolling(6).corr(d["close"].shift(2)),
    "ts_demean(close, 6)": lambda d: d["close"] - d["close"].rolling(6).mean(),
    "ts_downside_std(close - vwap, 6)": lambda d: (
        ((d["close"] - d["vwap"]).clip(upper=0) ** 2).rolling(6).mean() ** 0.5
    ),
    "ts_ir(close, 6, ddof=0)": lambda d: d["close"].rolling(6).mean() / d["close"].rolling(6).std(ddof=0),
    "ts_mean_if(volume, close > open, 6, min_periods=2)": lambda d: (
        on_rises(d)[0].rolling(6, min_periods=2).sum() / on_rises(d)[1].rolling(6, min_periods=2).sum()
    ).replace(np.inf, np.nan),
    "ts_range(close, 6)": lambda d: d["close"].rolling(6).max() - d["close"].rolling(6).min(),
    "ts_scale(close, 6)": lambda d: (
        (d["close"] - d["close"].rolling(6).min()) / (d["close"].rolling(6).max() - d["close"].rolling(6).min())
    ),
    "ts_sum_if(volume, close > open, 6, min_periods=2)": lambda d: on_rises(d)[0].rolling(6, min_periods=2).sum(),
    "wilder(close, 3)": lambda d: d["close"].ewm(alpha=1 / 3, min_periods=3).mean(),
    "williams_r(6)": lambda d: -100 * (spread(d)[1] - d["close"]) / (spread(d)[1] - spread(d)[0]),
    "wma(close, 6)": lambda d: weighted_mean(d["close"], 6),
}
"""What each operator computes, said anew."""


@pytest.mark.parametrize("text", MEANINGS)
def test_a_definition_means_what_the_books_say(text: str) -> None:
    panel = panels.draw(5, 40, 12, "prices", all_members=True)
    frames = {name: pd.DataFrame(x) for name, x in panel.fields.items()}
    frames["sector"] = pd.DataFrame(np.tile(panel.groups["sector"], (40, 1)))
    expected = MEANINGS[text](frames).to_numpy()
    values = Engine(panel).evaluate([text])[0]
    np.testing.assert_array_equal(np.isnan(values), np.isnan(expected))
    np.testing.assert_allclose(values, expected, rtol=2e-4, atol=2e-5 * np.nanmax(np.abs(expected)))


def test_every_definition_is_told_what_it_means() -> None:
    told = {node.op for text in MEANINGS for _, node in walk(parse(text).root)}
    assert set(DEFINED) <= told


@pytest.mark.parametrize("name", DEFINED)
def test_a_definition_is_the_same_factor_as_its_formula_written_out(name: str) -> None:
    short = parse(OPERATORS[name].example)
    long = parse(render(expand_tree(short.root)))
    assert long.root != short.root
    assert (long.id, long.unit, long.lookback) == (short.id, short.unit, short.lookback)


def test_arithmetic_on_the_numbers_of_a_definition_is_worked_out() -> None:
    node = call_node("wilder", field_node("close"), window=10)
    assert render(expand_operator(node)) == "ema(close, 152, min_periods=10, span=19)"
    assert fill_parameters(expand_operator(node)) == {"window": 152, "min_periods": 10, "span": 19}


@pytest.mark.parametrize("name", DEFINED)
def test_every_window_that_a_definition_allows_can_be_written_out(name: str) -> None:
    operator = OPERATORS[name]
    for at in ("low", "high"):
        numbers = {number.name: float(getattr(number, at)) for number in operator.numbers if number.kind == "window"}
        given = {"k": 2.0, "share": 0.5, "value": 1.0}
        known = {number.name: given[number.name] for number in operator.numbers if number.name in given}
        args = [Node("field", name=node.name) for node in operator.nodes]
        assert expand_tree(call_node(name, *args, params=numbers | known)).op != name
