"""Where a factor breaks reads at a glance: on the report as a picture, on the terminal as a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk import write_report
from alphaloom.desk.cli.factor.score import print_stress
from alphaloom.desk.cli.options import DataOptions
from alphaloom.desk.report.stress_matrix import build_stress_page
from alphaloom.evaluation.closing import FactorStress, Results

from . import example

JSON = dict[str, Any]


def figures(keeps: float | None, verdict: str) -> JSON:
    return {
        "clean": 0.03,
        "stressed": 0.03 * (keeps or 0.0),
        "keeps": keeps,
        "error": 0.01,
        "p": 0.5,
        "verdict": verdict,
    }


def row(code: str, group: str, words: str, verdict: str, **more: Any) -> JSON:
    return {"code": code, "group": group, "words": words, "days": 200, "verdict": verdict, **more}


def factor() -> JSON:
    """Return one factor's record: a break, a silence, a loss by luck, and what is not judged."""
    dates = {"first": "2008-05-16", "last": "2009-03-09"}
    fall = row("worst_drawdown", "history", "worst drawdown", "unclear", **dates, rank_ic=figures(0.2, "unclear"))
    crash = row("crash", "regime", "crash, -20 % in 10 days", "breaks", net_sharpe=figures(-3.5, "breaks"))
    gaps = row("missing_5", "data", "5 % of cells missing", "breaks", rank_ic=figures(1.04, "holds"), coverage=0.1)
    late = row(
        "late_1",
        "fill",
        "fills 1 day late",
        "holds",
        rank_ic=figures(0.97, "holds"),
        net_sharpe=figures(None, "untested"),
    )
    return {
        "sentence": "Breaks in: crash, -20 % in 10 days (net Sharpe -2.10 against +0.60).",
        "clean": {"rank_ic": 0.03, "t": 5.0, "net_sharpe": 0.6, "gross_t": 3.0, "break_even_bps": 13.2, "days": 894},
        "weaknesses": [{"code": "stress", "scenario": "crash", "value": -3.5, "message": "breaks in: crash"}],
        "scenarios": [fall, crash, gaps, late],
    }


def stressed(*names: str) -> JSON:
    window = {"name": "search", "first": "2010-01-04", "last": "2013-06-14"}
    factors = {name: factor() for name in names}
    return {
        "stress": {"window": window, "seed": 1, "rule": "A factor breaks where it <keeps> little.", "factors": factors}
    }


def test_the_picture_has_a_column_for_each_factor_and_a_cell_for_each_figure() -> None:
    page = build_stress_page(Results.read(stressed("f1", "f2")).stress)
    assert page is not None
    ((picture, width),) = page.matrices
    assert picture.startswith(f'<svg viewBox="0 0 {width:g} ')
    assert picture.count('class="strong"') == 2 + 4
    assert picture.count('<rect class="cell') == 2 * 6
    assert [picture.count(f'class="cell {word}"') for word in ("breaks", "unclear", "untested", "weakens")] == [
        4,
        2,
        2,
        0,
    ]
    texts = re.findall(r'class="kept [a-z]+"[^>]*>([^<]+)<', picture)
    assert texts[:6] == ["20", "20", "&lt; \N{MINUS SIGN}200", "&lt; \N{MINUS SIGN}200", "104", "10"]
    assert "worst drawdown, 2008-05 to 2009-03" in picture


def test_more_factors_than_stand_beside_each_other_make_another_picture() -> None:
    page = build_stress_page(Results.read(stressed(*(f"f{number}" for number in range(6)))).stress)
    assert page is not None
    assert (len(page.matrices), len(page.single)) == (2, 6)
    assert len(page.sentences) == 6


def test_a_run_without_stress_has_no_page() -> None:
    assert build_stress_page(None) is build_stress_page(Results.read({"stress": None}).stress) is None


def test_the_report_shows_it_and_escapes_what_is_told(finished: Callable[..., Path]) -> None:
    text = write_report(finished(example.results() | stressed("f1"))).read_text(encoding="utf-8")
    assert "<h2>Under stress</h2>" in text
    assert "net Sharpe -2.10 against +0.60" in text
    assert "&lt;keeps&gt;" in text
    assert "2010-01-04 to 2013-06-14; seed 1" in text


def test_the_terminal_names_what_breaks_and_shows_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    print_stress(FactorStress.read(factor()), "The rule.")
    output = capsys.readouterr().out
    assert output.index("breaks in: crash") < output.index("historical stretches")
    assert "worst drawdown, 2008-05-16 to 2009-03-09" in output
    assert "Nothing is left of its book at 13.2 bp a side." in output
    assert re.search(r"5 % of cells missing .* 104 % .* 10 %  breaks", output)


def test_a_score_is_stressed_when_it_is_asked_to_be(tmp_path: Path) -> None:
    from alphaloom.desk.cli.evaluator import score_factor

    file = tmp_path / "campaign.yaml"
    file.write_text("market: {synthetic: {days: 700, names: 40}}\nevidence: {costs: {bps_per_side: 25.0}}\n")
    place = DataOptions(campaign=file, workspace=tmp_path / "workspace")
    plain, told = (score_factor("-ts_mean(returns, 5)", place, gate=False, stress=asked) for asked in (False, True))
    found = told.pop("stress")
    assert told == plain
    assert found["window"]["last"] == plain["window"]["last"]
    assert found["clean"]["rank_ic"] == pytest.approx(abs(plain["rank_ic"]), rel=1e-9)
    assert {scenario["group"] for scenario in found["scenarios"]} == {"history", "regime", "data", "fill"}
