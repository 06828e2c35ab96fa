"""The benchmark of search: what counts as found, which markets are refused, and a whole run in small."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, parse
from alphaloom.factors.space.planted import PlantedSignal, PlantSettings
from alphaloom.market import Plant, PlantedAlpha, SyntheticConfig, SyntheticMarket, simulate
from bench.rivals.days import daily_rank_ic
from bench.search import market, planted
from bench.search.cells import Cell, Cells, read, write
from bench.search.choice import centred_ranks, chosen, combination, ridge
from bench.search.coverage import WAYS, explained
from bench.search.features import alpha158, formula, hand_over
from bench.search.known import draws, form
from bench.search.market import life_in, objection
from bench.search.methods.campaign import Alphaloom
from bench.search.methods.method import Allowance, Factor, Method
from bench.search.methods.outside import Outside, boosted, genetic
from bench.search.pursuit import Distinct, by_gain
from bench.search.scoring import Truth, judged, recall, span_r2, unrelated
from bench.search.table import figures, table
from bench.search.world import Alpha, World, labelled

FIVE = (
    "rank(ts_corr(close, volume, 12))",
    "rank(ts_std(high / low, 9))",
    "rank(ts_mean(volume, 7) / ts_mean(volume, 31))",
    "rank(ts_skew(returns, 26))",
    "rank(ts_rank(close / open, 19))",
)
ALPHA = Alpha("rank(volume)", 0.02, 0, 100, None, 1.0, 6.0, False, True, True)


def noise(seed: int, days: int = 40, names: int = 30) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((days, names), dtype=np.float32)


def rank_correlation(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Correlate ranks day by day, the slow and obvious way."""
    days = [np.corrcoef(x.argsort().argsort(), y.argsort().argsort())[0, 1] for x, y in zip(a, b, strict=True)]
    return float(np.mean(days))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_the_choice_keeps_the_order_of_preference_and_no_two_that_are_alike(seed: int, share: float) -> None:
    base = noise(seed)
    pool = [base, *(share * base + (1 - share) * noise(seed + step) for step in range(1, 6))]
    wanted: list[int] = []
    for place in range(6):
        if all(abs(rank_correlation(pool[place], pool[other])) < 0.7 for other in wanted):
            wanted.append(place)
    assert chosen(range(6), lambda place: pool[place]) == wanted
    assert chosen(range(6), lambda place: pool[place], most=2) == wanted[:2]


def test_the_choice_reads_no_further_than_ten() -> None:
    read: list[int] = []

    def values(place: int) -> NDArray[np.float32]:
        read.append(place)
        return noise(place)

    assert chosen(iter(range(1000)), values) == list(range(10))
    assert read == list(range(10))


def test_gain_takes_what_adds_before_a_variant_of_the_loudest() -> None:
    loud, faint = noise(1).ravel(), noise(2).ravel()
    variant = (0.6 * loud + 0.8 * noise(3).ravel()).astype(np.float32)
    label = (loud + 0.3 * faint).astype(np.float32)
    assert by_gain([faint, variant, loud], label)[:2] == [2, 0]
    assert by_gain([loud, -loud, np.zeros_like(loud)], label) == [0]
    assert by_gain([], label) == []


def test_near_copies_do_not_fill_the_places_of_others() -> None:
    first, second = noise(1).ravel(), noise(2).ravel()
    kept = Distinct(2)
    assert [kept.takes(column) for column in (first, -first, np.zeros_like(first), first + 0.2 * second, second)] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert kept.full
    assert not kept.takes(noise(3).ravel())


