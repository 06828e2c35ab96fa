"""The benchmark of the gate: seeds that are not chosen, truths that are true, and answers that are kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine
from alphaloom.market import Panel, Plant, SyntheticConfig, simulate
from bench import honesty
from bench.honesty import FALSE, KNOWN, MOST_FOOLED, Question, Size, asked, false_ones, mean_rank_ic, with_interval

NOTHING = {name: None for name in ("seeds", "days", "names", "evaluations", "panel", "sectors")}


def test_everything_that_is_asked_is_there() -> None:
    found = {question.name: question for question in asked(SimpleNamespace(question="all", folder=Path(), **NOTHING))}  # type: ignore[arg-type]
    assert {name: each.seeds for name, each in found.items()} == {
        "null": 20,
        "small": 200,
        "panel": 20,
        "known": 20,
        "planted": 20,
    }
    assert all(question.size.budget.trials == 10 for question in found.values())
    assert 300 <= found["small"].size.days <= 500
    assert 40 <= found["small"].size.names <= 60
    assert MOST_FOOLED == {"null": 0, "small": 3, "panel": 0}


def test_an_answer_is_made_once(tmp_path: Path) -> None:
    question = Question("known", 2, Size(700, 60, 40), tmp_path)
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"t": 8.5}

    first, again = question.kept(0, make), question.kept(0, make)
    assert (first, len(made)) == (again, 1)
    assert first["t"] == 8.5
    other = Question("known", 2, Size(700, 61, 40), tmp_path)
    other.kept(0, make)
    assert len(made) == 2


def test_truth_tells_a_plant_from_noise() -> None:
    def signal(panel: Panel) -> np.ndarray:
        return Engine(panel).evaluate([KNOWN])[0]

    market = simulate(SyntheticConfig(seed=2, days=400, names=60), [Plant(KNOWN, signal, 0.06)])
    window = Window("selection", 250, 330, "", "")
    expected = market.expected_return.astype(np.float32)
    true, noise = Engine(market.panel).evaluate([KNOWN, "ts_kurt(high / low, 25)"])
    assert mean_rank_ic(true, expected, window) > 0.9
    assert abs(mean_rank_ic(noise, expected, window)) < 0.2
    assert mean_rank_ic(np.full_like(true, np.nan), expected, window) == 0.0


def test_what_is_against_the_truth_or_knows_nothing_of_it_is_false() -> None:
    assert false_ones({"truth": [0.5, FALSE, FALSE - 1e-4, -0.4]}) == 2


def test_counts_carry_their_exact_interval() -> None:
    assert with_interval(0, 200) == "0 of 200 (95 % interval 0.0 to 1.8 %)"
    assert with_interval(20, 20) == "20 of 20 (95 % interval 83.2 to 100.0 %)"


def test_a_line_that_does_not_hold_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weak = {"t": 8.2, "rank_ic": 0.06, "verdict": "watchlist"}
    monkeypatch.setattr(honesty, "known_factor", lambda seed, size, workspace: weak)
    assert not honesty.known(Question("known", 3, Size(700, 60, 40), tmp_path))
    assert "DOES NOT HOLD: accepted on 0 of 3" in capsys.readouterr().out
