"""What holds for every dialect: what is written is read back the same, and nothing breaks the reader."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from alphaloom.factors import OPERATORS, Expression, Node, ParseError, parse, render, sample
from alphaloom.factors.dialects import DIALECT_NAMES, find_dialect, translate, write_foreign
from alphaloom.factors.dialects.exporter import ForeignFormula
from alphaloom.factors.dialects.importer import build_example, load_rules
from alphaloom.factors.dialects.rule import find_kind
from alphaloom.factors.language.types import judge_units
from alphaloom.factors.space.sampling import Grammar

FOREIGN = [name for name in DIALECT_NAMES if name != "alphaloom"]


@functools.cache
def sayable(dialect: str) -> tuple[str, ...]:
    """Return our operators whose example the dialect can say."""
    return tuple(name for name, known in OPERATORS.items() if attempt(parse(known.example).root, dialect))


def attempt(root: Node, dialect: str) -> ForeignFormula | None:
    """Write a formula, or return None where the dialect cannot say it."""
    refusal = None
    try:
        return write_foreign(root, dialect)
    except ParseError as error:
        refusal = error
    assert refusal.stage == "dialect"
    return None


def fixed_point(text: str, dialect: str) -> Expression:
    """Read, write and read again: the id stays."""
    read = parse(text, dialect=dialect)
    again = parse(write_foreign(read.root, dialect).text, dialect=dialect)
    assert again.id == read.id
    return read


@pytest.mark.parametrize("dialect", FOREIGN)
def test_a_dialect_can_say_a_good_part_of_the_language(dialect: str) -> None:
    said = sayable(dialect)
    assert len(said) >= 25
    assert {"add", "sub", "mul", "div", "ts_mean", "ts_std", "ts_corr", "delay", "abs"} <= set(said)


@pytest.mark.parametrize("dialect", FOREIGN)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=105579)  # AlphaAgent: 1,384 characters are written, and more than 2,000 are what they mean
def test_what_is_written_is_read_back_the_same(dialect: str, seed: int) -> None:
    """A drawn formula keeps its id where nothing is noted; what was read once keeps it for good."""
    grammar = Grammar(operators=sayable(dialect), groups=("sector", "industry"))
    drawn = sample(np.random.default_rng(seed), max_size=8, grammar=grammar)
    written = attempt(drawn.root, dialect)
    if written is None:
        return  # a word that the dialect lacks
    if refusal := mistake(written.text, dialect):
        assert re.search(r" has \d+ .*; \d+ are allowed", refusal.message)
        assert any(refusal.message in note for note in written.notes)
        return
    read = fixed_point(written.text, dialect)
    assert written.notes or read.id == drawn.id


@functools.cache
def words(dialect: str) -> list[str]:
    """Return what formulas of a dialect are made of, and what they are not."""
    known = find_dialect(dialect)
    operators = sorted({rule.foreign.text for rule in load_rules(dialect) if rule.foreign.kind == "call"})
    fields = [known.write_field(name) for name in ("close", "volume", "returns")]
    groups = [known.group_sign + name for name in ("sector", "subindustry", "moon")]
    marks = [
        "(",
        ")",
        "(",
        ")",
        ",",
        ",",
        "?",
        ":",
        "&&",
        "||",
        "&",
        "|",
        "!",
        "~",
        "^",
        "**",
        "<",
        "<=",
        "==",
        "!=",
        ">",
        "=",
        "+",
        "-",
        "*",
        "/",
        ".",
        "$",
        "@",
        "[",
        "]",
        "'",
        ";",
        "\n",
    ]
    numbers = ["0", "1", "5", "20", "2.5", "-3", "1e999", "1e-40", "0.1", "20d", "99999999999999999999"]
    return [*operators, *fields, *groups, *marks, *numbers, *fields, "", " ", "nan", "d", "x", "İ", "²", "٣", "\x00"]


def mistake(text: str, dialect: str) -> ParseError | None:
    try:
        parse(text, dialect=dialect)
    except ParseError as refusal:
        return refusal
    return None


def survives(text: str, dialect: str) -> None:
    refusal = mistake(text, dialect)
    assert refusal is None or (str(refusal) and 0 <= refusal.at <= len(text))


@pytest.mark.parametrize("dialect", FOREIGN)
@given(data=st.data())
def test_any_heap_of_words_is_read_or_refused(dialect: str, data: st.DataObject) -> None:
    survives("".join(data.draw(st.lists(st.sampled_from(words(dialect)), max_size=25))), dialect)


@pytest.mark.parametrize("dialect", FOREIGN)
@given(text=st.text(max_size=40))
def test_any_text_is_read_or_refused(dialect: str, text: str) -> None:
    survives(text, dialect)


@pytest.mark.parametrize("dialect", FOREIGN)
@given(data=st.data())
def test_any_call_of_its_words_is_read_or_refused(dialect: str, data: st.DataObject) -> None:
    """Words with arguments of all kinds: what is wrong with them is found in the dialect, not later."""
    known = find_dialect(dialect)
    rules = [rule for rule in load_rules(dialect) if rule.foreign.kind == "call" and not rule.foreign.infix]
    field = known.write_field("close")
    text = field
    for _ in range(data.draw(st.integers(1, 4))):
        rule = data.draw(st.sampled_from(rules))
        asked = [find_kind(arg.text) for arg in rule.foreign.args]
        args = [
            text if kind in ("x", "y", "z") else data.draw(st.sampled_from(["5", "0", "-1", "0.5", "1e9", field, text]))
            for kind in asked
        ]
        text = f"{rule.foreign.text}({', '.join(args)})"
    survives(text, dialect)


@given(seed=st.integers(0, 2**32 - 1))
def test_forgiving_units_are_the_units_where_nothing_is_to_forgive(seed: int) -> None:
    root = sample(np.random.default_rng(seed)).root
    assert not judge_units(root).mismatches


def test_nesting_without_end_is_refused_soon() -> None:
    survives("(" * 2000, "qlib")
    survives("RSI(" * 30 + "$close" + ")" * 30, "alphaagent")
    survives("-" * 1500 + "close", "worldquant")
    survives("close ? 1 : " * 150 + "close", "worldquant")
    survives("a?1:" * 499 + "1", "alphaagent")
    survives("close^" * 300 + "close", "worldquant")


def test_an_unknown_dialect_is_told() -> None:
    with pytest.raises(ParseError, match="unknown dialect 'wordquant'") as caught:
        parse("rank(close)", dialect="wordquant")
    assert "Did you mean worldquant?" in caught.value.hint


def test_between_any_two_languages() -> None:
    for source in FOREIGN:
        own = translate(find_dialect(source).example, source, "alphaloom")
        assert own.text == render(parse(find_dialect(source).example, dialect=source).root)
        for target in FOREIGN:
            written = translate("ts_mean(close, 20, min_periods=1) / close", "alphaloom", target)
            assert parse(translate(written.text, target, source).text, dialect=source).fields == {"close"}


@pytest.mark.parametrize("dialect", FOREIGN)
def test_every_lesson_shows_a_call_that_is_read(dialect: str) -> None:
    for rule in load_rules(dialect):
        general = all(find_kind(arg.text) for arg in rule.foreign.args)
        if rule.imports and rule.foreign.kind == "call" and general and not (rule.refusal or rule.foreign.infix):
            parse(build_example(rule, find_dialect(dialect)), dialect=dialect)


def test_a_dialect_has_the_names_that_people_call_it() -> None:
    assert find_dialect("QuantaAlpha") is find_dialect("alphaagent")
    assert find_dialect("Qlib") is find_dialect("qlib")