def test_ridge_weighs_as_plain_least_squares_but_for_its_penalty() -> None:
    columns = [centred_ranks(noise(seed)) for seed in range(3)]
    label = (0.5 * columns[0] - 0.2 * columns[2]).astype(np.float64) + 0.01 * noise(9)
    label[3, 4] = np.nan
    found = ridge(columns, label)
    there = ~np.isnan(label)
    ranks = centred_ranks(label.astype(np.float32))[there]
    plain = np.linalg.lstsq(np.stack([column[there] for column in columns]).T, ranks, rcond=None)[0]
    assert np.allclose(found, plain, rtol=0.03, atol=0.01)
    universe = np.ones(label.shape, np.bool_)
    universe[0, 0] = False
    score = combination(columns, found, universe)
    assert np.isnan(score[0, 0])
    assert rank_correlation(score[1:3], label[1:3]) > 0.98
    assert ridge([], label).size == 0


def test_recall_counts_alphas_and_never_factors() -> None:
    like = np.array([[0.9, 0.8, 0.1], [0.2, 0.69, 0.3], [0.7, 0.1, 0.1], [0.1, 0.2, 0.29]])
    assert recall(like, [True, True, True, False]) == pytest.approx(2 / 3)
    assert recall(like, [True, True, True, True]) == pytest.approx(2 / 4)
    assert recall(np.zeros((4, 0)), [True] * 4) == 0.0
    assert np.isnan(recall(like, [False] * 4))
    assert unrelated(like) == 0.0
    assert unrelated(like[3:]) == 1.0
    assert np.isnan(unrelated(np.zeros((4, 0))))


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_the_span_is_the_plain_share_of_explained_variance(seed: int) -> None:
    factors = [centred_ranks(noise(seed + step, 20, 15)) for step in range(3)]
    expected = (factors[0] + 0.5 * factors[1] + 0.2 * noise(seed + 9, 20, 15)).astype(np.float32)
    present = np.ones((20, 15), np.bool_)
    present[2, :3] = False
    goal, columns = [], []
    for day in range(20):
        own = expected[day, present[day]].astype(float)
        goal.append((own - own.mean()) / own.std())
        columns.append(np.stack([factor[day, present[day]] - factor[day, present[day]].mean() for factor in factors]).T)
    y, x = np.concatenate(goal), np.concatenate(columns)
    left = y - x @ np.linalg.solve(x.T @ x, x.T @ y)
    assert span_r2(factors, expected, present) == pytest.approx(1 - left @ left / (y @ y), abs=1e-4)
    assert span_r2([], expected, present) == 0.0


def test_a_life_is_averaged_over_the_window() -> None:
    window = Window("sealed", 80, 100, "", "")
    told = PlantedAlpha("", 0.02, 0, 90, None, 0.0, 0.0, 1.0)
    assert life_in(window, told) == 0.5
    fading = life_in(window, replace(told, end_day=100, half_life_days=40.0))
    assert fading == pytest.approx(np.mean([0.5 ** (day / 40) for day in range(80, 100)]))


def test_markets_that_a_library_knows_are_refused() -> None:
    known, dead = replace(ALPHA, known=True), replace(ALPHA, alive=False, counts=False)
    assert objection((ALPHA, ALPHA, known, known, known, known, dead)) == ""
    assert "1 of 6" in objection((ALPHA, known, known, known, known, known, dead))
    assert "4 alphas" in objection((ALPHA,) * 4 + (dead,) * 3)
    assert "9 alphas" in objection((ALPHA,) * 9)
    assert "search days" in objection((replace(ALPHA, counts=False),) * 5)


def test_every_draw_of_a_skeleton_is_known_whatever_its_windows() -> None:
    skeleton = "{shape}({price} / {price2}, {mid})"
    forms = {form(parse(text)) for text in draws(skeleton) if "ts_argmax" in text or "ts_skew" in text}
    assert form(parse("rank(ts_skew(high / low, 19))")) in forms
    assert form(parse("-zscore(ts_argmax(open / close, 38))")) in forms
    assert form(parse("ts_skew(high / low, 120)")) not in forms
    assert form(parse("ts_skew(high - low, 20)")) not in forms


