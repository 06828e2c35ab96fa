"""The id of a Python factor does not hang on how it is spelled, and different factors do not share one."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from alphaloom.factors import Engine, ParseError, parse
from alphaloom.factors.errors import FactorError
from alphaloom.market import SyntheticConfig, simulate

PLAIN = """
def factor(panel):
    close = panel["close"]
    mean = close.rolling(20).mean()
    return (mean * 2 + close.shift(1)) / close
"""
SAME = [
    '"""What it is."""\nimport numpy as np\nimport pandas as pd\n' + PLAIN,
    PLAIN.replace("close =", "price: pd.DataFrame =").replace("close.", "price.").replace("/ close", "/ price"),
    PLAIN.replace("panel", "p").replace("20", "4 * 5").replace("def factor(p)", "def factor(p: dict) -> object"),
    PLAIN.replace("mean * 2 + close.shift(1)", "close.shift(1) + 2 * mean"),
    PLAIN.replace("    return", '    unused = 3\n    if False:\n        mean = None\n    pass\n    "said"\n    return'),
    PLAIN + "    print('never')\n",
    PLAIN.replace("def factor", "def helper(x):\n    return x\n\ndef factor"),
]
OTHER = [
    PLAIN.replace("20", "21"),
    PLAIN.replace("20", "20.0"),
    PLAIN.replace("/ close", "- close"),
    PLAIN.replace("* 2", "** 2"),
    PLAIN.replace('"close"', '"open"'),
    PLAIN.replace("mean * 2 + close.shift(1)", "close.shift(1) - mean * 2"),
    PLAIN.replace("(mean * 2 + close.shift(1)) / close", "close / (mean * 2 + close.shift(1))"),
]


@pytest.mark.parametrize("text", SAME)
def test_spelling_changes_no_id(text: str) -> None:
    assert parse(text).id == parse(PLAIN).id
    assert parse(text).canonical_text == parse(PLAIN).canonical_text


@pytest.mark.parametrize("text", OTHER)
def test_another_factor_has_another_id(text: str) -> None:
    assert parse(text).id != parse(PLAIN).id


def test_lists_and_texts_are_not_sorted() -> None:
    one = 'def factor(panel):\n    a = [1]\n    b = [2]\n    return panel["close"].shift((a + b)[0])'
    assert parse(one).id != parse(one.replace("a + b", "b + a")).id


def test_code_that_finds_names_by_text_keeps_them() -> None:
    one = 'def factor(panel):\n    a = 1\n    b = 2\n    return panel["close"].shift(eval("a"))'
    other = one.replace("a = 1", "c = 1").replace("b = 2", "a = 2").replace("c = 1", "b = 1")
    assert parse(one).id != parse(other).id


NAMES = st.sampled_from(["a", "b", "volatility", "x9", "v0", "v1", "window", "np_", "close"])
NUMBERS = st.one_of(st.integers(1, 30), st.floats(0.1, 9, allow_nan=False).map(lambda x: round(x, 3)))


@st.composite
def codes(draw: st.DrawFn) -> str:
    """Draw straight code: a few variables, each of a step on those before it."""
    names, lines = ["panel['close']", "panel['volume']"], []
    for _ in range(draw(st.integers(1, 5))):
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        step = draw(st.sampled_from(["{0} + {1}", "{0} * {1} - {2}", "-{2} ** 2 * {0}", "{0}.shift({3})", "{0} > {1}",
                                     "np.maximum({0}, {2})", "(lambda y: y / {2})({0})",
                                     "({0} if {1} is None else {0})",
                                     "{0}.rolling(window={3}).mean()"]))  # fmt: skip  # a table
        name = draw(NAMES)
        lines.append(f"    {name} = " + step.format(one, other, draw(NUMBERS), draw(st.integers(1, 30))))
        names.append(name)
    return "\n".join(["def factor(panel):", *lines, f"    return {names[-1]}"])


@given(codes())
def test_a_normal_form_is_its_own(text: str) -> None:
    read = parse(text)
    again = parse(read.canonical_text)
    assert (again.id, again.canonical_text) == (read.id, read.canonical_text)
    assert again.core == read.core


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def other(panel):\n    return 1", "there is no function factor"),
        ("def factor(panel, more):\n    return panel", "exactly one argument"),
        ("def factor(panel):\n    return (", "line 2"),
        ("def factor(panel):\n    return 1", "reads no column"),
        ('def factor(panel):\n    return panel["clsoe"]', "no column 'clsoe'"),
        ("def factor(panel):\n    return " + "-" * 200 + 'panel["close"]', "too large, or nested"),
        ("def factor(panel):\n    return " + "(" * 300 + ")" * 300, "line 2"),
        ("def factor(panel):\n    return 0" + " " * 9000, "8000 are allowed"),
        ("def factor(panel):\n    return '\0'", "line 1: source code string cannot contain null bytes"),
    ],
)
def test_refusals_say_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.stage == "python"
    assert said in caught.value.message


BOMBS = [
    "    x = panel['close']\n" + "    x = x * x + x\n" * 60 + "    return x",
    "    x = panel['close']\n" + "    x = x.shift(1)\n" * 300 + "    return x",
    "    f = lambda n: f(n) + f(n)\n    return f(panel['close'])",
    "    x = 9 ** 9 ** 9 ** 9\n    return panel['close'] * x",
    "    x = [panel['close']]\n" + "    x = x + x\n" * 40 + "    return x",
    "    def g(x):\n        return [g(x) for _ in range(20)]\n    return g(panel['close'])",
    "    x = 'a' * 10 ** 9\n    return panel['close']",
    (
        "    for a in range(20):\n        for b in range(20):\n            for c in range(20):\n"
        "                for d in range(20):\n                    x = a\n    return panel['close']"
    ),
]


@pytest.mark.parametrize("body", BOMBS)
def test_reading_hostile_code_is_bounded(body: str) -> None:
    read = parse(f"def factor(panel):\n{body}")
    assert read.fields >= {"close"}
    assert read.size < 2000


def test_the_columns_are_exact_or_all() -> None:
    hidden = 'def factor(panel):\n    name = "".join(["vol", "ume"])\n    return panel[name] + panel["close"]'
    assert parse(hidden).fields > {"close", "volume", "open"}
    passed = "def f(p):\n    return p['close']\ndef factor(panel):\n    return f(panel) + panel.get('open')"
    assert parse(passed).fields == {"close", "open"}
    assert parse("def factor(panel):\n    return panel['close'].where(panel['universe'] > 0)").reads_members


def test_the_engine_computes_no_code() -> None:
    panel = simulate(SyntheticConfig(seed=1, days=60, names=20)).panel
    with pytest.raises(FactorError) as caught:
        Engine(panel).evaluate([PLAIN])
    assert caught.value.code == "not_a_formula"


@pytest.mark.parametrize(
    "number", ["1e400", "-1e999", "1" * 400, "-" + "1" * 400, "1" * 5000, "0x" + "f" * 1000, "1e400j", "9" * 310 + ".5"]
)
def test_a_number_that_no_double_holds_is_out_of_range_with_its_line(number: str) -> None:
    for text in (f"x = {number}", f"x = panel['close'].shift({number})", f"def g(a={number}): return a"):
        with pytest.raises(ParseError, match=r"line 2: .* is out of range") as caught:
            parse(f"def factor(panel):\n    {text}\n    return panel['close'] * 1")
        assert caught.value.stage == "python"
        assert len(caught.value.message) < 120, "the number is not repeated whole"


@pytest.mark.parametrize(
    "text",
    ["10 ** 10 ** 8", "1 << 10 ** 6", "2.0 ** 5000", "1e308 * 1e308", "10 ** 300 * 10 ** 300", "0.0 ** -1", "1 / 0",
     "len('\\ud800')", "len('\\x00')", "len(f'{f\"{1}\"}')", "len('a' * 10 ** 9)", "-" * 50 + "1"],
)  # fmt: skip  # a table
def test_arithmetic_on_numbers_is_read_and_never_done(text: str) -> None:
    assert parse(f"def factor(panel):\n    return panel['close'] * ({text})").code
