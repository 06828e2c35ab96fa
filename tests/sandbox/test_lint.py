"""The first reading speaks plainly, and never against a legitimate factor."""

from pathlib import Path

import pytest

from alphaloom.factors.python import lint_code

from .panels import code, frames, snippets

GOOD = "def factor(panel):\n    return panel['close']\n"


@pytest.mark.parametrize("path", snippets("legitimate"), ids=lambda path: path.stem)
def test_legitimate_factors_pass(path: Path) -> None:
    assert lint_code(code(path, frames()), frames().names) == ()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("import os", "import"),
        ("from os import path", "import"),
        ("from . import x", "import"),
        ("import scipy.stats", "import"),
        ("from numpy import load as harmless", "file"),
        ("from pandas import read_csv", "file"),
        ("x = open('a')", "name"),
        ("x = eval('1')", "name"),
        ("x = exec", "name"),
        ("x = getattr(panel, 'a')", "name"),
        ("x = __builtins__", "name"),
        ("x = ().__class__", "attribute"),
        ("x = (y for y in ()).gi_frame", "attribute"),
        ("x = panel['close'].to_numpy().ctypes", "attribute"),
        ("x = pd.read_csv('a')", "file"),
        ("x = pd.io.common", "file"),
        ("read = np.load\nx = read('a')", "file"),
        ("m = np\nx = m.load('a')", "file"),
        ("x = np.memmap('a')", "file"),
        ("panel['close'].to_csv('a')", "file"),
        ("panel['close'].to_numpy().tofile('a')", "file"),
        ("x = pd.Timestamp.now()", "clock"),
        ("x = pd.Timestamp('today')", "clock"),
        ("import datetime\nx = datetime.date.today()", "clock"),
        ("import time", "import"),
        ("import random", "import"),
        ("x = np.random.rand(3)", "chance"),
        ("x = np.random.default_rng()", "chance"),
        ("x = np.random.default_rng(None)", "chance"),
        ("x = panel['close'].sample(n=3)", "chance"),
        ("x = panel['close'].shift(-1)", "future"),
        ("x = panel['close'].shift(periods=-1)", "future"),
        ("x = panel['close'].pct_change(-1)", "future"),
        ("x = panel['close'].bfill()", "future"),
        ("x = panel['close'].interpolate()", "future"),
        ("x = panel['close'].rolling(5, center=True).mean()", "future"),
        ("x = pd.merge_asof(a, b, on='k', direction='nearest')", "future"),
        ("x = panel['close'].query('@pd.x')", "name"),
        ("x = pd.eval('1')", "file"),
    ],
)
def test_what_will_not_work_is_named_with_its_line(line: str, rule: str) -> None:
    found = lint_code(GOOD + line)
    assert rule in {remark.rule for remark in found}
    assert {remark.line for remark in found} <= {3, 4}
    assert all(remark.message and remark.hint for remark in found)


@pytest.mark.parametrize(
    "line",
    [
        "x = panel['close'].shift(1)",
        "x = panel['close'].shift(-1, axis=1)",
        "x = panel['close'].bfill(axis=1)",
        "x = panel['close'].interpolate(method='ffill')",
        "x = np.random.default_rng(7).normal()",
        "np.random.seed(1)\nx = np.random.rand(3)",
        "x = panel['close'].sample(n=3, random_state=1)",
        "x = panel['close'].query('A > 3')",
        "x = np.roll(panel['close'], -1)",
        "x = np.diff(panel['close'].to_numpy(), axis=0)",
        "vars = 3\ninput = vars",
        "x = pd.to_datetime('2020-01-01')",
        "class A:\n    def __init__(self):\n        super().__init__()",
        "x = panel['close'].values.max()",
    ],
)
def test_what_is_fine_is_left_alone(line: str) -> None:
    assert lint_code(GOOD + line) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def factor(panel)\n    pass", "not Python"),
        ("x = 1", "there is no function factor"),
        ("def factor():\n    return 1", "one argument"),
        ("def factor(a, b):\n    return a", "one argument"),
        ("def factor(panel):\n    pass", "returns nothing"),
        ("async def factor(panel):\n    return 1", "async"),
        ("(" * 5000, "Python"),
        ("x = 1\0", "not Python: source code string cannot contain null bytes"),
        ("x = '\ud800'", "not Python: "),
    ],
)
def test_code_without_a_factor_is_told_first(text: str, said: str) -> None:
    first = lint_code(text)[0]
    assert said in first.message
    assert first.hint


def test_a_misspelt_column_is_guessed() -> None:
    [remark] = lint_code("def factor(panel):\n    return panel['volum']", ("close", "volume"))
    assert remark.rule == "column"
    assert "volume" in remark.hint
    asked = "def factor(panel):\n    return panel['cap'] if 'cap' in panel else panel['close']"
    assert lint_code(asked, ("close",)) == ()


def test_a_remark_names_line_and_hint() -> None:
    first, second = lint_code(GOOD + "import os\nimport sys")
    assert (first.line, second.line) == (3, 4)
    assert "numpy" in first.hint
