"""The benchmark of the router: what is read off a curve, what the law gives, and each part run in small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alphaloom.router.classifier import build, fit
from alphaloom.router.classifier.model import Classifier
from alphaloom.router.classifier.training_prompts import read_examples
from bench.router import __main__ as command, accuracy, latency, replay, report, rows, writers
from bench.router.curve import Curve, Ends, Way, cascade, tier
from bench.router.law import FRONTIER, LOCAL, Law, Table, drawn
from bench.router.measured import ORACLE, SHIPPED, Measured
from bench.router.picture import CASCADES, LABELS, draw
from bench.router.prompts import held_out, mixed, resampled
from bench.router.scorers import ROUTER, Scorers, Tfidf

PROMPTS = held_out()
SOME = PROMPTS[::3]
FEW = read_examples()[::25]
LAW = Law(worlds=8)


@pytest.fixture(scope="module")
def table() -> Table:
    return drawn(PROMPTS, LAW, 3)


@pytest.fixture(scope="module")
def scorers() -> Scorers:
    return Scorers(FEW, LAW, 1)


@pytest.fixture(scope="module")
def measured(scorers: Scorers) -> Measured:
    return Measured.of(replay.replayed(SOME, scorers, replace(LAW, worlds=3), 1), 4, 1)


def even(table: Table) -> Any:
    return np.full(len(table.owner), 1 / len(table.owner))


def test_the_table_follows_its_law(table: Table) -> None:
    hard = np.array([prompt.hard for prompt in PROMPTS])[table.owner]
    for number, chances in ((LOCAL, LAW.success[0]), (FRONTIER, LAW.success[1])):
        share = table.success[number]
        assert abs(share.mean() - table.chance[number].mean()) < 0.02
        easy, difficult = share[~hard].mean(), share[hard].mean()
        assert easy == pytest.approx(0.95 * chances[0] + 0.05 * chances[1], abs=0.04)
        assert difficult == pytest.approx(0.95 * chances[1] + 0.05 * chances[0], abs=0.06)
    again = drawn(PROMPTS, LAW, 3)
    assert np.array_equal(again.cost, table.cost)
    assert table.cost[FRONTIER].mean() > 40 * table.cost[LOCAL].mean()
    assert table.cost.mean(axis=1) == pytest.approx(table.mean_cost.mean(axis=1), rel=0.03)


def test_without_wrong_labels_or_luck_of_ease_the_chances_are_those_stated() -> None:
    table = drawn(PROMPTS, replace(LAW, flipped=0.0, spread=0.0), 3)
    assert {round(float(value), 9) for value in table.chance[LOCAL]} == set(LAW.success[0])


def brute(table: Table, scores: Sequence[float], least: float) -> float:
    """Return the saving by trying every cut, in words of one prompt after the other."""
    local, dear = tier(table, LOCAL), tier(table, FRONTIER)
    best = 0.0
    for cut in sorted(set(scores)):
        small = np.asarray(scores) <= cut
        right = np.where(small, local.right, dear.right).mean()
        if (right - local.right.mean()) / (dear.right.mean() - local.right.mean()) >= least:
            best = max(best, 1 - np.where(small, local.cost, dear.cost).sum() / dear.cost.sum())
    return best


def test_a_saving_is_that_of_the_best_cut(table: Table) -> None:
    few = drawn(PROMPTS[::3], replace(LAW, worlds=1), 2)
    scores = np.random.default_rng(0).permutation(len(few.owner)).astype(float)
    found = Curve(few, scores, tier(few, LOCAL)).figures(even(few), 0.01, 0.5)
    assert found.savings == pytest.approx([brute(few, list(scores), level) for level in (0.90, 0.95, 0.98)])
    assert found.saving_at == pytest.approx(brute(few, list(scores), 0.5))


@settings(max_examples=10)
@given(st.integers(0, 1_000))
def test_every_curve_goes_from_one_end_to_the_other_and_chance_is_half(seed: int) -> None:
    few = drawn(PROMPTS[::4], LAW, seed)
    scores = np.random.default_rng(seed).random(len(few.owner))
    curve = Curve(few, scores, tier(few, LOCAL))
    costs, right = curve.line(even(few))
    ends = Ends.of(few, even(few))
    assert (costs[0], right[0]) == pytest.approx(ends.frontier)
    assert (costs[-1], right[-1]) == pytest.approx(ends.local)
    assert curve.figures(even(few), 0.01, 0.9).area == pytest.approx(0.5, abs=0.08)
    assert Curve(few, rows.oracle(few), tier(few, LOCAL)).figures(even(few), 0.01, 0.9).area > 0.6


def test_equal_scores_are_not_put_in_the_order_of_the_file(table: Table) -> None:
    found = Curve(table, np.zeros(len(table.owner)), tier(table, LOCAL), 1).figures(even(table), 0.01, 0.9)
    assert found.area == pytest.approx(0.5, abs=0.06)


def test_a_cascade_hears_only_of_what_shows(table: Table) -> None:
    local, all_shown = tier(table, LOCAL), cascade(table, 1.0)
    unheard = cascade(table, 0.0)
    assert np.array_equal(unheard.cost, local.cost)
    assert np.array_equal(unheard.right, local.right)
    assert all_shown.right.mean() > tier(table, FRONTIER).right.mean()
    wrong = local.right == 0
    assert np.array_equal(all_shown.cost[~wrong], local.cost[~wrong])


def test_weights_are_as_good_as_copies(table: Table) -> None:
    counts = resampled(len(PROMPTS), 1, 4)[0]
    way = tier(table, LOCAL)
    weights = counts[table.owner] / counts[table.owner].sum()
    copies = np.repeat(np.arange(len(table.owner)), counts[table.owner])
    assert way.mean(weights) == pytest.approx(
        Way(way.cost[copies], way.right[copies]).mean(np.full(len(copies), 1 / len(copies)))
    )


def test_a_replay_is_told_and_the_verdict_is_that_of_its_figures(measured: Measured) -> None:
    own, best = measured.found[ROUTER], measured.found[ORACLE]
    assert best.area > own.area > measured.found["length"].area
    assert not {"chance", "length"} & set(measured.behind())
    assert [name for name in measured.behind() if "cascade" not in name] == [
        name
        for name in measured.rivals()
        if min(own.area - measured.found[name].area, own.savings[1] - measured.found[name].savings[1]) <= 0
    ]
    most = measured.found["router + cascade"].savings[1]
    for name in measured.rivals():
        assert (f"{name} + cascade" in measured.behind()) == (measured.found[f"{name} + cascade"].savings[1] >= most)
    assert measured.found["oracle + cascade"].savings[1] > max(most, best.savings[1])
    told = report.report(measured)
    assert all(name in told for name in (*measured.found, *measured.replay.points))
    assert told.count("of what the oracle") == 2
    assert not {"chance", "length"} & set(measured.level())
    same = replace(measured, again=[{**sample, "length": sample[ROUTER]} for sample in measured.again])
    assert "length" in same.level()
    assert measured.replay.place("always frontier", measured.once) == pytest.approx((0.0, 1.0))
    assert measured.replay.place("always local", measured.once)[1] == pytest.approx(0.0)
    assert measured.found[ROUTER].quality_at == pytest.approx(
        measured.replay.place(SHIPPED, measured.once)[1], abs=0.02
    )


def test_the_verdict_tells_methods_of_others_from_other_readers_of_the_same_prompts() -> None:
    assert replay.verdict([]).count("above every row") == 2
    others, readers = replay.verdict([("length", "typed"), ("TF-IDF + LR + cascade", "typed")]).splitlines()
    assert others.endswith("not above length (typed)")
    assert readers.endswith("not above TF-IDF + LR + cascade (typed)")


def test_an_oracle_of_the_cascade_lies_above_whoever_has_one(table: Table) -> None:
    both = cascade(table, LAW.shown)
    areas = [
        Curve(table, scores, both).figures(even(table), 0.01, 0.9).savings[1]
        for scores in (rows.oracle_of_cascade(table, LAW.shown), rows.oracle(table), table.owner.astype(float))
    ]
    assert areas == sorted(areas, reverse=True)
    assert np.array_equal(rows.oracle_of_cascade(table, 0.0), rows.oracle(table))


def test_the_picture_has_a_line_for_each_curve(measured: Measured) -> None:
    svg = draw(measured)
    assert svg.count("<polyline") == 2 * (len(measured.replay.curves) + len(CASCADES))
    assert all(f">{name}<" in svg for name in (*measured.replay.curves, *LABELS))
    assert svg.startswith("<svg xmlns=")
    assert svg.endswith("</svg>\n")


def test_a_rival_that_learns_from_the_same_prompts_tells_hard_from_easy(scorers: Scorers) -> None:
    hard = np.array([prompt.hard for prompt in SOME])
    for name, scores in scorers.scores([prompt.text for prompt in SOME]).items():
        apart = (scores[hard][:, None] > scores[~hard]).mean()
        assert apart > 0.7 or name in ("chance", "length"), name


def test_what_is_typed_is_another_text_of_the_same_label() -> None:
    again = replay.typed(PROMPTS, 1)
    assert [prompt.hard for prompt in again] == [prompt.hard for prompt in PROMPTS]
    assert sum(one.text != other.text for one, other in zip(again, PROMPTS, strict=True)) > 400


def test_latency_is_measured_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.router.scorers.training", lambda: FEW)
    texts = mixed(120, 1)
    timed = {name: latency.durations(call, texts) for name, call in latency.calls(None).items()}
    assert set(timed) >= {"read", "decide"}
    assert all(times.shape == (2, 120) and (times >= 0).all() for times in timed.values())
    assert latency.table(timed).splitlines()[1].split()[-1] == "1.0"
    found = latency.fresh("held = bytearray(b'x') * (50 << 20)")
    assert found is None or found[1] > 45 << 20


def test_accuracy_is_measured_and_balanced() -> None:
    found = accuracy.measures(PROMPTS, accuracy.reader_of(Classifier.shipped())) | accuracy.by_role(PROMPTS)
    assert set(found) == set(accuracy.PROMISES)
    once = np.ones(len(PROMPTS), dtype=np.int64)
    assert all(promised(found[name].of(once)) for name, promised in accuracy.PROMISES.items())
    careless = accuracy.measures(PROMPTS, lambda text: ("code", 0.0))
    assert careless["difficulty"].of(once) == 0.5
    assert careless["hard sent small"].of(once) == 1.0
    assert len(accuracy.table(found, 50).splitlines()) == len(found)
    same, other = (accuracy.table({"intent": reader["intent"]}, 50, found) for reader in (found, careless))
    assert "+0.0% (+0.0% to +0.0%)" in same
    assert " -8" in other


def test_scikit_learn_may_be_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def none(_: object) -> Tfidf:
        raise ImportError

    monkeypatch.setattr("bench.router.scorers.Tfidf", none)
    assert set(accuracy.readers(None)) == {"router"}
    assert "scikit-learn" in capsys.readouterr().out


def test_a_writer_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(writers, "training", lambda: FEW)
    monkeypatch.setattr(fit, "MAX_FIT_ITERATIONS", 2)
    monkeypatch.setattr(build, "NOISE_ROUNDS", ())
    assert writers.main(["--writer", "voice_2"]) == 0
    line = capsys.readouterr().out.splitlines()[1].split()
    assert line[0] == "voice_2"
    assert int(line[1]) == sum(example.voice == "voice_2" for example in FEW)


def test_parts_are_listed_and_the_worst_exit_code_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(part in output for part in command.PARTS)
    codes = dict(zip(command.USUAL, (0, 2, 1), strict=True))
    monkeypatch.setattr(command, "run_part", lambda package, about, parts, given: codes.pop(given[0]))
    assert command.main([]) == 2
    assert not codes
