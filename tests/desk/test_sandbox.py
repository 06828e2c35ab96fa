"""What a person is told of a Python factor that was checked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.sandbox import Sandbox, SandboxUnavailable

pytestmark = pytest.mark.integration

GOOD = "def factor(panel):\n    return panel['close'].pct_change(5, fill_method=None)\n"
AHEAD = "def factor(panel):\n    return panel['close'].shift(-3)\n"
CHANCE = "import numpy\n\ndef factor(panel):\n    return panel['close'] * numpy.random.default_rng().normal()\n"


@pytest.fixture(scope="module", autouse=True)
def _jail() -> Iterator[None]:
    try:
        with Sandbox():
            yield
    except SandboxUnavailable as error:
        pytest.skip(f"{error.field} is missing on this machine")


@pytest.fixture
def panel(tmp_path: Path) -> Path:
    """Write a small file of prices."""
    rows = ["date,symbol,open,high,low,close,volume"]
    for day in range(1, 29):
        for name, start in (("AA", 10.0), ("BB", 50.0), ("CC", 20.0)):
            close = start + (day * day * (3 if name == "BB" else 2)) % 7 + day / 10
            rows.append(f"2021-02-{day:02d},{name},{close},{close + 1},{close - 1},{close},{1000 + day * 7 % 5}")
    path = tmp_path / "prices.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def check(code: str, panel: Path, *more: str) -> int:
    file = panel.with_name("mine.py")
    file.write_text(code)
    return run_command(["sandbox", "check", str(file), "--panel", str(panel), *more])


def test_a_good_factor_is_told_with_what_was_not_proven(panel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(GOOD, panel) == 0
    output = capsys.readouterr().out
    assert "28 days of 3 names, 2021-02-01 to 2021-02-28" in output
    assert "--sweep asks every day" in output
    assert "tried nothing that is forbidden" in output
    assert "after 5 days of warm-up" in output


def test_a_sweep_says_so(panel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(GOOD, panel, "--sweep", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["passed"]
    assert told["swept"]
    assert told["proof"]["swept"] == 28
    assert told["refused_system_calls"] == []


def test_a_look_ahead_is_told_with_day_and_name(panel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(AHEAD, panel) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "no: the value of AA on 2021-02-01 changed when later days were cut off: it reads 2021-02-04, 3 days" in text
    assert "line 2: shift(-3) reads later days" in text


def test_json_names_the_cell(panel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(AHEAD, panel, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["causal"], told["deterministic"], told["ran"]) == (False, True, True)
    assert told["error"]["seed"] >= 0
    assert (told["error"]["day"], told["error"]["symbol"], told["error"]["read"]) == ("2021-02-01", "AA", "2021-02-04")


def test_chance_and_what_was_refused_are_told(panel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(CHANCE, panel, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["deterministic"] is not True
    assert [remark["rule"] for remark in told["lint"]] == ["chance"]


def test_what_does_not_run_is_told_with_its_line(panel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("def factor(panel):\n    return panel['clos']\n", panel) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "the panel has no column clos. Did you mean close?" in text
    assert "values none: crashed" in text


@pytest.mark.parametrize("arguments", [["absent.py"], ["."]])
def test_a_file_that_cannot_be_read_is_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["sandbox", "check", *arguments]) == 2
    assert "error" in capsys.readouterr().err


def test_without_a_sandbox_nothing_is_run(
    panel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise SandboxUnavailable("this kernel has no Landlock", field="landlock", hint="Ask: alphaloom sandbox status")

    monkeypatch.setattr("alphaloom.sandbox.Sandbox", missing)
    assert check(GOOD, panel) == 3
    assert "no Landlock" in capsys.readouterr().err


def test_without_prices_it_is_said_first_that_the_market_is_synthetic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(GOOD)
    assert run_command(["sandbox", "check", str(file)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        "mine.py on the SYNTHETIC market (for your own prices add --panel FILE), 500 days of 60 names"
    )
