"""A file of formulas is scored into one file of sheets, goes on where it stopped, and says when it is complete."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from alphaloom.desk.cli.factor import batch
from alphaloom.desk.cli.factor.formula_file import open_formula_list
from alphaloom.desk.cli.main import run_command
from alphaloom.desk.errors import DeskError
from alphaloom.evaluation.batches import SheetTable
from alphaloom.factors import sample
from alphaloom.sandbox.cluster import list_descendants

LINES = "# mine\nfirst: rank(close)\n\nts_std(returns, 20) # a comment\nbogus(close)\n"
ROWS = [("rank(close)", "first"), ("ts_std(returns, 20)", ""), ("bogus(close)", "")]


def read(file: Path | str) -> list[tuple[str, str]]:
    with open_formula_list(str(file)) as formulas:
        rows = [(row.text, row.name) for row in formulas]
        assert formulas.count == len(rows)
    return rows


def test_lines_csv_and_parquet_hold_the_same_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"Name": ["first", None, None], "x": [1, 2, 3], "Formula": [text for text, _ in ROWS]})
    (tmp_path / "f.txt").write_text(LINES, encoding="utf-8-sig")
    frame.to_csv(tmp_path / "f.csv", index=False)
    frame.to_parquet(tmp_path / "f.parquet", index=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES.encode())))
    assert [read(tmp_path / name) for name in ("f.txt", "f.csv", "f.parquet")] == [ROWS] * 3
    assert read("-") == ROWS


def test_numbers_before_every_line_are_names(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("1 rank(close)\n2. rank(open)\n")
    assert read(tmp_path / "f.txt") == [("rank(close)", "1"), ("rank(open)", "2")]


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("f.txt", b"# nothing\n", "no formula"),
        ("f.txt", b"rank(close)\n\xff\xfe\n", "cannot be read"),
        ("f.csv", b"text,name\nrank(close),a\n", "no column of formulas"),
        ("f.parquet", b"rank(close)\n", "cannot be read"),
    ],
)
def test_a_file_that_holds_no_formulas_is_refused(tmp_path: Path, name: str, body: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(body)
    with pytest.raises(DeskError, match=words):
        read(tmp_path / name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with a campaign file and 40 formulas of which two cannot be scored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("market:\n  synthetic: {days: 500, names: 50}\n")
    rng = np.random.default_rng(3)
    formulas = [sample(rng).text for _ in range(38)]
    (tmp_path / "f.txt").write_text("\n".join([*formulas[:20], "rank(", *formulas[20:], "bogus(close)"]))
    return tmp_path


def score(*options: str) -> int:
    return run_command(["factor", "score", "--file", "f.txt", "--campaign", "c.yaml", "--workspace", "w", *options])


@pytest.mark.integration
def test_a_scoring_that_was_interrupted_goes_on_and_leaves_the_same_bytes(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert score("--out", "whole.parquet") == 0
    assert "40 formulas, 2 with an error" in capsys.readouterr().out
    fill, filled = SheetTable.fill, list[Any]()

    def interrupt(self: SheetTable, *arguments: Any) -> dict[str, Any]:
        filled.append(arguments)
        if len(filled) in (8, 30):
            raise KeyboardInterrupt
        return fill(self, *arguments)

    monkeypatch.setattr(SheetTable, "fill", interrupt)
    monkeypatch.setattr(batch, "PART_ROWS", 5)
    assert [score(), score()] == [130, 130]
    assert "interrupted after 7 of 40 formulas" in (told := capsys.readouterr().err)
    assert "going on after 7 of 40 formulas" in told
    assert not (folder / "f.sheets.parquet").exists()
    assert score("--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["out"], facts["errors"], facts["already"]) == ("f.sheets.parquet", 2, False)
    assert len(filled) == 40 + 2  # no row was computed twice but those that were cut short
    assert (folder / "f.sheets.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    errors = pq.read_table(folder / "f.sheets.parquet")["error"].to_pylist()
    assert [place for place, error in enumerate(errors) if error] == [20, 39]


@pytest.mark.integration
def test_a_finished_file_is_not_scored_again_and_no_other_is_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert score() == 0
    monkeypatch.setattr(SheetTable, "fill", None)
    assert score() == 0
    assert "It is complete" in capsys.readouterr().out
    (folder / "f.txt").write_text("rank(open)\n")
    assert score() == 2
    assert "--out FILE.parquet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["rank(close)", "--file", "f.txt"], "EXPR goes with one factor"),
        (["--file", "f.txt", "--gate"], "--gate goes with one factor"),
        (["--out", "x.parquet", "rank(close)"], "--out goes with --file"),
        ([], "no formula was given"),
        (["--file", "-"], "--out"),
        (["--file", "nothing.txt"], "nothing.txt"),
        (["--file", "nothing.txt", "--out", "no/such.parquet"], "its folder does not exist"),
    ],
)
def test_options_that_do_not_go_together_are_bad_input(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["factor", "score", *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.integration
def test_workers_of_a_cluster_leave_the_same_bytes_though_one_dies(folder: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: make ray")
    rng = np.random.default_rng(4)
    (folder / "f.txt").write_text("\n".join(sample(rng).text for _ in range(600)))
    assert score("--out", "here.parquet") == 0
    over, killed = threading.Event(), list[int]()

    def kill() -> None:
        while not killed and not over.wait(0.1):
            workers = [one for one in list_descendants(os.getpid()) if is_worker(one)]
            if len(workers) == 2 and not over.wait(2.0):
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert score("--out", "there.parquet", "--executor", "ray", "--workspace", "other") == 0
    over.set()
    killer.join()
    assert killed
    assert (folder / "there.parquet").read_bytes() == (folder / "here.parquet").read_bytes()


def is_worker(process: int) -> bool:
    try:
        return "ray::BatchStation" in Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return False
