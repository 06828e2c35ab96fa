"""The lines of docs/how-to/use-the-combined-signal.md run on a file that the close writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from alphaloom.market import SyntheticConfig, simulate
from alphaloom.portfolio import write_combination

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-the-combined-signal.md"
SECTIONS = {
    (re.findall(r"^#+ (.+)$", text, re.MULTILINE) or [""])[0]: re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for text in re.split(r"(?=^#{1,2} )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
}


def run_lines(section: str, variables: dict[str, Any]) -> dict[str, Any]:
    exec(SECTIONS[section][0], variables)  # noqa: S102 - the page's own lines
    return variables


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the variables of the page's first lines, run in a folder with a run's file and prices."""
    panel = simulate(SyntheticConfig(seed=3, days=90, names=40, nothing=True), []).panel
    score = np.random.default_rng(1).uniform(-0.5, 0.5, panel.universe.shape).astype(np.float32)
    score[~panel.universe] = np.nan
    score[:5] = np.nan
    (tmp_path / "RUN").mkdir()
    write_combination(score, panel, tmp_path / "RUN" / "combination.parquet")
    days = pd.DatetimeIndex(panel.dates, name="date")
    opens = pd.DataFrame(panel.fields["open"], index=days, columns=pd.Index(panel.symbols, name="symbol"))
    prices = opens.melt(ignore_index=False, value_name="open").reset_index().dropna()
    prices.to_parquet(tmp_path / "prices.parquet")
    monkeypatch.chdir(tmp_path)
    return run_lines("Use the combined signal elsewhere", {})


def test_the_file_has_the_columns_that_the_page_names(names: dict[str, Any]) -> None:
    file = pd.read_parquet("RUN/combination.parquet")
    rows = re.findall(r"^\| `(\w+)` \| (\w+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [("date", "timestamp"), ("symbol", "string"), ("score", "float32")]
    assert list(file.columns) == [name for name, _ in rows]
    assert file["score"].dtype == np.float32
    assert file["date"].is_monotonic_increasing
    assert (file["date"] == file["date"].dt.normalize()).all()
    assert len(names["score"]) == 85
    np.testing.assert_allclose(names["weights"].abs().sum(axis=1), 1, rtol=1e-5)


def test_the_loop_runs_and_charges_what_is_traded(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run_lines("A loop of your own", names)
    weights, opens = names["weights"], names["opens"]
    gross = (weights * (opens.shift(-2) / opens.shift(-1) - 1)).sum(axis=1)
    traded = weights.diff().abs().sum(axis=1)
    traded.iloc[0] = 1.0
    np.testing.assert_allclose(names["earned"], (gross - 10e-4 * traded).iloc[:-2], atol=1e-8)
    assert np.isfinite(float(capsys.readouterr().out))


@pytest.mark.integration
def test_the_lines_for_vectorbt_run(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vectorbt")
    run_lines("vectorbt", names)
    assert np.isfinite(float(capsys.readouterr().out))
