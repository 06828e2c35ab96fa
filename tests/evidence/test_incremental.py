"""What a factor adds to the library is what the library does not say already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from alphaloom.evidence.originality.incremental import AddedValue, Addition, Consensus, measure_beside, residual_ranks
from alphaloom.evidence.originality.redundancy import LibraryValues
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, parse
from alphaloom.ledger import LibraryRow
from alphaloom.market import Panel
from alphaloom.portfolio.combination import CombinationPart, combine_ranks

from .lab import KNOWN, Lab, market, scorer

Make = Callable[..., Lab]
WINDOW = Window("search", 0, 210, "a", "b")
TEXTS = {"a": "rank(ts_std(returns, 20))", "b": "-ts_mean(volume, 10)", "c": "delta(close, 5) / close"}
SIGNS = {"a": -1, "b": 1, "c": 1}


def rows(*names: str) -> list[LibraryRow]:
    return [LibraryRow(name, TEXTS[name], "", "h", "run", {"rank_ic": 0.01 * SIGNS[name]}) for name in names]


def library(folder: Path, *names: str, panel: Panel | None = None) -> LibraryValues:
    engine = Engine(panel or market())
    return LibraryValues(engine, WINDOW, folder, lambda row: parse(row.text), rows(*names))


@given(st.integers(0, 10_000))
def test_what_is_left_is_uncorrelated_with_what_was_taken_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mine, *others = rng.uniform(-0.5, 0.5, (4, 12, 40))
    mine[rng.random(mine.shape) < 0.2] = np.nan
    others[1][rng.random(mine.shape) < 0.2] = np.nan
    left, kept = residual_ranks(mine, others)
    assert 0 < kept <= 1
    for day in range(12):
        known = ~np.isnan(left[day])
        assert (known == ~np.isnan(mine[day])).all()
        assert left[day][known].sum() == pytest.approx(0, abs=1e-9)
        for other in others:
            assert left[day][known] @ np.nan_to_num(other[day][known]) == pytest.approx(0, abs=1e-9)


def test_nothing_is_left_of_what_the_others_say_together() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 5, 30))
    left, kept = residual_ranks(2 * one - other, [one, other])
    assert np.isnan(left).all()
    assert kept == pytest.approx(0, abs=1e-12)


def test_days_with_few_names_or_one_value_are_left_out() -> None:
    rng = np.random.default_rng(2)
    mine, other = rng.normal(size=(2, 3, 12))
    mine[0, 3:] = np.nan
    mine[1] = 4.0
    left, _ = residual_ranks(mine, [other])
    assert np.isnan(left[:2]).all()
    assert not np.isnan(left[2]).any()
    assert np.isnan(residual_ranks(mine[:2], [other[:2]])[1])


def test_the_library_says_together_what_the_combination_says(tmp_path: Path) -> None:
    told = library(tmp_path, "a", "b", "c")
    parts = [CombinationPart(name, SIGNS[name], told.values(name)) for name in TEXTS]
    right = WINDOW.cut(combine_ranks(parts))
    assert np.allclose(Consensus(told, WINDOW).without(), right, atol=1e-7, equal_nan=True)
    fewer = WINDOW.cut(combine_ranks(parts[1:]))
    assert np.allclose(Consensus(told, WINDOW).without("a"), fewer, atol=1e-7, equal_nan=True)


def test_it_is_the_same_to_the_bit_in_whatever_order_factors_came(tmp_path: Path) -> None:
    slowly = library(tmp_path / "one", "c")
    said = Consensus(slowly, WINDOW)
    for name in ("a", "b"):
        said.without()
        slowly.show(rows(name))
    at_once = Consensus(library(tmp_path / "two", "a", "b", "c"), WINDOW).without()
    assert said.without().tobytes() == at_once.tobytes()


def test_it_is_kept_and_a_damaged_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = library(tmp_path, "a", "b")
    right = Consensus(told, WINDOW).without()
    file = told.folder / "consensus.npz"
    body = file.read_bytes()
    file.write_bytes(body[:1000])
    assert np.array_equal(Consensus(told, WINDOW).without(), right, equal_nan=True)
    assert file.read_bytes() == body
    fewer = Consensus(library(tmp_path, "a"), WINDOW).without()  # it is kept with what this one does not see
    assert np.array_equal(fewer, Consensus(library(tmp_path / "other", "a"), WINDOW).without(), equal_nan=True)
    Consensus(told, WINDOW).without()
    monkeypatch.setattr(LibraryValues, "values", lambda *_: pytest.fail("computed again"))
    monkeypatch.setattr(Engine, "evaluate", lambda *_: pytest.fail("computed again"))
    assert np.array_equal(Consensus(library(tmp_path, "a", "b"), WINDOW).without(), right, equal_nan=True)


def test_a_clone_adds_nothing_and_what_is_new_adds_all_it_has(tmp_path: Path, planted: Panel) -> None:
    told = library(tmp_path, "b", "c", panel=planted)
    beside = AddedValue.of(told, scorer(planted), WINDOW)
    clone = beside.addition(-told.values("b"))
    assert clone is not None
    assert (clone.record()["t"], clone.against[0]) == (None, "b")
    assert clone.kept < 1e-6
    assert clone.doubt(0.02) == "the library's 2 factors say all that it says"
    values = Engine(planted).evaluate([KNOWN])[0]
    fresh = beside.addition(values)
    own = scorer(planted).score(values, WINDOW)
    assert fresh is not None
    assert fresh.kept > 0.8
    assert fresh.rank_ic == pytest.approx(own.rank_ic, rel=0.2)
    assert fresh.t == pytest.approx(own.t, rel=0.25)
    assert fresh.doubt(own.rank_ic) == ""


def test_one_is_not_beside_itself_and_an_empty_library_has_no_beside(tmp_path: Path) -> None:
    told = library(tmp_path, "a")
    assert AddedValue.of(told, scorer(market()), WINDOW).addition(told.values("a"), but="a") is None
    assert AddedValue.of(library(tmp_path), scorer(market()), WINDOW).addition(told.values("a")) is None


def test_little_is_doubted_in_words() -> None:
    weak = Addition(0.004, 1.2, 0.4, ("f1",), 12)
    assert weak.doubt(0.03) == "little is left beside the library's 12 factors: RankIC +0.0040 of +0.0300, t +1.2"
    assert "beside the library's 1 factor: " in Addition(0.004, 1.2, 0.4, ("f1",), 1).doubt(0.03)
    assert Addition(0.0, float("nan"), 0.0, ("f1",), 1).doubt(0.03) == "the library's 1 factor says all that it says"
    assert Addition(-0.02, -4.0, 0.4, ("f1",), 12).doubt(0.03)
    assert not Addition(-0.02, -4.0, 0.4, ("f1",), 12).doubt(-0.03)


def test_a_score_and_a_dossier_tell_what_is_added(lab: Make, planted: Panel) -> None:
    first = lab("one", panel=planted)
    assert first.evaluator.score(KNOWN)["incremental"] is None
    assert first.judged(KNOWN).word == "accepted"
    later = lab("two", panel=planted)
    sheet = later.evaluator.score(f"zscore({KNOWN})")
    assert (sheet["incremental"]["t"], sheet["incremental"]["library"]) == (None, 1)
    assert "adds_little" in {doubt["code"] for doubt in sheet["warnings"]}
    other = later.evaluator.score("ts_skew(returns, 40)")["incremental"]
    assert other["kept"] > 0.9


def test_beside_one_other_factor_only_what_is_new_is_left() -> None:
    panel = market()
    judge = scorer(panel)
    own, other = Engine(panel).evaluate([TEXTS["a"], TEXTS["c"]])
    itself = measure_beside(own, -own, judge, WINDOW)
    assert np.isnan(itself.t)
    assert itself.kept == pytest.approx(0, abs=1e-9)
    apart = measure_beside(own, other, judge, WINDOW)
    assert 0.5 < apart.kept < 1
    noise = np.random.default_rng(3).normal(size=own.shape).astype(np.float32)
    unlike = measure_beside(own, noise, judge, WINDOW)
    plain = np.nanmean(judge.daily_rank_ic(own, WINDOW))
    assert unlike.rank_ic == pytest.approx(plain, abs=0.01)
