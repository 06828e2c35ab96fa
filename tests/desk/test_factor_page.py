"""The page of one factor: what it says, and which files it replaces."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from alphaloom.desk.cli import evaluator as research
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.report.factor_page import (
    FACTOR_PAGE_MARK,
    build_factor_page,
    describe_strength,
    draw_exposures,
    render_page,
)
from alphaloom.evaluation.closing import FactorSheet

from . import example

JSON = dict[str, Any]
Capture = pytest.CaptureFixture[str]
DATA = {
    "synthetic": True,
    "seed": 7,
    "file": None,
    "days": 1500,
    "symbols": 40,
    "first_day": "2019-01-02",
    "last_day": "2024-10-01",
}
HOSTILE = "rank(close) </pre><script>alert(1)</script>"


def record(rank_ic: float = 0.03, **more: Any) -> JSON:
    """Return the sheet of a factor as `factor score --json` prints it."""
    daily = {"dates": example.SEARCH, "rank_ic": [None, *[rank_ic] * (len(example.SEARCH) - 1)]}
    profile = {
        "by_regime": {"rising": {"rank_ic": 0.04, "t": 3.0, "days": 300}},
        "exposures": {"size": -0.2, "beta": 0.1, "momentum": 0.0, "volatility": 0.3, "price": 0.05, "sector": 0.04},
        "capacity": {"at_10_percent_of_volume": 6e7, "break_even": 2e6, "unit": ""},
        "incremental": {"rank_ic": 0.011, "t": 2.4, "kept": 0.6, "against": ["f2"], "library": 3},
    }
    costs = {"bps_per_side": 10.0, "borrow_bps_per_year": 50.0}
    sheet = {"id": "f123456789", "text": HOSTILE, "explained": "The rank of the close.", "data": DATA, "costs": costs}
    return {**example.sheet(rank_ic, example.SEARCH), **sheet, **profile, "daily": daily, **more}


def render(sheet: JSON) -> str:
    return render_page("factor.html.j2", build_factor_page(sheet))


def test_the_page_shows_the_sheet_and_no_script() -> None:
    page = render(record())
    assert page == render(record())
    assert "<script" not in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")
    assert "&lt;script&gt;alert(1)" in page
    shown = ("+0.0300", "10 bp for each side", "Return by quintile", "RankIC by market regime", "60 million", "t +2.40")
    assert [text for text in shown if text not in page] == []
    assert "has not been tested on later days" in page
    assert "What the gate found" not in page
    assert "Under stress" not in page


def test_with_a_trial_the_selection_days_stand_beside_search() -> None:
    selection = {**example.sheet(0.02, example.SELECTION), "p_value": 0.003, "level": 0.0005}
    gate = {"verdict": "watchlist", "trial": 3, "reasons": example.reasons("statistics"), "selection": selection}
    page = render(record(gate=gate))
    assert "RankIC +0.0200, p = 0.003 (threshold 0.0005, trial 3)." in page
    assert (
        "p = 0.003 on selection (threshold 0.0005 for trial 4 after no earlier discoveries). Its RankIC there is 0.020."
        in page
    )
    assert "has not been tested" not in page


def test_small_correlations_look_small() -> None:
    small = {"size": -0.004, "beta": 0.002, "momentum": 0.0, "volatility": 0.0, "price": 0.0}
    heights = re.findall(r'class="bar search"[^>]*height="([\d.]+)"', draw_exposures([("search", sheet(small))]))
    assert heights
    assert max(map(float, heights)) < 5


def sheet(exposures: JSON) -> FactorSheet:
    return FactorSheet.read({"id": "f1", "exposures": exposures})


def test_a_refusal_before_the_test_says_that_no_trial_was_spent() -> None:
    gate = {"verdict": "rejected", "trial": None, "reasons": example.reasons("originality"), "selection": None}
    assert "no trial was spent" in render(record(gate=gate))


def test_with_stress_every_scenario_has_its_verdict() -> None:
    scenario = {"code": "crash", "group": "regime", "words": "crash, -20 %", "verdict": "breaks"}
    figure = {"clean": 0.6, "stressed": -2.0, "keeps": -3.3, "verdict": "breaks"}
    clean = {"rank_ic": 0.03, "break_even_bps": 13.2}
    stress = {"sentence": "Breaks.", "clean": clean, "scenarios": [{**scenario, "net_sharpe": figure}], "rule": "Rule."}
    page = render(record(stress=stress))
    assert '<span class="mark-cell breaks">breaks</span>' in page
    assert "Nothing is left of its book at 13.2 bp a side. Rule." in page


@pytest.mark.parametrize(
    ("rank_ic", "t", "words"),
    [
        (0.03, 5.0, "(t +5.0); Sharpe ratio after"),
        (-0.03, -5.0, "Sharpe ratio held with the opposite sign after costs"),
        (0.001, 1.9, "(t +1.9), not distinguishable from zero"),
        (None, None, "it has no RankIC"),
    ],
)
def test_the_first_sentence_is_the_strength(rank_ic: float | None, t: float | None, words: str) -> None:
    assert words in describe_strength(FactorSheet(id="f1", rank_ic=rank_ic, t=t, net_sharpe=0.5))


def test_the_command_writes_the_page_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(research, "score_factor", lambda *_, **__: record())
    target = tmp_path / "page.html"
    for _ in range(2):  # a page of ours is replaced
        assert run_command(["factor", "score", "rank(close)", "--html", str(target)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(target)
    assert FACTOR_PAGE_MARK in target.read_text()
    assert run_command(["factor", "score", "rank(close)", "--html", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == str(target)
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("name", "code", "exit_code"),
    [("notes.txt", "file_exists", 1), (".", "no_such_folder", 2), ("none/page.html", "no_such_folder", 2)],
)
def test_a_file_of_somebody_else_stays_and_nothing_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, name: str, code: str, exit_code: int
) -> None:
    monkeypatch.setattr(research, "score_factor", lambda *_, **__: pytest.fail("it was computed"))
    (tmp_path / "notes.txt").write_text("mine")
    assert run_command(["factor", "score", "close", "--html", str(tmp_path / name), "--json"]) == exit_code
    assert json.loads(capsys.readouterr().out)["code"] == code
    assert (tmp_path / "notes.txt").read_text() == "mine"