def test_refused_seeds_are_told_and_the_next_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def world_of(seed: int, size: market.Size, folder: Path) -> SimpleNamespace:
        return SimpleNamespace(alphas=(replace(ALPHA, known=seed % 2 == 0),) * 6)

    monkeypatch.setattr(market, "world_of", world_of)
    assert [seed for seed, _ in market.worlds(3, market.Size(), tmp_path)] == [1, 3, 5]
    assert "seed 4: refused, 0 of 6" in capsys.readouterr().err


def test_a_setting_that_this_version_lacks_is_told() -> None:
    assert "no such key" in Alphaloom("without wings", ("agents.wings=false",)).missing()
    assert Alphaloom("with fewer rounds", ("agents.rounds=3",)).missing() == ""


def test_an_acceptance_that_knows_nothing_is_false() -> None:
    made = simulate(SyntheticConfig(seed=1, days=600, names=60), [Plant(FIVE[0], PlantedSignal(FIVE[0]), 0.06)])
    world = replace(labelled("", made.panel), expected=made.expected_return.astype(np.float32))
    accepted = [
        {"text": FIVE[0], "sign": 1},
        {"text": FIVE[0], "sign": -1},
        {"text": "ts_kurt(high / low, 25)", "sign": 1},
    ]
    verdict = judged(world, accepted)
    assert (verdict["accepted"], verdict["false"]) == (3, 2)
    assert verdict["truth"][0] > 0.9
    assert judged(world, []) == {"accepted": 0, "false": 0, "truth": []}


def test_a_table_tells_the_median_and_the_range() -> None:
    row = {
        "recall": 0.5, "correlation": 0.6, "span_r2": 0.3, "sealed_rank_ic": 0.05, "sealed_t": 9.0, "unrelated": 0.0,
        "evaluations": 30, "cpu_s": 12.0, "hits": ["a", "b", "c"],
    }  # fmt: skip  # a table
    assert figures(row)["cost"] == 4.0
    text = table({"random": [row, row | {"recall": 0.25}, row | {"recall": 1.0, "hits": []}]})
    assert "0.50 [0.25, 1.00]" in text


