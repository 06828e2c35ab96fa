"""The commands on formulas: what a person sees for each good and each bad input, and what a program gets."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alphaloom.desk.cli.main import run_command
from alphaloom.factors import OPERATORS, parse
from alphaloom.factors.dialects import DIALECT_NAMES

Capture = pytest.CaptureFixture[str]

FILE = """\
# three ideas
alpha1: rank(ts_std(returns, 30)) * -1
Alpha#2 = rank(clos) + ts_meen(opn, 5)   # two mistakes
\tclose + volume

-rank(ts_std(returns, 30))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of formulas, two of them bad."""
    path = tmp_path / "alphas.txt"
    path.write_text(FILE)
    return path


def as_json(capsys: Capture) -> dict[str, Any]:
    """Return the one object that was printed."""
    said = capsys.readouterr()
    assert said.err == ""
    found: dict[str, Any] = json.loads(said.out)
    return found


def test_check_says_what_a_formula_is(capsys: Capture) -> None:
    assert run_command(["factor", "check", "rank(ts_std(returns, 30)) * -1"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "rank(ts_std(returns, 30)) * -1",
        "canonical -rank(ts_std(returns, 30))",
        f"id {parse('-rank(ts_std(returns, 30))').id}",
        "unit rank",
        "reads the rows from -30 to 0, today being 0; 30 rows of warm-up",
        "size 5 nodes",
    ]


def test_check_with_json_is_one_flat_object(capsys: Capture) -> None:
    assert run_command(["factor", "check", "close / open", "--json"]) == 0
    facts = as_json(capsys)
    assert {"ok", "canonical", "id", "type", "interval", "warmup", "size", "errors", "warnings"} <= set(facts)
    assert (facts["type"], facts["interval"]) == ("ratio", [0, 0])
    assert run_command(["factor", "check", "rank(clos)", "--json"]) == 2
    (mistake,) = as_json(capsys)["errors"]
    assert (mistake["at"], mistake["message"]) == (5, "unknown field 'clos'")


def test_every_mistake_of_a_file_is_shown_with_its_place_and_a_caret(file: Path, capsys: Capture) -> None:
    assert run_command(["factor", "check", "--file", str(file)]) == 2
    output = capsys.readouterr().out
    lesson = OPERATORS["ts_mean"]
    assert output.startswith(
        f"{file}:3:16: unknown field 'clos'\n"
        "    rank(clos) + ts_meen(opn, 5)\n"
        "         ^\n"
        "    Did you mean close? Fields: amount, cap, close, close_raw, high, low, open, returns, volume, vwap.\n"
        f"{file}:3:24: unknown operator 'ts_meen'\n"
        "    rank(clos) + ts_meen(opn, 5)\n"
        "                 ^\n"
        f"    Did you mean ts_mean? Write {lesson.signature}, for example {lesson.example}.\n"
        f"{file}:4:10: close is in units of price and volume is in units of volume: they cannot be added\n"
    )
    assert output.splitlines()[-2:] == [
        f"{file}:6: warning: the same factor as alpha1 ({file}:2)",
        "2 of 4 formulas can be used, 1 with warnings; 2 refused, with 3 mistakes.",
    ]


def test_a_file_with_json_is_one_object_that_counts(file: Path, capsys: Capture) -> None:
    assert run_command(["factor", "check", "--file", str(file), "--json"]) == 2
    found = as_json(capsys)
    assert (found["ok"], found["count"], found["refused"]) == (False, 4, 2)
    rows = [(row["name"], row["line"], row["column"], row["ok"]) for row in found["formulas"]]
    assert rows == [("alpha1", 2, 9, True), ("Alpha#2", 3, 11, False), ("", 4, 2, False), ("", 6, 1, True)]


@pytest.mark.parametrize(
    ("line", "name", "text"),
    [
        ("close == open", "", "close == open"),
        ("a = close == open", "a", "close == open"),
        ("a-1.b: ts_std(close, 5, ddof=0)", "a-1.b", "ts_std(close, 5, ddof=0)"),
        ("\N{BYTE ORDER MARK}mine: close\r", "mine", "close"),
        ("ts_std(close, 5, ddof=0) # why", "", "ts_std(close, 5, ddof=0)"),
    ],
)
def test_a_line_may_have_a_name_and_a_comment(line: str, name: str, text: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "f").write_text(line + "\n", encoding="utf-8")
    run_command(["factor", "check", "--file", str(tmp_path / "f"), "--json"])
    (row,) = as_json(capsys)["formulas"]
    assert (row["name"], row["text"], row["errors"]) == (name, text, [])


def test_numbers_are_names_only_where_every_line_has_one(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "f").write_text("1 (close)\n2. rank(close)\n")
    assert run_command(["factor", "check", "--file", str(tmp_path / "f"), "--json"]) == 0
    assert [row["name"] for row in as_json(capsys)["formulas"]] == ["1", "2"]
    (tmp_path / "f").write_text("2 close\nrank(close)\n")
    assert run_command(["factor", "check", "--file", str(tmp_path / "f")]) == 2
    assert "f:1:3: an operator is missing between '2' and 'close'" in capsys.readouterr().out


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(b"close\nclos\n")))
    assert run_command(["factor", "check", "--file", "-"]) == 2
    assert "stdin:2:1: unknown field 'clos'" in capsys.readouterr().out


def test_several_formulas_are_counted(capsys: Capture) -> None:
    assert run_command(["factor", "check", "close", "rank(close", "open"]) == 2
    output = capsys.readouterr().out
    assert "formula 2, column 11: a closing ')' is missing at the end" in output
    assert output.endswith("2 of 3 formulas can be used; 1 refused, with 1 mistake.\n")


@pytest.mark.parametrize("text", ["-returns", "-high", "-rank(high)", "-0.5 * close", "--close + open", "-h * high"])
@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_formula_may_begin_with_a_minus(text: str, command: str, capsys: Capture) -> None:
    code = run_command(["factor", command, text, "--fields", "h", "--json"])
    assert code == 0
    assert as_json(capsys)["text"] == text


@pytest.mark.parametrize("command", ["check", "translate", "explain", "operators", "score"])
def test_help_is_still_help(command: str, capsys: Capture) -> None:
    assert run_command(["factor", command, "-h"]) == 0
    assert "Usage: alphaloom factor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check"], "no formula was given"),
        (
            ["check", "close", "--dialect", "qlb"],
            "Did you mean qlib? Dialects: alphaagent, alphagen, alphaloom, factorminer",
        ),
        (["check", "close", "--dialekt", "qlib"], "No such option: --dialekt"),
        (["check", "close", "--fields", "my mood"], "'my mood' cannot be named in a formula"),
        (["check", "--file", "nowhere.txt"], "No such file or directory: nowhere.txt"),
        (["check", "--file", "."], "A file was expected there"),
        (["check", "--file", "empty.txt"], "there is no formula in empty.txt"),
        (["check", "--file", "bytes.txt"], "bytes.txt is not text in UTF-8: line 2 has other bytes"),
        (["translate", "close"], "--from and --to are both alphaloom"),
        (["translate", "close", "--from", "wq"], "unknown dialect 'wq'"),
        (["translate", "close", "--to", "worldqant"], "Did you mean worldquant?"),
        (["explain"], "Missing argument 'EXPR'"),
        (["explain", "rank(clos)"], "rank(clos)\n     ^\n"),
        (["explain", "rank(clos) + opn"], "error: unknown field 'opn'\nrank(clos) + opn\n             ^\n"),
        (["explain", "Ref($close, -1)", "--dialect", "qlib"], "would read 1 day into the future"),
        (["explain", ""], "the formula is empty"),
        (["operators", "ts_men"], "Did you mean ts_mean?"),
        (["operators", "--family", "tme"], "the families are elementwise, logic, time series, cross-section"),
    ],
)
def test_a_bad_input_is_told_in_words(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text("# nothing yet\n\n")
    Path("bytes.txt").write_bytes(b"close\n\xff\xfe\n")
    assert run_command(["factor", *arguments]) == 2
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""
    assert "Traceback" not in output.err


def test_every_mistake_of_an_explained_formula_is_in_its_json(capsys: Capture) -> None:
    assert run_command(["factor", "explain", "rank(clos) + opn", "--json"]) == 2
    assert [error["at"] for error in as_json(capsys)["errors"]] == [5, 13]


def test_a_formula_of_another_language_is_recognised(capsys: Capture) -> None:
    assert run_command(["factor", "check", "Mean($close, 5)"]) == 2
    output = capsys.readouterr().out
    assert "Fields are written without $: close." in output
    assert "qlib: check it as that dialect." in output
    assert run_command(["factor", "check", "Mean($close, 5)", "--dialect", "qlib"]) == 0


def test_a_column_of_ones_own_is_named(capsys: Capture) -> None:
    assert run_command(["factor", "check", "group_rank(mood, country)"]) == 2
    assert "--fields" in capsys.readouterr().out
    assert run_command(["factor", "check", "group_rank(mood, country)", "--fields", "mood", "--groups", "country"]) == 0


def test_translate_prints_the_formula_alone_and_notes_beside_it(capsys: Capture) -> None:
    arguments = ["translate", "correlation(close, open, 5.5)", "--from", "worldquant"]
    assert run_command(["factor", *arguments]) == 0
    output = capsys.readouterr()
    assert output.out == "ts_corr(close, open, 5)\n"
    assert output.err == "note: the window 5.5 of correlation was floored to 5\n"
    assert run_command(["factor", *arguments, "--json"]) == 0
    assert as_json(capsys)["translation"] == "ts_corr(close, open, 5)"


def test_a_translated_file_can_be_checked(tmp_path: Path, capsys: Capture) -> None:
    file, mine = tmp_path / "theirs.txt", tmp_path / "mine.txt"
    file.write_text("Alpha#6: (-1 * correlation(open, volume, 10.5))\nbad: delay(close, -1)\n")
    assert run_command(["factor", "translate", "--file", str(file), "--from", "worldquant"]) == 1
    output = capsys.readouterr()
    assert f"{file}:2:19: delay with -1 would read 1 day into the future" in output.err
    assert "1 of 2 formulas can be carried over, 1 with warnings; 1 refused, with 1 mistake." in output.err
    mine.write_text(output.out)
    assert run_command(["factor", "check", "--file", str(mine)]) == 0
    assert "# Alpha#6: the window 10.5 of correlation was floored to 10" in output.out
    assert "# bad was refused: delay with -1 would read 1 day into the future" in output.out


def test_what_cannot_be_carried_over_is_refused_with_the_reason(capsys: Capture) -> None:
    assert run_command(["factor", "translate", "ts_kurt(close, 20)", "--to", "worldquant"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "WorldQuant 101 has nothing that means ts_kurt(close, 20)" in output.err


def test_explain_shows_a_card(capsys: Capture) -> None:
    assert run_command(["factor", "explain", "Mean($close, 5)", "--dialect", "qlib"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for fact in (
        "The 5-day mean of the close (min_periods 1). It is in units of price and needs 5 days.",
        "in alphaloom ts_mean(close, 5, min_periods=1)",
        "the rows from -4 to 0, today being 0; 4 rows of warm-up",
        "ns a cell on one core",
        "an estimate",
        "fields close: the close, in units of price",
        f"operators {OPERATORS['ts_mean'].signature}: {OPERATORS['ts_mean'].summary}",
    ):
        assert fact in text


def test_operators_are_listed_by_family_and_counted(capsys: Capture) -> None:
    assert run_command(["factor", "operators"]) == 0
    output = capsys.readouterr().out
    assert all(operator.signature in output for operator in OPERATORS.values())
    assert f"{len(OPERATORS)} operators." in output
    assert run_command(["factor", "operators", "--family", "cross", "--json"]) == 0
    families = as_json(capsys)["families"]
    wanted = [name for name, operator in OPERATORS.items() if operator.family == "cross-section"]
    assert {family: [row["name"] for row in rows] for family, rows in families.items()} == {"cross-section": wanted}


def test_one_operator_is_documented_whole(capsys: Capture) -> None:
    assert run_command(["factor", "operators", "rank"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "ties: one of average, min, max, first; average by default" in text
    assert "missing values Names without a value today stay NaN and do not count." in text
    assert f"example {OPERATORS['rank'].example}" in text
    assert "worldquant: rank(x) is rank(x)" in text


@given(
    st.sampled_from(["check", "explain", "translate"]),
    st.text(max_size=12) | st.text(alphabet="closeRefMnTSABtsrank_d$(),.+-*/<>=&|?:~!^ 0123456789", max_size=40),
    st.sampled_from(DIALECT_NAMES),
)
def test_no_text_whatever_brings_a_stack_trace(command: str, text: str, dialect: str) -> None:
    said, told = io.StringIO(), io.StringIO()
    language = ["--from", dialect, "--to", "qlib"] if command == "translate" else ["--dialect", dialect]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = run_command(["factor", command, *language, "--", text])
    assert code in (0, 1, 2)
    assert "internal error" not in told.getvalue()
    assert code == 0 or said.getvalue() or told.getvalue()


def test_a_formula_that_cannot_be_read_ends_every_command_alike(capsys: Capture) -> None:
    for command in (["check"], ["similar"], ["explain"], ["score"], ["translate", "--to", "qlib"]):
        assert run_command(["factor", *command, "rank(clos)", "--json"]) == 2, command
        assert "clos" in capsys.readouterr().out
