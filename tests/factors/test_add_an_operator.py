"""One new file makes an operator: the example of CONTRIBUTING.md, put into a copy of the package and used there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("factors", "ledger", "market")

USE = """
import numpy as np
from alphaloom.factors import OPERATORS, explain, parse, sample
from alphaloom.factors.decoding import decoding_grammar
from alphaloom.factors.describe.handbook import render_page
from alphaloom.factors.space.sampling import Grammar
from tests.factors import test_kernels

operator = OPERATORS["ts_streak"]
assert operator.signature == "ts_streak(x, window, min_periods=window)"
assert "above zero" in operator.doc and operator.example in operator.doc

read = parse("rank(ts_streak(2 * returns, 20))")
assert read.canonical_text == "rank(ts_streak(returns, 20))"
assert read.warmup == 20
assert parse("ts_streak(returns, 5)").unit == "number"
assert explain("ts_streak(returns, 5)").startswith("For how many days running, of the last 5, returns was above zero.")

assert '"ts_streak"' in decoding_grammar(["close", "returns"])
assert "ts_streak(x, window, min_periods=window)" in render_page()
drawn = sample(np.random.default_rng(0), max_size=4, grammar=Grammar(operators=("ts_streak",)))
assert "ts_streak" in drawn.text

assert "ts_streak" in test_kernels.WINDOWED
test_kernels.test_operator_agrees_with_its_reference("ts_streak", test_kernels.batched(["ts_streak"]))
test_kernels.test_no_operator_reads_a_later_day("ts_streak")
test_kernels.test_a_constant_factor_does_what_the_operator_says("ts_streak", 4)
print("used")
"""


def example() -> str:
    """Return the file that CONTRIBUTING.md shows."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    match = re.search(r"## Add an operator\n.*?```python\n(.*?)```", text, re.DOTALL)
    assert match
    return match[1]


def test_one_file_of_thirty_lines_is_an_operator_everywhere(tmp_path: Path) -> None:
    assert 25 <= len(example().splitlines()) <= 40
    copy = tmp_path / "alphaloom"
    copy.mkdir()
    for path in ROOT.glob("*.py"):
        shutil.copy(path, copy)
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "factors", tmp_path / "tests" / "factors")
    (copy / "factors" / "operators" / "rolling" / "streak.py").write_text(example(), encoding="utf-8")
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("used\n", 0), done.stderr
