"""What a person reads when the form of a formula is wrong: place, reason, remedy; never the parser's own words."""

from __future__ import annotations

import pytest

from alphaloom.factors import OPERATORS, ParseError, parse
from alphaloom.factors.language.reader import FOREIGN_SIGN_HINTS

LESSONS = {
    "close && open": (6, "'&&' is not part of the language", "(close > open) & (returns > 0)"),
    "close || open": (6, "'||' is not part of the language", "(close > open) | (returns > 0)"),
    "close > = open": (8, "'=' only names a keyword of a call", "The sign >= has no space in it."),
    "close = open": (6, "'=' only names a keyword of a call", "=="),
    "close.shift(1)": (5, "'.' is not part of the language", "delay(close, 1)"),
    "close % 2": (6, "'%' is not part of the language", "There is no remainder operator."),
    "close \N{MINUS SIGN} open": (6, "is not part of the language", "Write a plain minus: -returns."),
    "rank\N{FULLWIDTH LEFT PARENTHESIS}close": (4, "is not part of the language", "plain parentheses"),
    "\N{LATIN SMALL LETTER E WITH ACUTE}": (0, "is not part of the language", "rank(ts_mean(returns, 20))"),
    "'close'": (0, "is not part of the language", "without quotes"),
    "rank(close,)": (11, "a value is missing after ',', before ')'", "Take the comma away"),
    "ts_corr(close,": (14, "ends after ','", OPERATORS["ts_corr"].example),
    "ts_mean(, 5)": (8, "a value is missing after '(', before ','", OPERATORS["ts_mean"].example),
    "ts_mean(close 5)": (14, "a comma or an operator is missing between 'close' and '5'", "commas between them"),
    "ts_mean close 5": (8, "an operator is missing between 'ts_mean' and 'close'", OPERATORS["ts_mean"].example),
    "ts_mean(close, 5d)": (16, "an operator is missing between '5' and 'd'", "a window counts rows: 5."),
    "close ==": (8, "ends after '=='", "close == high"),
    "returns > 0 and": (15, "ends after 'and'", OPERATORS["and"].example),
    "(close + rank(open": (18, "2 closing ')' are missing", "'rank(' at column 14 is still open."),
    "rank(close))": (11, "this ')' closes nothing", "Take it away"),
    "close, open": (5, "a comma stands outside of any call", "max(close, open)"),
    "mean(close, 5)": (0, "unknown operator 'mean'", OPERATORS["ts_mean"].signature),
    "qqq(close)": (0, "unknown operator 'qqq'", "alphaloom factor operators"),
}


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("text", LESSONS)
def test_a_lesson_has_place_reason_and_remedy(text: str) -> None:
    at, reason, remedy = LESSONS[text]
    error = refused(text)
    assert error.at == at
    assert reason in error.message
    assert remedy in error.hint


@pytest.mark.parametrize("sign", FOREIGN_SIGN_HINTS)
def test_a_sign_of_another_language_is_answered_by_ours(sign: str) -> None:
    error = refused(f"close {sign} open")
    assert (error.at, error.hint) == (6, FOREIGN_SIGN_HINTS[sign])


@pytest.mark.parametrize("text", [text for text in LESSONS if text])
def test_no_word_of_the_parser_library_comes_through(text: str) -> None:
    said = str(refused(text))
    assert not [word for word in ("Token", "NAME", "$END", "Expected", "lark", "RPAR") if word in said]


def test_all_mistakes_of_a_formula_come_at_once_and_by_place() -> None:
    error = refused("rank(clos) + ts_meen(opn, 5) * ts_std(close, 0) + group_rank(returns, secto)")
    found = [(mistake.at, mistake.message) for mistake in error.mistakes]
    assert found == [
        (5, "unknown field 'clos'"),
        (13, "unknown operator 'ts_meen'"),
        (45, "window of ts_std cannot be 0"),
        (70, "group_rank needs a grouping here, not 'secto'"),
    ]
    assert error.record()["errors"] == [mistake.lesson() for mistake in error.mistakes]


def test_an_error_without_a_formula_has_no_caret() -> None:
    error = refused("  ")
    assert error.caret() == ""
    assert "Example: " in str(error)
