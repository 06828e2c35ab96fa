"""The close: accepted factors combined, examined once, and written whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from alphaloom.evaluation import Evaluator, close, write_closing
from alphaloom.evidence.scoring.metrics import FactorMetrics
from alphaloom.evidence.scoring.scorer import Scorer
from alphaloom.evidence.windows import Window
from alphaloom.market import Panel
from alphaloom.portfolio import COMBINATION_KEY, SEALED_SERIES_EVENT
from alphaloom.portfolio.combination import CombinationPart, combine_ranks, hold_fixed, write_combination

from ..evidence.lab import KNOWN, SMALL, Crash, Lab, market

Make = Callable[..., Lab]
OTHER = "ts_kurt(high / low, 25)"


def parts() -> list[CombinationPart]:
    rng = np.random.default_rng(0)
    values = [np.round(rng.normal(size=(12, 20)) * 3).astype(np.float32) for _ in range(3)]
    values[1][rng.random((12, 20)) < 0.3] = np.nan
    values[0][:, :2] = values[1][:, :2] = values[2][:, :2] = np.nan
    return [CombinationPart("a", 1, values[0]), CombinationPart("b", -1, values[1]), CombinationPart("c", 1, values[2])]


def test_the_combination_is_the_mean_of_signed_centred_ranks() -> None:
    frames = [part.sign * (pd.DataFrame(part.values).rank(axis=1, pct=True) - 0.5) for part in parts()]
    mean = pd.concat(frames).groupby(level=0).mean()
    np.testing.assert_allclose(combine_ranks(parts()), mean.to_numpy(), rtol=1e-6, atol=1e-7)
    assert np.isnan(combine_ranks(parts())[:, :2]).all()


def test_the_combination_does_not_know_the_order_of_its_parts() -> None:
    np.testing.assert_allclose(combine_ranks(parts()[::-1]), combine_ranks(parts()), atol=1e-7)


def test_fixed_weights_that_are_equal_give_the_mean_and_one_part_alone_gives_its_ranks() -> None:
    np.testing.assert_allclose(hold_fixed(parts(), [0.2, 0.2, 0.2], 1.0), combine_ranks(parts()), atol=1e-7)
    alone = hold_fixed(parts()[:1], [0.4], 0.5)
    np.testing.assert_allclose(alone[0], combine_ranks(parts()[:1])[0], atol=1e-7)
    half = (alone[0] + combine_ranks(parts()[:1])[1]) / 2
    np.testing.assert_allclose(alone[1], half, atol=1e-6)


def test_the_combination_is_written_tidily_and_whole(tmp_path: Path) -> None:
    panel = market()
    score = np.random.default_rng(0).normal(size=panel.universe.shape).astype(np.float32)
    score[~panel.universe] = np.nan
    rows = write_combination(score, panel, tmp_path / "combination.parquet")
    frame = pd.read_parquet(tmp_path / "combination.parquet")
    assert list(frame.columns) == ["date", "symbol", "score"]
    assert len(frame) == rows == panel.universe.sum()
    wide = frame.pivot(index="date", columns="symbol", values="score").reindex(columns=list(panel.symbols))
    there = panel.universe.any(axis=1)
    np.testing.assert_array_equal(wide.to_numpy(), score[there])
    assert (wide.index.to_numpy().astype("datetime64[D]") == panel.dates[there]).all()
    assert [path.name for path in tmp_path.iterdir()] == ["combination.parquet"]


def test_a_write_cut_short_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "combination.parquet"
    write_combination(np.ones(market().universe.shape, np.float32), market(), path)
    before = path.read_bytes()

    def full(self: pd.DataFrame, target: Path, **options: Any) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="No space"):
        write_combination(np.zeros(market().universe.shape, np.float32), market(), path)
    assert path.read_bytes() == before


def test_nothing_accepted_closes_with_nothing(lab: Make, tmp_path: Path) -> None:
    run = lab()
    closing = close(run.evaluator, [], open_sealed=True)
    assert (closing.score, closing.sealed, closing.book) == (None, None, None)
    assert write_closing(closing, run.evaluator, tmp_path) is None
    assert run.ledger.trials.openings(run.evaluator.windows.key(run.evaluator.windows.sealed)) == []


class Peeking(Scorer):
    """A scorer that dies when it is to look at sealed days."""

    def score(self, values: NDArray[Any], window: Window, sign: int | None = None) -> FactorMetrics:
        if window.name == "sealed":
            raise Crash
        return super().score(values, window, sign)


def closed(run: Lab) -> dict[str, Any]:
    sealed = close(run.evaluator, [run.scored(KNOWN)], open_sealed=True).sealed
    assert sealed is not None
    return sealed


def test_an_opening_is_recorded_before_the_look_and_numbered(lab: Make, planted: Panel) -> None:
    run = lab("first", panel=planted)
    old = run.evaluator
    peeking = Peeking(old.panel, old.settings)
    torn = Evaluator(old.engine, peeking, old.windows, old.ledger, old.settings, old.budget, old.run)
    with pytest.raises(Crash):
        close(torn, [run.scored(KNOWN)], open_sealed=True)
    openings = run.ledger.trials.openings(old.windows.key(old.windows.sealed))
    assert [(opening.run, opening.number) for opening in openings] == [("first", 1)]
    assert run.ledger.events.of("first", SEALED_SERIES_EVENT) == []
    exam = closed(run)
    assert exam["number"] == 1  # the same run after its restart
    series = {event.key: event.body for event in run.ledger.events.of("first", SEALED_SERIES_EVENT)}
    days = [value for value in series[COMBINATION_KEY]["rank_ic"] if value is not None]
    assert {COMBINATION_KEY, *exam["factors"]} == {*series}
    assert (len(days), np.mean(days)) == (exam["days"], pytest.approx(exam["rank_ic"]))
    second = closed(lab("second", panel=planted))
    assert (second["opened"], second["number"], second["window"]["name"]) == (True, 2, "sealed")


def test_the_exam_is_judged_by_the_test_that_the_settings_name(lab: Make, planted: Panel) -> None:
    plain = closed(lab("labels", panel=planted))
    run = lab("held", panel=planted, settings=SMALL.model_copy(update={"test": "held", "watch_p": 0.45}))
    told = closed(run)
    scorer, window = run.evaluator.scorer, run.evaluator.windows.sealed
    values = run.evaluator.values(run.evaluator.read(KNOWN))
    (one,) = told["factors"].values()
    alone = scorer.proof(values, window).p_value(one["sign"])
    assert one["p_value"] == pytest.approx(alone, rel=1e-9)
    assert one["p_labels"] < 0.45
    assert told["p_labels"] == plain["p_value"] != told["p_value"]
    assert "test" not in plain
    assert (told["rank_ic"], told["t"]) == (plain["rank_ic"], plain["t"])


def test_a_close_that_may_not_look_leaves_the_seal(lab: Make, planted: Panel, tmp_path: Path) -> None:
    run = lab(panel=planted)
    names = [run.scored(KNOWN), run.scored(OTHER)]
    closing = close(run.evaluator, names, open_sealed=False)
    assert closing.sealed is None
    assert closing.book is not None
    assert (closing.book.window, closing.book.accepted_on_these_days) == ("selection", True)
    assert run.ledger.trials.openings(run.evaluator.windows.key(run.evaluator.windows.sealed)) == []
    written = write_closing(closing, run.evaluator, tmp_path)
    assert written is not None
    signs = {name: run.direction(text) for name, text in zip(names, (KNOWN, OTHER), strict=True)}
    weights = {name: weight or 0.0 for name, weight in written.weights.items()}
    assert all(weights[name] * sign >= 0 for name, sign in signs.items())
    assert sum(map(abs, weights.values())) == pytest.approx(1.0, abs=1e-6)
    assert weights[names[0]] * signs[names[0]] > 0.6, "the other one knows nothing"
    assert list(written.factors) == sorted(names)
    assert len(pd.read_parquet(tmp_path / written.file)) == written.rows
    assert closing.search is not None
    assert closing.search.rank_ic > 0  # each part turned the way search has it


@pytest.mark.parametrize("rate", [1.0, 0.2])
def test_the_close_trades_the_combination_that_was_tested(
    lab: Make, planted: Panel, tmp_path: Path, rate: float
) -> None:
    run = lab(panel=planted, combination="equal", trading_rate=rate)
    members = [run.scored(text) for text in (KNOWN, OTHER)]
    name = run.evaluator.submissions.submit_set(members).factor_id
    closing = close(run.evaluator, [name], open_sealed=False)
    written = write_closing(closing, run.evaluator, tmp_path)
    assert written is not None
    assert closing.score is not None
    assert (written.tested, written.factors, written.trading_rate) == (True, tuple(sorted(members)), rate)
    values = run.evaluator.values(run.evaluator.read(run.evaluator.scores[name].text))
    there = ~np.isnan(values)
    assert (~np.isnan(closing.score) == there).all()
    assert np.corrcoef(values[there], closing.score[there])[0, 1] == pytest.approx(1.0, abs=1e-5)
    assert np.abs(closing.score[there]).max() <= 0.5 + 1e-6
    assert abs(closing.score[there].mean()) < 0.05
