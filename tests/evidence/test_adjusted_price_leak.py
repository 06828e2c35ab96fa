"""A level of back-adjusted prices knows later splits and dividends: no factor that reads one is scored."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from alphaloom.evidence.gate.adjusted_price_leak import (
    READS_LEVEL_MESSAGE,
    READS_VOLUMES_MESSAGE,
    PriceLevelTest,
    order_correlation,
    rescale_prices,
)
from alphaloom.evidence.windows import Window
from alphaloom.factors import parse
from alphaloom.ledger import Ledger
from alphaloom.market import Panel
from alphaloom.market.adjusted import adjust_forwards, find_adjusted_fields

from .lab import KNOWN, SMALL, Lab, market

LEVELS = (
    "close", "close / close_raw", "close_raw / close", "rank(close)", "close * volume", "log(close)", "delta(close, 5)",
    "close - open", "rank(vwap) + rank(returns)", "rank(ts_mean(open, 5))", "sign(close / close_raw - 0.9)",
    "close / ts_mean(close_raw, 5)", "rank(high) + rank(close / open)",
)  # fmt: skip  # a table
SHARES = (
    "close / delay(close, 5)", "returns", "close_raw", "close_raw * volume", "amount / volume", "(high - low) / close",
    "ts_corr(close, volume, 20)", "delta(log(close), 5)", "ts_zscore(close, 30)", "ts_std(returns, 20)",
    "vwap / close", "ts_rank(close, 20)", "ts_argmax(high, 20)", KNOWN,
)  # fmt: skip  # a table

NOTES = ("vwap: typical", "bad ticks suspected: AAA and 16 more", "synthetic market, seed 3")


@cache
def adjusted() -> Panel:
    """Return a market as vendors give it: adjusted so that the last close is the quoted one."""
    panel = market(3)
    fields = dict(panel.fields)
    rng = np.random.default_rng(5)
    paid = np.cumsum(rng.random(panel.universe.shape) < 0.01, axis=0)
    known = 0.97 ** (paid[-1] - paid)
    fields |= {name: fields[name] * known for name in ("open", "high", "low", "close", "vwap")}
    fields |= {"close_raw": panel.fields["close"], "amount": panel.fields["close"] * fields["volume"]}
    return replace(panel, fields=fields, notes=NOTES, back_adjusted=True)


@cache
def levels(panel: Panel | None = None) -> PriceLevelTest:
    panel = panel or adjusted()
    return PriceLevelTest(panel, window(panel))


def window(panel: Panel, start: int = 20, stop: int = 220) -> Window:
    return Window("search", start, stop, str(panel.dates[start]), str(panel.dates[stop - 1]))


@pytest.mark.parametrize("text", LEVELS)
def test_a_level_of_adjusted_prices_is_objected_to(text: str) -> None:
    assert levels().objection(parse(text)) == READS_LEVEL_MESSAGE


@pytest.mark.parametrize("text", SHARES)
def test_ratios_returns_and_quoted_prices_pass(text: str) -> None:
    assert levels().objection(parse(text)) == ""


@pytest.mark.parametrize("text", LEVELS)
def test_nothing_is_objected_to_where_prices_are_as_they_were(text: str) -> None:
    panel = replace(adjusted(), back_adjusted=False)
    assert PriceLevelTest(panel, window(panel)).objection(parse(text)) == ""


def test_what_later_prices_are_does_not_matter() -> None:
    """The proof reads the search window only."""
    panel = adjusted()
    later = {
        name: np.where(np.arange(panel.days)[:, None] < 220, values, np.nan) for name, values in panel.fields.items()
    }
    blind = replace(panel, fields=later)
    assert find_adjusted_fields(blind.rows(20, 220)) == find_adjusted_fields(panel.rows(20, 220))
    for text in ("rank(close)", "close / delay(close, 5)"):
        assert PriceLevelTest(blind, window(blind)).objection(parse(text)) == levels().objection(parse(text))


def test_a_factor_that_orders_nothing_is_not_taken_for_shown() -> None:
    assert "cannot be shown" in levels().objection(parse("ts_mean(close, 230) / close"))


def test_a_factor_that_looks_far_back_is_tried_on_a_longer_part() -> None:
    panel = replace(market(3, days=900), back_adjusted=True)
    long = PriceLevelTest(panel, window(panel, 0, 800))
    assert long.objection(parse("ts_mean(close, 650) / close")) == ""
    assert long.objection(parse("ts_mean(close, 650)")) == READS_LEVEL_MESSAGE


def test_a_factor_of_the_adjustment_is_a_level_that_may_not_stand_against_prices_either() -> None:
    panel = adjusted()
    factor = panel.fields["close"] / panel.fields["close_raw"]
    given = levels(replace(panel, fields={**panel.fields, "adj_factor": factor, "adj_close": panel.fields["close"]}))
    fields = tuple(given.panel.fields)
    for text in ("adj_factor", "adj_close / close", "close / adj_factor"):
        assert given.objection(parse(text, fields=fields)) == READS_LEVEL_MESSAGE
    assert given.objection(parse("adj_close / delay(adj_close, 5)", fields=fields)) == ""


def test_vwap_and_amount_move_with_the_prices_that_they_are_made_of() -> None:
    panel = adjusted()
    assert find_adjusted_fields(panel) == ["open", "high", "low", "close", "vwap"]
    close, volume = panel.fields["close"], panel.fields["volume"]
    other = replace(panel, fields={**panel.fields, "vwap": panel.fields["close_raw"], "amount": close * volume})
    assert find_adjusted_fields(other) == ["open", "high", "low", "close", "amount"]
    nothing_quoted = {name: values for name, values in other.fields.items() if name != "close_raw"}
    assert find_adjusted_fields(replace(other, fields=nothing_quoted)) == ["open", "high", "low", "close", "amount"]


def test_rescaling_keeps_returns_and_every_ratio_to_the_bit() -> None:
    panel = adjusted()
    other = rescale_prices(panel)
    assert other.fields["returns"] is panel.fields["returns"]
    before, after = (prices.fields["close"] / prices.fields["open"] for prices in (panel, other))
    np.testing.assert_array_equal(before, after)
    constant = other.fields["close"] / panel.fields["close"]
    assert len(np.unique(constant[~np.isnan(constant)])) > 3
    assert rescale_prices(panel) == other


def with_splits(*, quoted: bool) -> Panel:
    """Return a market of which nobody says what its volumes are; forty names split on search days, two for one."""
    panel = adjusted()
    raw, volume = panel.fields["close_raw"].copy(), panel.fields["volume"].copy()
    for name in range(40):
        day = 50 + 4 * name
        raw[:day, name] *= 2.0
        volume[:day, name] /= 2.0 if quoted else 1.0
    fields = {**panel.fields, "close_raw": raw, "volume": volume, "amount": raw * volume}
    return adjust_forwards(replace(panel, fields=fields, volumes=""), 220)


def test_volumes_that_splits_of_search_days_show_to_be_adjusted_may_not_be_read_by_their_level() -> None:
    """Without any setting: the panel's own splits show, and a formula called causal may not read them."""
    seen, quoted = levels(with_splits(quoted=False)), levels(with_splits(quoted=True))
    for text in ("volume", "rank(ts_mean(volume, 20))", "close_raw * volume", "amount", "abs(returns) / amount"):
        assert seen.objection(parse(text)) == READS_VOLUMES_MESSAGE
        assert quoted.objection(parse(text)) == ""
    for text in ("volume / ts_mean(volume, 20)", "ts_corr(close, volume, 20)", "ts_zscore(amount, 30)", KNOWN):
        assert seen.objection(parse(text)) == ""
    said = replace(with_splits(quoted=False), volumes="quoted")
    assert PriceLevelTest(said, window(said)).objection(parse("volume")) == "", "the owner's word stands"


