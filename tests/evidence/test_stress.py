"""Whole stresses: a good factor survives where it should, others break, and no later day is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from alphaloom.evaluation import stress_on_search
from alphaloom.evidence.scoring.labels import forward_returns
from alphaloom.evidence.stress import run_stress_tests
from alphaloom.evidence.stress.judgement import StressResult, StressWord
from alphaloom.factors import Engine, parse, sample
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate

from .lab import KNOWN, SMALL, Lab, market

Values = NDArray[np.float32]
RAW = SMALL.model_copy(update={"returns": "raw"})
SLOW = "rank(ts_mean(ts_corr(delta(low, 3) / low, delta(volume, 2) / volume, 17), 20))"


@cache
def planted() -> Panel:
    return market(1, names=120, planted=True)


def formulas(*texts: str) -> Callable[[Panel], list[Values]]:
    return lambda panel: Engine(panel).evaluate(list(texts))


@cache
def known() -> StressResult:
    return run_stress_tests(formulas(KNOWN), planted(), SMALL)[0]


def words(found: StressResult) -> dict[str, Mapping[str, StressWord]]:
    return {outcome.scenario.code: said for outcome, said in zip(found.outcomes, found.words, strict=True)}


def kept(found: StressResult, code: str) -> float:
    """Return the share of RankIC that is left."""
    outcome = next(result for result in found.outcomes if result.scenario.code == code)
    assert outcome.rank_ic is not None
    return outcome.rank_ic.keeps


def test_the_clean_figures_are_the_sheet_s(lab: Callable[..., Lab]) -> None:
    evaluator = lab(panel=planted()).evaluator
    sheet = evaluator.scorer.score(evaluator.values(parse(KNOWN)), evaluator.windows.search)
    told = stress_on_search(evaluator, [parse(KNOWN)])
    (record,) = told["factors"].values()
    assert record["clean"]["rank_ic"] == pytest.approx(abs(sheet.rank_ic), rel=1e-9)
    assert record["clean"]["t"] == pytest.approx(abs(sheet.t), rel=1e-9)
    assert record["clean"]["net_sharpe"] == pytest.approx(sheet.net_sharpe, rel=1e-9)
    assert told["window"]["last"] == sheet.last
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_a_factor_and_its_opposite_break_alike() -> None:
    mine, flipped = run_stress_tests(formulas(KNOWN, f"-({KNOWN})"), planted(), SMALL)
    assert flipped.clean == pytest.approx(mine.clean, rel=1e-9)
    assert words(flipped) == words(mine)
    assert flipped.breaks == mine.breaks


def test_a_good_factor_stays_alive_in_mild_stress() -> None:
    assert known().clean["t"] > 4
    mild = ("grind", "low_volatility", "sector_rotation", "tick_noise", "cents", "bad_ticks", "wrong_split", "late_1")
    assert {code: words(known())[code]["rank_ic"] for code in mild} == dict.fromkeys(mild, "holds")
    assert all(kept(known(), code) > 0.7 for code in mild)


def test_every_group_is_there_and_the_sentence_names_what_breaks() -> None:
    assert list(dict.fromkeys(outcome.scenario.group for outcome in known().outcomes)) == [
        "history",
        "regime",
        "data",
        "fill",
    ]
    told = known().record()
    broken = [row["words"] for row in told["scenarios"] if row["verdict"] == "breaks"]
    assert len(broken) == len(told["weaknesses"]) == len(known().breaks)
    assert all(words in told["sentence"] for words in broken)


def test_costs_are_arithmetic() -> None:
    rows = {row["code"]: row for row in known().record()["scenarios"]}
    clean, even = known().clean["net_sharpe"], known().clean["break_even_bps"]
    doubled = rows["costs_doubled"]["net_sharpe"]
    assert doubled["clean"] == pytest.approx(clean)
    assert doubled["stressed"] < clean
    assert (doubled["stressed"] > 0) == (even > 20)
    lent = rows["borrow_doubled"]["net_sharpe"]
    assert doubled["stressed"] < lent["stressed"] < clean


def tomorrow(panel: Panel) -> list[Values]:
    """Return what only the next day's return knows, with much noise: dead a day later."""
    noise = np.random.default_rng(1).normal(size=(2000, panel.names))[-panel.days :]
    known = np.nan_to_num(forward_returns(panel, 1))
    return [(known / 0.02 + 1.5 * noise).astype(np.float32)]


def test_a_factor_that_lives_a_day_breaks_when_fills_come_late() -> None:
    found = run_stress_tests(tomorrow, market(3), RAW)[0]
    for code in ("late_1", "late_2"):
        assert words(found)[code]["rank_ic"] == "breaks"
        assert kept(found, code) < 0.3
    assert "fills 1 day late (RankIC " in found.sentence


