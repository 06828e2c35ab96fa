"""The sheet of one factor as a person reads it: what is said of the data, and of a factor that has nothing to break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from alphaloom.campaign import campaign
from alphaloom.desk.cli import evaluator as research
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.cli.options import data_line
from alphaloom.market.errors import DataWarning

Capture = pytest.CaptureFixture[str]
TICKS = DataWarning(
    "bad ticks", "3 closes that jump and come back", 3, ("A 2010-01-04",), "they look like reversal", "mend"
)


def sheet(*, verdict: str) -> dict[str, Any]:
    """Return the sheet of a weak factor on a panel with bad ticks, with one stress of one verdict."""
    figures = {"clean": 0.001, "stressed": -0.02, "keeps": -18.0, "verdict": verdict}
    row = {"code": "crash", "group": "regime", "words": "crash, -20 %", "verdict": verdict, "rank_ic": figures}
    stress = {
        "sentence": "No stress was judged.",
        "clean": {"rank_ic": 0.001, "t": 0.4, "net_sharpe": -2.0, "break_even_bps": 0.0},
        "weaknesses": [],
        "scenarios": [row, {**row, "code": "grind"}],
        "rule": "A factor breaks where",
    }
    data = [{"code": "data", "message": text} for text in (str(TICKS), "prices derived by adj_factor")]
    prices = {
        "synthetic": True,
        "seed": 7,
        "file": None,
        "days": 700,
        "symbols": 40,
        "first_day": "2011-01-03",
        "last_day": "2013-09-06",
    }
    return {"id": "f1", "text": "rank(close)", "data": prices, "warnings": data, "stress": stress}


def said(monkeypatch: pytest.MonkeyPatch, capsys: Capture, verdict: str) -> str:
    monkeypatch.setattr(research, "score_factor", lambda *_, **__: sheet(verdict=verdict))
    assert run_command(["factor", "score", "rank(close)", "--stress"]) == 0
    return capsys.readouterr().out


def test_a_suspicion_is_one_line_and_the_audit_has_the_rest(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    lines = said(monkeypatch, capsys, "breaks").splitlines()
    assert "- bad ticks suspected: 3 closes that jump and come back" in lines
    assert "- prices derived by adj_factor" in lines
    assert not any("reversal" in line or "2010-01-04" in line for line in lines)
    assert sum("alphaloom data audit" in line for line in lines) == 1


def test_a_factor_with_nothing_to_break_gets_a_line_and_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    told = said(monkeypatch, capsys, "untested")
    assert "2 stresses left untested, nothing to break (RankIC +0.0010, t +0.4); --json has their figures." in told
    assert "crash" not in told
    assert "< \N{MINUS SIGN}200" not in told
    assert "crash" in said(monkeypatch, capsys, "holds")


@pytest.mark.parametrize("command", [["factor", "score", "rank(close)"], ["evidence", "power"]])
def test_without_prices_the_first_line_says_that_the_market_is_synthetic(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    small = campaign.Settings.model_validate({"market": {"synthetic": {"days": 700, "names": 40}}})
    monkeypatch.setattr(research, "Settings", lambda: small)
    where = ["--workspace", str(tmp_path / "w")]
    assert run_command([*command, *where]) == 0
    first = capsys.readouterr().out.splitlines()[0].rstrip()
    assert first.startswith("data: SYNTHETIC market, seed 7, 700 days x 40 symbols, 2010-01-04 to ")
    assert first.endswith("; for your own prices add --panel FILE")
    assert run_command([*command, *where, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    assert (data["synthetic"], data["seed"], data["file"], data["symbols"]) == (True, 7, None, 40)


def test_the_first_line_names_the_file_of_prices() -> None:
    prices = {
        "synthetic": False,
        "seed": None,
        "file": "mine.parquet",
        "days": 2000,
        "symbols": 504,
        "first_day": "2010-01-04",
        "last_day": "2017-12-29",
    }
    assert data_line(prices) == "data: mine.parquet, 2,000 days x 504 symbols, 2010-01-04 to 2017-12-29"
