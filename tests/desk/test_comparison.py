"""Two factors side by side: what the service measures, and what the terminal and the page say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli import evaluator as research
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.cli.options import DataOptions
from alphaloom.desk.report.comparison import build_comparison_page, describe_pair, list_together
from alphaloom.desk.report.factor_page import render_page
from alphaloom.evaluation.closing import FactorComparison

from .test_factor_page import record

JSON = dict[str, Any]
Capture = pytest.CaptureFixture[str]
FILE = "market:\n  synthetic: {days: 700, names: 40}\n  plants: {count: 0}\nevidence: {returns: raw}\n"


def pair(first: float | None = 3.0, second: float | None = 0.5, sign: int = 1) -> JSON:
    """Return a comparison; `first` and `second` are the t of each beside the other."""
    besides = [{"rank_ic": sign * 0.01 if t else None, "t": t, "kept": 0.4} for t in (first, second)]
    a, b = (record(0.03, id=name, beside=beside) for name, beside in zip(("f1", "f2"), besides, strict=True))
    shared = {"ratio": 0.5, "part": "ts_mean(close, 5)", "exact": False}
    return {"a": a, "b": b, "rank_correlation": 0.62, "shared": shared, "data": a["data"], "costs": a["costs"]}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (3.0, 2.5, "each adds to the other"),
        (3.0, 0.5, "A adds to B, and B adds nothing"),
        (1.0, -2.5, "B adds to A, and A adds nothing"),
        (None, 1.9, "neither adds"),
    ],
)
def test_the_sentence_names_who_adds(first: float | None, second: float | None, words: str) -> None:
    said = describe_pair(FactorComparison.read(pair(first, second)))
    assert said.startswith("On search days the rank correlation of A and B is +0.62; ")
    assert words in said


def test_a_residual_of_the_opposite_sign_adds_nothing() -> None:
    assert "neither adds" in describe_pair(FactorComparison.read(pair(3.0, 3.0, sign=-1)))


def test_what_concerns_both_is_in_words() -> None:
    told = dict(list_together(FactorComparison.read(pair(None, 0.5))))
    assert told["A beside B"] == "nothing is left beside B"
    assert told["B beside A"] == "RankIC +0.0100, t +0.50; 40 % of its rank variance is unexplained by A"
    assert told["shared structure"] == "50 %: ts_mean(close, 5), with slightly different numbers"


def test_the_command_prints_two_columns_and_writes_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(research, "compare_factors", lambda *_, **__: pair())
    target = tmp_path / "two.html"
    assert run_command(["factor", "compare", "-rank(close)", "f123", "--html", str(target)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == str(target)
    assert any(line.split() == ["RankIC", "+0.0300", "+0.0300"] for line in lines)
    page = target.read_text()
    assert page == render_page("comparison.html.j2", build_comparison_page(pair()))
    assert "<script" not in page
    assert "A adds to B" in page
    assert page.count('class="bar second"') == page.count('class="bar first"') > 0


def test_both_are_scored_on_the_same_days(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text(FILE)
    workspace = ["--workspace", str(tmp_path / "w")]
    assert run_command(["library", "add", "ts_mean(volume, 10)", *workspace, "--json"]) == 0
    name = json.loads(capsys.readouterr().out)["id"]
    place = DataOptions(campaign=file, workspace=tmp_path / "w")
    told = research.compare_factors((name[:6], "-rank(ts_mean(volume, 10))"), place)
    assert told["a"]["id"] == name
    assert told["a"]["window"] == told["b"]["window"]
    assert told["rank_correlation"] == pytest.approx(-1, abs=1e-6)
    assert (told["a"]["beside"]["t"], told["shared"]["ratio"]) == (None, 1.0)
    command = ["factor", "compare", "f00000", "close", "--campaign", str(file), *workspace, "--json"]
    assert run_command(command) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "unknown_factor"