def test_a_factor_that_drowns_in_what_everybody_does_suffers_in_a_crash_and_in_no_grind() -> None:
    """A reversal of raw returns reads own moves; where all fall together it reads betas instead."""
    text = "-ts_mean(returns, 10)"
    config = SyntheticConfig(seed=3, days=840, names=120)
    panel = simulate(config, [Plant(text, lambda each: formulas(text)(each)[0], 0.08)]).panel
    found = run_stress_tests(formulas(text), panel, SMALL)[0]
    assert kept(found, "crash") < 0.6
    assert kept(found, "grind") > 0.95


def test_a_factor_with_long_strict_windows_falls_silent_when_cells_are_missing() -> None:
    strict, lenient = run_stress_tests(formulas(f"{KNOWN} + 0 * ts_mean(close / close, 60)", KNOWN), planted(), SMALL)
    assert "5 % of cells missing" in strict.sentence
    assert "of its cells" in strict.sentence
    assert next(o for o in lenient.outcomes if o.scenario.code == "missing_1").coverage > 0.6  # type: ignore[operator]


def fixed(count: int, leak: float) -> Callable[[Panel], list[Values]]:
    """Return factors that no data can spoil: noise, with some of the true next week in it."""
    true = market(3)
    label = np.nan_to_num(forward_returns(true, 5))
    label -= label.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(7)
    values = [leak * label / label.std() + rng.normal(size=label.shape) for _ in range(count)]

    def evaluate(panel: Panel) -> list[Values]:
        rows = np.searchsorted(true.dates, panel.dates)
        return [value[rows].astype(np.float32) for value in values]

    return evaluate


@pytest.mark.parametrize(("leak", "judged"), [(0.0, False), (0.12, True)])
def test_worthless_and_healthy_factors_are_seldom_said_to_break(leak: float, judged: bool) -> None:
    """No stress changes these factors or the order of own moves: a broken RankIC is a false alarm (1 in 20)."""
    count = 24
    stress = run_stress_tests(fixed(count, leak), market(3), SMALL)
    told = [[said.get("rank_ic") for said in words(result).values()] for result in stress]
    assert sum("breaks" in said for said in told) <= 3  # 1.2 are expected at most
    assert (sum("holds" in said for said in told) > count / 2) == judged


def test_nothing_after_the_search_window_is_read(lab: Callable[..., Lab]) -> None:
    panel = market(3)
    first = lab("one", panel=panel).evaluator
    stop = first.windows.search.stop
    rng = np.random.default_rng(0)
    fields = {name: np.array(values) for name, values in panel.fields.items()}
    for values in fields.values():
        values[stop:] *= rng.uniform(0.2, 5.0, values[stop:].shape)
    other = lab("two", panel=replace(panel, fields=fields)).evaluator
    told = [stress_on_search(prices, [parse(SLOW)]) for prices in (first, other)]
    assert json.dumps(told[0]) == json.dumps(told[1])


def test_a_generic_factor_is_held_to_the_universe() -> None:
    """Values outside the universe are nobody's to trade."""

    def everywhere(panel: Panel) -> list[Values]:
        return [np.where(panel.universe, tomorrow(panel)[0], 9.0)]

    mine, theirs = run_stress_tests(everywhere, market(3), RAW)[0], run_stress_tests(tomorrow, market(3), RAW)[0]
    assert mine.record() == theirs.record()


@pytest.mark.parametrize("days", [8, 45, 150])
def test_a_factor_that_says_nothing_and_a_short_panel_are_not_judged(days: int) -> None:
    def silent(panel: Panel) -> list[Values]:
        shape = panel.universe.shape
        return [np.full(shape, np.nan, np.float32), np.ones(shape, np.float32), tomorrow(panel)[0]]

    empty, flat, _ = run_stress_tests(silent, market(3).rows(0, days), SMALL)
    for found in (empty, flat):
        assert (
            found.sentence
            == "No stress was judged: without stress no figure is significant (t below 2), or there are too few days."
        )
        json.dumps(found.record(), allow_nan=False)


def test_a_panel_with_the_least_columns_can_be_stressed() -> None:
    panel = market(3).rows(0, 200)
    fields = {name: panel.fields[name] for name in ("open", "high", "low", "close", "volume")}
    bare = Panel.build(panel.dates, panel.symbols, fields, panel.universe)
    codes = [
        outcome.scenario.code
        for outcome in run_stress_tests(formulas("-delta(close, 5) / close"), bare, SMALL)[0].outcomes
    ]
    assert "crash" in codes
    assert {"sector_rotation", "sector_turn"}.isdisjoint(codes)


def test_worthless_formulas_lose_nothing_that_could_be_judged() -> None:
    """On a market with nothing in it, a random formula breaks seldom, and only if luck made it look good."""
    panel = market(2, days=800, names=100, nothing=True)
    rng = np.random.default_rng(2)
    drawn = [sample(rng) for _ in range(25)]
    stress = run_stress_tests(lambda each: Engine(each).evaluate(drawn), panel, SMALL)
    lucky = [result for result in stress if result.clean["t"] >= 2]
    assert len(lucky) <= 5  # 1.25 are expected, of either sign
    assert all(not result.breaks for result in stress if result not in lucky)
    told = [said.get("rank_ic") for result in stress for said in words(result).values()]
    assert told.count("breaks") <= 1
