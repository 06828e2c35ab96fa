"""Every bad input as a person meets it: the exit code, the words, and nothing half-written."""

from __future__ import annotations

import builtins
import errno
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from alphaloom.campaign import campaign
from alphaloom.desk.cli.main import run_command
from alphaloom.extras import install_hint
from alphaloom.ledger import Ledger
from alphaloom.sandbox import SandboxUnavailable

from . import markets
from .conftest import Files

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
Change = Callable[[pd.DataFrame], pd.DataFrame]

SHORT = ("evidence.published=false", "agents.rounds=1", "agents.steps=0")
TINY = [part for text in (*markets.CLOSING, *SHORT) for part in ("--set", text)]
ERROR = {"code", "field", "got", "allowed", "hint", "message"}


def told(capsys: Capture, *arguments: object, code: int = 2) -> str:
    """Run a command that must fail, once for a person and once for a program; return what the person is told."""
    line = [str(argument) for argument in arguments]
    capsys.readouterr()
    assert run_command(line) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "internal error" not in said.err
    assert run_command([*line, "--json"]) == code
    (only,) = capsys.readouterr().out.splitlines()
    assert set(json.loads(only)) >= ERROR
    assert json.loads(only)["message"]
    return said.err


def untouched(folder: Path) -> bool:
    """Tell whether a workspace has no run, no object and no draft; the empty ledger may be there."""
    return not [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("ledger.sqlite")]


# Settings.


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("budgt: {trials: 2}", ["line 1", "budgt", "did you mean budget?"]),
        ("budget: {trial: 2}", ["line 1", "budget.trial", "did you mean trials?"]),
        ("seed: seven", ["seed", "valid integer", "got seven"]),
        ("name: My run", ["line 1, name: should be of small letters", "digits and hyphens", "got My run"]),
        (
            "seed: -1\nagents: {rounds: 0}",
            ["2 mistakes", "seed", "greater than or equal to 0", "line 2, agents.rounds"],
        ),
        ("agents: {rounds: '3'}", ["agents.rounds", "valid integer"]),
        ("- a\n- b", ["must hold keys with values"]),
        ("seed: [1", ["line"]),
        ("market: {plants: {rank_ic: [0.1, 0.2]}}", ["market.plants", "at most 0.08"]),
        ("evidence: {windows: {search: 0.8, selection: 0.2}}", ["evidence.windows", "must leave at least 0.05"]),
    ],
)
def test_a_campaign_file_with_mistakes(text: str, parts: list[str], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    said = told(capsys, "run", file, "--workspace", tmp_path / "w")
    assert all(part in said for part in parts), said
    assert str(file) in said
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("budget.trails=3", ["budget.trails", "did you mean trials?"]),
        ("budget.trials=many", ["budget.trials", "valid integer", "got many"]),
        ("budget.trials", ["write key=value"]),
        ("seed.deep=1", ["seed.deep", "no keys"]),
    ],
)
def test_a_set_with_a_mistake(override: str, parts: list[str], tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("seed: 1")
    said = told(capsys, "run", file, "--set", override, "--workspace", tmp_path / "w")
    assert all(part in said for part in parts), said
    assert not (tmp_path / "w").exists()


def test_a_seed_below_zero(tmp_path: Path, capsys: Capture) -> None:
    said = told(capsys, "run", "--seed", "-3", "--workspace", tmp_path / "w")
    assert "seed: should be greater than or equal to 0, got -3" in said


def test_a_campaign_file_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    said = told(capsys, "run", tmp_path / "none.yaml")
    assert str(tmp_path / "none.yaml") in said


# Runs.


@pytest.mark.parametrize("verb", ["resume", "report"])
def test_an_unknown_run(verb: str, tmp_path: Path, capsys: Capture) -> None:
    ledger_of(tmp_path, "20260102-101112-demo-ab12")
    said = told(capsys, verb, "20260102-101112-demo-ab21", "--workspace", tmp_path)
    assert "no run '20260102-101112-demo-ab21'" in said
    assert "Did you mean 20260102-101112-demo-ab12?" in said


def ledger_of(workspace: Path, run: str) -> None:
    from datetime import UTC, datetime

    from alphaloom.ledger import Run

    with Ledger.open(workspace, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as ledger:
        ledger.runs.start(Run(run, {"settings": {}}, 7, "d", "2026-01-02T00:00:00+00:00"))


@pytest.mark.parametrize("verb", ["resume", "report"])
def test_a_run_that_was_no_campaign(verb: str, files: Files, tmp_path: Path, capsys: Capture) -> None:
    place = ["--panel", str(files.panel), "--sectors", str(files.sectors), "--workspace", str(tmp_path)]
    assert run_command(["factor", "score", "rank(mood * close / open)", "--gate", *place]) == 0
    said = told(capsys, verb, "latest", "--workspace", tmp_path)
    assert "is no campaign: a factor was judged by hand" in said


# Formulas.


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("rank(clse)", ["clse", "close"]),
        ("ts_maen(close, 5)", ["ts_maen", "ts_mean"]),
        ("rank(close", ["^"]),
        ("close + volume", ["price", "volume"]),
        ("delay(close, -1)", ["delay"]),
        ("rank(md)", ["mood"]),
    ],
)
def test_a_formula_with_a_mistake(
    formula: str, parts: list[str], files: Files, tmp_path: Path, capsys: Capture
) -> None:
    said = told(capsys, "factor", "score", formula, "--panel", files.panel, "--workspace", tmp_path)
    assert all(part in said for part in parts), said
    assert untouched(tmp_path)