def test_a_whole_run_in_small(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def small(config: SyntheticConfig, _: PlantSettings) -> SyntheticMarket:
        return simulate(config, [Plant(text, PlantedSignal(text), 0.08) for text in FIVE])

    monkeypatch.setattr(market, "build_planted_market", small)
    monkeypatch.setattr(market, "known_forms", lambda folder: frozenset())
    monkeypatch.setattr(market, "LEAST_T", 0.0)
    monkeypatch.setattr(Outside, "missing", lambda self: "not asked")
    told = tmp_path / "rows.json"
    asked = ["--seeds", "1", "--days", "600", "--names", "60", "--evaluations", "30", "--no-cpu"]
    asked += ["--folder", str(tmp_path), "--set", "agents.rounds=1", "--picture", str(tmp_path / "found.svg")]
    assert planted.main([*asked, "--json", str(told)]) == 1
    rows = json.loads(told.read_text())["evaluations"]
    assert rows["oracle"][0]["recall"] == 1.0
    assert rows["oracle"][0]["correlation"] > 0.6
    for name in ("random, the plants' grammar", "the desk's skeletons", "Alphaloom, offline"):
        assert 0 < rows[name][0]["evaluations"] <= 30
        assert rows[name][0]["correlation"] < rows["oracle"][0]["correlation"]
    first = capsys.readouterr()
    assert "simulating" in first.err
    assert "DOES NOT HOLD: recall" in first.out
    assert (tmp_path / "found.svg").read_text().count("<circle") == 2 * len(rows)
    assert planted.main([*asked, "--json", str(told)]) == 1
    again = capsys.readouterr()
    assert "simulating" not in again.err
    assert again.out == first.out


def test_rivals_are_given_the_seconds_of_alphaloom_rounded_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: dict[str, Allowance] = {}

    def row(
        self: object, world: object, truth: object, method: Method, allowance: Allowance, seed: int
    ) -> dict[str, Any]:
        given[method.name] = allowance
        return dict.fromkeys(("recall", "correlation", "span_r2", "cpu_s"), 1.0) | {"method": method.name}

    monkeypatch.setattr(Cells, "row", row)
    monkeypatch.setattr(Truth, "of", lambda world: None)
    monkeypatch.setattr(Outside, "missing", lambda self: "not asked")
    options = planted.arguments(["--folder", str(tmp_path)])
    own = {"method": "Alphaloom, offline", "seed": 3, "cpu_s": 421.5}
    found = list(
        planted.in_time(
            cast("World", None), 3, options, {"Alphaloom, offline": [own], "oracle": [{"method": "oracle"}]}
        )
    )
    assert [entry["method"] for entry in found[:2]] == ["Alphaloom, offline", "oracle"]
    assert given["random, the plants' grammar"].cpu_s == 430.0
    assert given["ten textbook formulas"].cpu_s is None
    assert list(planted.in_time(cast("World", None), 4, options, {"Alphaloom, offline": [own]})) == []


def test_a_rival_reads_the_same_rank_ic() -> None:
    values, label = noise(4), noise(5)
    assert np.mean(daily_rank_ic(values, label)) == pytest.approx(
        np.mean([np.corrcoef(v.argsort().argsort(), x)[0, 1] for v, x in zip(values, label, strict=True)]), abs=1e-6
    )
    ranks = centred_ranks(label)
    ranks[0, :10] = np.nan
    there = ~np.isnan(ranks[0])
    own = np.corrcoef(values[0, there].argsort().argsort(), ranks[0, there])[0, 1]
    assert daily_rank_ic(values, ranks)[0] == pytest.approx(own, abs=1e-6)
    assert not daily_rank_ic(np.ones_like(values), label).any()


def test_features_are_handed_over_without_a_later_label(tmp_path: Path) -> None:
    world = labelled("", simulate(SyntheticConfig(seed=1, days=600, names=30)).panel)
    hand_over(world.ground(), tmp_path)
    features, label = np.load(tmp_path / "features.npy"), np.load(tmp_path / "label.npy")
    assert features.shape == (158, 600, 30)
    assert label.shape == (world.windows.search.days, 30)
    place = list(alpha158()).index("ROC20")
    own = centred_ranks(Engine(world.panel).evaluate([formula("Alpha158 ROC20")])[0])
    assert np.abs(features[place] - own).max() < 1e-3
    assert np.isnan(label).sum() == np.isnan(world.windows.search.cut(world.label)).sum()


def test_an_answer_is_kept_with_its_arrays(tmp_path: Path) -> None:
    values = noise(7)
    values[0, 0] = np.nan
    write(tmp_path / "cell", Cell((Factor("x", 2.0, values), Factor("rank(close)", 1.0)), 12, 3.5, values, {"a": 1}))
    found = read(tmp_path / "cell")
    assert (found.evaluations, found.cpu_s, found.more) == (12, 3.5, {"a": 1})
    assert [factor.text for factor in found.factors] == ["x", "rank(close)"]
    assert found.factors[1].values is None
    assert found.factors[0].values is not None
    assert found.combined is not None
    assert np.isnan(found.combined[0, 0])
    assert rank_correlation(found.combined[1:], values[1:]) > 0.999


def test_what_tells_most_explains_more_than_what_is_most_unlike() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=400, names=60)).panel
    planted_ones = tuple(replace(ALPHA, text=text) for text in FIVE)
    small = SimpleNamespace(
        panel=panel, alphas=planted_ones, windows=SimpleNamespace(search=Window("search", 0, 300, "", ""))
    )
    found = {name: explained(cast("World", small), way, 0, (10, 30)) for name, way in WAYS.items()}
    for early, late in found.values():
        assert 0 < early < late < 1
    assert found["the most telling"][1] > found["the most unlike"][1]


@pytest.mark.parametrize("rival", [genetic, boosted])
def test_a_rival_is_known_by_what_its_process_runs(rival: Callable[[Path], Outside], tmp_path: Path) -> None:
    assert rival(tmp_path).state().startswith(rival(tmp_path).module)