def test_a_day_that_only_one_side_orders_counts_against_it() -> None:
    flat, rising = np.ones((1, 20), np.float32), np.arange(20, dtype=np.float32)[None]
    assert order_correlation(flat, flat) is None
    assert order_correlation(np.vstack([flat, rising]), np.vstack([flat, rising])) == 1.0
    assert order_correlation(np.vstack([flat, rising]), np.vstack([rising, rising])) == 0.5


def test_a_level_is_refused_before_it_is_scored_and_only_doubted_on_a_plain_sheet(ledger: Ledger) -> None:
    lab = Lab.open(ledger, "run", adjusted(), SMALL)
    said = lab.propose("close / close_raw")
    assert (said["ok"], said["stage"], said["errors"][0]["message"]) == (False, "causal", READS_LEVEL_MESSAGE)
    assert [attempt.stage for attempt in ledger.attempts.of("run")] == ["causal"]
    assert not ledger.evaluations.of("run")
    doubts = {doubt["code"]: doubt["message"] for doubt in lab.evaluator.score("close / close_raw")["warnings"]}
    assert doubts["adjusted_level"] == READS_LEVEL_MESSAGE
    assert "adjusted_level" not in {doubt["code"] for doubt in lab.evaluator.score(KNOWN)["warnings"]}
    assert lab.propose(KNOWN)["ok"]


def test_an_agent_is_told_derivations_and_no_other_note_on_the_data(ledger: Ledger) -> None:
    lab = Lab.open(ledger, "run", adjusted(), SMALL)
    told = [doubt["message"] for doubt in lab.propose(KNOWN)["sheet"]["warnings"] if doubt["code"] == "data"]
    shown = [doubt["message"] for doubt in lab.evaluator.score(KNOWN)["warnings"] if doubt["code"] == "data"]
    assert (told, shown) == (["vwap: typical"], list(NOTES))