# Panels.


def doubled(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame.iloc[:4], frame.iloc[3:]])


def cell(column: str, value: Any) -> Change:
    def changed(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.astype({column: object})
        frame.loc[frame.index[5], column] = value
        return frame

    return changed


BAD: dict[str, tuple[str, Change, list[str]]] = {
    "duplicates": (".csv", doubled, ["row 5", "date, symbol", "is there twice, first in row 4"]),
    "a negative price": (".csv", cell("close", -3.5), ["row 6, close", "-3.5 is not a positive price"]),
    "high below low": (".csv", cell("high", 0.01), ["row 6, high", "0.01 is below the low"]),
    "zoned dates": (".csv", lambda f: f.assign(date=f["date"].astype(str) + "T05:00:00Z"), ["row 1, date", "is zoned"]),
    "a zoned column": (
        ".parquet",
        lambda f: f.assign(date=f["date"].dt.tz_localize("UTC") + pd.Timedelta(hours=5)),
        ["date", "zoned (UTC)"],
    ),
    "NaN as text": (".csv", cell("volume", "NaN"), ["row 6, volume", "'NaN'", "leave the cell empty"]),
    "a word": (".csv", cell("open", "n.a."), ["row 6, open", "'n.a.' is not a number"]),
    "numbers for dates": (
        ".parquet",
        lambda f: f.assign(date=range(len(f))),
        ["date: 1 is a number, not a date", "dates: excel"],
    ),
    "numbers for symbols": (".parquet", lambda f: f.assign(symbol=1), ["symbol: the column holds int64, not text"]),
    "one symbol": (".csv", lambda f: f[f["symbol"] == f["symbol"].iloc[0]], ["is the only symbol", "at least two"]),
    "no rows": (".csv", lambda f: f.iloc[:0], ["the file has no rows"]),
    "no volume": (
        ".csv",
        lambda f: f.rename(columns={"volume": "hands"}),
        ["volume: the column is missing"],
    ),
    "a wrong day": (".csv", lambda f: f.assign(date="2015-02-30"), ["'2015-02-30' is not a day of the calendar"]),
}


@pytest.fixture(scope="session")
def few(files: Files) -> pd.DataFrame:
    frame = pd.read_parquet(files.panel, columns=["date", "symbol", "open", "high", "low", "close", "volume"])
    return frame[frame["symbol"].isin(frame["symbol"].iloc[:5])].head(100).reset_index(drop=True)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_panel(name: str, few: pd.DataFrame, tmp_path: Path, capsys: Capture) -> None:
    suffix, change, parts = BAD[name]
    path = markets.write(change(few), tmp_path / f"bad{suffix}")
    said = told(capsys, "run", "--panel", path, "--workspace", tmp_path / "w")
    assert all(part in said for part in parts), said
    assert str(path) in said
    assert not (tmp_path / "w").exists()


def test_every_finding_is_told_at_once(few: pd.DataFrame, tmp_path: Path, capsys: Capture) -> None:
    frame = few
    for name in ("duplicates", "a negative price", "high below low", "NaN as text", "a word"):
        frame = BAD[name][1](frame)
    path = markets.write(frame, tmp_path / "bad.csv")
    said = told(capsys, "run", "--panel", path, "--workspace", tmp_path / "w")
    assert said.count("row 6") >= 4
    assert "row 5, date, symbol" in said
    run_command(["run", "--panel", str(path), "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {"row", "column", "message"} == set(findings[0])
    assert {finding["column"] for finding in findings} >= {"close", "high", "volume", "open", "date, symbol"}


@pytest.mark.parametrize(
    ("name", "body", "part"),
    [
        ("empty.csv", b"", "the file is empty"),
        ("empty.parquet", b"", "Parquet"),
        ("noise.parquet", b"PAR1no", "Parquet"),
    ],
)
def test_a_file_that_is_no_table(name: str, body: bytes, part: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).write_bytes(body)
    said = told(capsys, "run", "--panel", tmp_path / name, "--workspace", tmp_path / "w")
    assert part in said
    assert not (tmp_path / "w").exists()


def test_a_panel_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert "there is no such file" in told(capsys, "run", "--panel", tmp_path / "none.parquet")
    (tmp_path / "prices.ods").touch()
    assert "a Parquet or a CSV file" in told(capsys, "run", "--panel", tmp_path / "prices.ods")


def test_too_few_days_for_the_windows(few: pd.DataFrame, tmp_path: Path, capsys: Capture) -> None:
    path = markets.write(few, tmp_path / "short.csv")
    said = told(capsys, "run", "--panel", path, "--workspace", tmp_path / "w")
    assert "too few for its windows: search" in said
    assert "(needs 120)" in said
    assert "Give a longer panel" in said
    assert untouched(tmp_path / "w")


@pytest.mark.parametrize("verb", [["run"], ["factor", "score", "rank(close)"]])
def test_dates_after_the_as_of_date(verb: list[str], files: Files, tmp_path: Path, capsys: Capture) -> None:
    said = told(capsys, *verb, "--panel", files.panel, "--as-of", "2012-01-31", "--workspace", tmp_path / "w")
    assert "is after the as-of date, 2012-01-31" in said
    assert "more rows like these" in said
    assert not (tmp_path / "w").exists()


# The workspace.


def test_a_file_in_place_of_the_workspace(files: Files, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "w").write_text("mine")
    said = told(capsys, "run", files.campaign, "--workspace", tmp_path / "w")
    assert f"{tmp_path / 'w'} is not in a folder: a file is in the way" in said
    assert "--workspace" in said
    assert (tmp_path / "w").read_text() == "mine"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked"
    folder.mkdir()
    if os.geteuid() == 0:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(folder)], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("root may write anywhere here, and no read-only file system can be mounted")
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
    else:
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)


@pytest.mark.parametrize("deeper", ["", "new"])
def test_a_read_only_workspace(deeper: str, files: Files, read_only: Path, capsys: Capture) -> None:
    said = told(capsys, "run", files.campaign, "--workspace", read_only / deeper)
    assert "cannot write to" in said
    assert "Make the folder writable, or choose another one with --workspace." in said
    assert not list(read_only.iterdir())


FULL = OSError(errno.ENOSPC, "No space left on device")


ACCEPTING = ("--set", "evidence.level=0.4", "--seed", "1")
"""A search that finds something to combine."""


def full(*_arguments: Any, **_options: Any) -> Any:
    raise FULL


WRITES: dict[str, tuple[Any, str]] = {
    "an object": (os, "fsync"),
    "curves": (campaign, "write_json"),
    "the combination": (pd.DataFrame, "to_parquet"),
    "the report": (campaign.Campaign, "_finish"),
}
"""Places in the order in which a campaign comes to them."""


def test_a_disk_that_fills_up_at_each_place_in_turn(
    files: Files, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    run = ["run", str(files.campaign), *TINY, *ACCEPTING, "--workspace"]
    resume = ["resume", "latest", "--workspace"]
    workspace = tmp_path / "w"
    for place, broken in WRITES.items():
        command = run if place == "an object" else resume
        with monkeypatch.context() as filled:
            filled.setattr(*broken, full)
            assert run_command([*command, str(workspace)]) == 2
            errors = capsys.readouterr().err
            if command is run:  # how a program is told hangs on no place
                assert run_command([*run, str(tmp_path / "object"), "--json"]) == 2
                assert "no space" in json.loads(capsys.readouterr().out)["message"].lower()
        assert "no space" in errors.lower(), place
        assert "Traceback" not in errors, place
        assert "Free some space" in errors or "free some space" in errors, place
        assert "resume" in errors, place
    assert run_command([*resume, str(workspace)]) == 0
    assert not [path for path in workspace.rglob("*") if ".draft-" in path.name or "unfinished" in path.name]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small disk can be mounted by root only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("free_kb", [0, 100, 400])
def test_a_disk_that_is_really_full(free_kb: int, files: Files, small_disk: Path, capsys: Capture) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes((1024 - free_kb - 4) * 1024))
    place = ["--workspace", str(small_disk / "w")]
    said = told(capsys, "run", files.campaign, *place, *TINY)
    assert "space" in said
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    assert run_command(["run", str(files.campaign), *place, *TINY]) == 0


def listening() -> None:
    """Let a child hear Control-C although we may run in the background, where a shell makes it deaf."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def waiting(files: Files, workspace: Path) -> subprocess.Popen[str]:
    """Start a campaign that is under way when this returns."""
    options = [*TINY, "--set", "agents.rounds=50", "--set", "budget.evaluations=5000"]
    line = [sys.executable, "-m", "alphaloom", "run", str(files.campaign), "--workspace", str(workspace), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".root")}
    process = subprocess.Popen(
        line,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listening,  # noqa: PLW1509 - no thread of ours runs here
    )
    for _ in range(3000):
        if list(workspace.glob("runs/*/checkpoints.sqlite")):
            return process
        time.sleep(0.1)
    process.kill()
    raise AssertionError(process.communicate()[1])


def test_a_second_process_and_then_control_c(files: Files, tmp_path: Path, capsys: Capture) -> None:
    first = waiting(files, tmp_path)
    try:
        said = told(capsys, "resume", "latest", "--workspace", tmp_path, code=1)
        assert f"process {first.pid} is working on run" in said
        assert "Wait for it to end or stop it" in said
    finally:
        first.send_signal(signal.SIGINT)
    out, errors = first.communicate(timeout=300)
    assert first.returncode == 130, errors
    assert f"interrupted; resume with: alphaloom resume latest --workspace {tmp_path}" in errors
    assert "Traceback" not in out + errors


def test_control_c_tells_a_program_too(files: Files, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    def pressed(*_arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "close", pressed)
    assert run_command(["run", str(files.campaign), "--workspace", str(tmp_path), "--json", *TINY]) == 130
    record = json.loads(capsys.readouterr().out)
    assert set(record) == ERROR
    assert record["code"] == "interrupted"
    assert record["hint"] == f"resume with: alphaloom resume latest --workspace {tmp_path}"


def test_control_c_says_nothing_of_python(files: Files, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    """A call not yet awaited, and a thread that answers too late, are dropped without a word on the terminal."""

    async def called() -> None:
        """Stand for the call."""

    def answered() -> None:
        raise RuntimeError("Event loop is closed")

    async def pressed(*_arguments: Any) -> str:
        call = called()
        del call
        thread = threading.Thread(target=answered)
        thread.start()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign.Campaign, "_research", pressed)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert run_command(["run", str(files.campaign), "--workspace", str(tmp_path), *TINY]) == 130
    assert not [warning for warning in heard if "never awaited" in str(warning.message)]
    errors = capsys.readouterr().err
    assert "interrupted; resume with" in errors
    assert "Traceback" not in errors


def test_a_reader_that_has_gone(files: Files, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "alphaloom", "factor", "score", "rank(mood)"]
    line = shlex.join([*command, "--panel", str(files.panel), "--workspace", str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".root")}
    script = f"set -o pipefail; {line} | true"
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1)
    assert done.stderr == ""


# A missing capability.


def test_without_a_sandbox_a_campaign_of_code_says_so_before_any_work(
    files: Files, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    def lacking(_settings: object) -> Any:
        raise SandboxUnavailable("landlock is missing", field="landlock", hint="boot another kernel")

    monkeypatch.setattr("alphaloom.evidence.values.sandbox_settings.open_sandbox", lacking)
    python = ("--set", "agents.python=true")
    said = told(capsys, "run", files.campaign, "--workspace", tmp_path, *TINY, *python, code=3)
    assert "landlock is missing" in said
    assert untouched(tmp_path)


def test_without_vectorbt_the_report_says_how_to_get_it(
    files: Files, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    find = builtins.__import__

    def lacking(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "vectorbt":
            raise ModuleNotFoundError("No module named 'vectorbt'", name="vectorbt")
        return find(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", lacking)
    options = [part for text in markets.CLOSING for part in ("--set", text)]
    assert run_command(["run", str(files.campaign), "--workspace", str(tmp_path), "--json", *options]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["accepted"]
    assert record["book"]["unavailable"] == "the book backtest needs vectorbt, which is not installed"
    assert record["book"]["hint"] == install_hint("vectorbt")
    page = Path(record["report"]).read_text()
    assert "the book backtest needs vectorbt, which is not installed" in page
    assert "pip install" in page
