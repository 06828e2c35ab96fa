"""The command that looks into prices says what is wrong in words, and all of it in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from alphaloom.desk.cli.main import run_command
from alphaloom.market import Panel, SyntheticConfig, simulate

Capture = pytest.CaptureFixture[str]


def saved(folder: Path, panel: Panel, names: list[int] | None = None) -> Path:
    """Write the universe's cells of a panel as a tidy file, perhaps of some names only."""
    kept = np.zeros(panel.universe.shape, np.bool_)
    kept[:, names if names is not None else slice(None)] = True
    day, name = np.nonzero(panel.universe & kept)
    columns = {key: values[day, name] for key, values in panel.fields.items() if key != "returns"}
    table = {"date": panel.dates[day], "symbol": [panel.symbols[i] for i in name], **columns}
    pa_parquet.write_table(pa.table(table), folder / "prices.parquet")
    return folder / "prices.parquet"


@pytest.fixture(scope="module")
def panel() -> Panel:
    return simulate(SyntheticConfig(seed=2, days=300, names=80)).panel


def test_a_clean_file_has_no_finding(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    assert run_command(["data", "audit", str(saved(tmp_path, panel)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"] == []
    assert (told["days"], told["names"]) == (300, 80)


def test_findings_say_what_where_why_and_what_to_do(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    file = saved(tmp_path, panel, np.flatnonzero(panel.universe[-1]).tolist())
    assert run_command(["data", "audit", str(file)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 suspicion; nothing was changed" in text
    assert "survivorship: all" in text
    assert "why it matters names that vanished are missing" in text
    assert "what to do use a panel with the names that were there each day" in text
    assert run_command(["data", "audit", str(file), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["trap"] == "survivorship"
    assert found["figures"]["left"] == 0


def test_a_derivation_that_is_not_known_is_bad_input(tmp_path: Path, panel: Panel, capsys: Capture) -> None:
    assert run_command(["data", "audit", str(saved(tmp_path, panel)), "--derive", "vwap=mean"]) == 2
    assert "this derivation is not known" in capsys.readouterr().err
