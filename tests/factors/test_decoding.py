"""Sentences are drawn from the exported text, not from the tables; each must be a formula that the campaign may use."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import pytest
from lark import Lark, LarkError

from alphaloom.factors import OPERATORS, FactorError, Node, Operator, ParseError, parse, walk
from alphaloom.factors.decoding import decoding_grammar
from alphaloom.factors.language import types as unit_rules
from alphaloom.factors.language.definitions import expand_tree
from alphaloom.factors.language.types import UnitMismatch
from alphaloom.factors.operators import fill_parameters

Rules = dict[str, list[list[str]]]

FEW, MANY = 200, 1_000
"""Sentences of each campaign in `make test`, and with the integration tests, which draw six times as many of the first:
11,000 together."""
GREED = (*[0.0] * 16, 0.5, 0.5, 0.5, 0.95)
"""How often the deepest alternatives are taken, sentence by sentence."""
LARGEST_TEXT = 200_000
LONGEST_ROW = 1_900
"""llguidance gives up where a row of its parser has more than 2,000 items."""


@dataclass(frozen=True)
class Campaign:
    fields: tuple[str, ...] = ("open", "high", "low", "close", "volume", "vwap", "returns", "amount", "cap")
    groups: tuple[str, ...] = ("sector", "industry")
    windows: tuple[int, ...] = (2, 3, 5, 10, 15, 20, 30, 40, 60)
    depth: int = 6
    operators: tuple[str, ...] | None = None

    def grammar(self, form: Any = "ebnf") -> str:
        """Return the grammar, made once for the operators that there are: some tests plant others."""
        return _grammar(self, form, tuple(OPERATORS))


@cache
def _grammar(campaign: Campaign, form: Any, _operators: tuple[str, ...]) -> str:
    return decoding_grammar(
        campaign.fields,
        campaign.groups,
        campaign.windows,
        depth=campaign.depth,
        form=form,
        operators=campaign.operators,
    )


STANDARD = Campaign()
CAMPAIGNS = {
    "standard": STANDARD,
    "one field": Campaign(("close",), (), (7,)),
    "own columns": Campaign(
        ("close", "sentiment", "a_rather_long_name_of_a_column_of_the_user"), ("country",), (5, 250)
    ),
    "adv, long windows": Campaign(("close", "volume", "adv20", "amount"), ("sector",), (1, 1000, 10_000), depth=9),
    "arithmetic, deep": Campaign(
        ("close", "open", "volume"), (), (5, 250), 10, ("add", "sub", "mul", "div", "power", "ts_sum", "ts_var", "max")
    ),
}


def read(text: str, arrow: str = "::=") -> Rules:
    """Read a grammar back: the alternatives of each name, as symbols."""
    rules: Rules = {}
    for line in text.splitlines():
        name, body = line.split(f"{arrow} ", 1)
        alternatives: list[list[str]] = [[]]
        for symbol in re.findall(r'"[^"]*"|\||\w+', body):
            if symbol == "|":
                alternatives.append([])
            else:
                alternatives[-1].append(symbol)
        rules[name.strip()] = alternatives
    return rules


def heights(rules: Rules) -> dict[str, int]:
    """Return the longest way down from each name."""
    known: dict[str, int] = {}

    def height(symbol: str) -> int:
        if symbol.startswith('"'):
            return 0
        if symbol not in known:
            known[symbol] = 1 + max(height(part) for alternative in rules[symbol] for part in alternative)
        return known[symbol]

    height("root")
    return known


class Sampler:
    """Draw sentences; the greedy ones take the deepest alternatives, so that the limits of size are met."""

    def __init__(self, text: str) -> None:
        self.rules = read(text)
        tall = heights(self.rules)

        def reach(alternative: list[str]) -> int:
            return sum(tall.get(symbol, 0) for symbol in alternative)

        self.deepest = {
            name: sorted(alternatives, key=reach)[-1 - len(alternatives) // 4 :]
            for name, alternatives in self.rules.items()
        }

    def draw(self, rng: random.Random, greed: float) -> str:
        text, waiting = "", ["root"]
        while waiting:
            symbol = waiting.pop()
            if symbol.startswith('"'):
                text += symbol[1:-1]
                continue
            choices = self.deepest if rng.random() < greed else self.rules
            waiting += reversed(rng.choice(choices[symbol]))
        return text

    def many(self, count: int, seed: int = 1) -> Iterator[str]:
        rng = random.Random(seed)
        for place in range(count):
            yield self.draw(rng, GREED[place % len(GREED)])


def windows_of(node: Node) -> set[float]:
    if node.is_leaf:
        return set()
    windows = {number.name for number in OPERATORS[node.op].numbers if number.kind == "window"}
    return {value for name, value in fill_parameters(node).items() if name in windows}


def refusal(text: str, campaign: Campaign) -> str:
    """Return why a sentence is not a formula of the campaign; nothing where it is one."""
    try:
        formula = parse(text, fields=campaign.fields, groups=campaign.groups)
    except ParseError as error:
        return str(error)
    if formula.lookback.hi > 0:
        return "it reads the future"
    allowed = {*campaign.windows} | ({20} if "adv20" in campaign.fields else set())
    if used := {value for _, node in walk(formula.root) for value in windows_of(node)} - allowed:
        return f"it uses the windows {used}"
    if not {node.name for _, node in walk(expand_tree(formula.root)) if node.op == "field"}:
        return "it reads no column"
    return f"it warns: {formula.warnings}" if formula.warnings else ""


def refusals(campaign: Campaign, count: int, seed: int = 1) -> list[tuple[str, str]]:
    drawn = Sampler(campaign.grammar()).many(count, seed)
    return [(text, reason) for text in drawn if (reason := refusal(text, campaign))]


def lacking(text: str, operators: Collection[str]) -> list[str]:
    """Return the operators that a grammar cannot write."""
    words = {
        symbol.strip('" ')
        for alternatives in read(text).values()
        for alternative in alternatives
        for symbol in alternative
    }
    return [name for name in operators if (OPERATORS[name].infix or name) not in words]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_sentence_is_a_formula_of_the_campaign(name: str) -> None:
    assert refusals(CAMPAIGNS[name], FEW) == []


@pytest.mark.integration
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_of_very_many_sentences_is_a_formula_of_the_campaign(name: str) -> None:
    count = 6 * MANY if name == "standard" else MANY
    assert refusals(CAMPAIGNS[name], count, seed=2) == []


def test_sentences_are_many_and_large() -> None:
    sampler, rng = Sampler(STANDARD.grammar()), random.Random(2)
    drawn = [sampler.draw(rng, greed) for greed in (0.0, 0.95) for _ in range(200)]
    formulas = [parse(text) for text in drawn]
    assert len(set(drawn)) > 250
    assert max(formula.size for formula in formulas) > 40
    used = {node.op for formula in formulas for _, node in walk(formula.root)}
    assert len(used) > 0.7 * len(OPERATORS)


def test_each_operator_can_be_written() -> None:
    assert lacking(STANDARD.grammar(), OPERATORS) == []


def test_a_grammar_is_small_enough_to_send() -> None:
    assert len(STANDARD.grammar()) < LARGEST_TEXT


def items(rules: Rules, name: str) -> int:
    """Count what may begin a sentence of a name: the items of an Earley parser's first row."""
    seen, waiting = {name}, [name]
    while waiting:
        first = {alternative[0] for alternative in rules[waiting.pop()]}
        waiting += (new := {part for part in first if not part.startswith('"')} - seen)
        seen |= new
    return sum(len(rules[symbol]) for symbol in seen)


def test_no_row_of_a_parser_grows_too_long() -> None:
    rules = read(STANDARD.grammar())
    assert max(items(rules, name) for name in rules) < LONGEST_ROW


def test_both_forms_hold_the_same_rules() -> None:
    ebnf, lark = read(STANDARD.grammar()), read(STANDARD.grammar("lark"), ":")
    assert {"root" if name == "start" else name: rule for name, rule in lark.items()} == ebnf


SMALL = Campaign(
    ("open", "high", "low", "close", "volume"), ("sector",), (5, 20), 5,
    ("add", "sub", "mul", "div", "neg", "gt", "and", "where", "rank", "ts_corr", "ts_mean", "ts_max", "ts_min", "delay",
     "group_rank", "clip"),
)  # fmt: skip  # a table


@pytest.fixture(scope="module")
def accepts() -> Any:
    """Return lark's own judgement, on the Lark form."""
    parser = Lark(SMALL.grammar("lark"), parser="earley", lexer="basic")

    def judge(text: str) -> bool:
        try:
            parser.parse(text)
        except LarkError:
            return False
        return True

    return judge


def test_lark_accepts_the_sentences_of_the_other_form(accepts: Any) -> None:
    assert [text for text in Sampler(SMALL.grammar()).many(12) if not accepts(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "close",
        "-1 * ts_corr(rank(open), rank(volume), 20)",
        "(close - open) / (high - low)",
        "(close - ts_min(low, 5)) / (ts_max(high, 5) - ts_min(low, 5))",
        "close / delay(close, 5) - 1",
        "where((close > open) & (volume > ts_mean(volume, 20)), rank(close), 0)",
        "group_rank(close / open, sector)",
    ],
)
def test_usual_formulas_can_be_written(accepts: Any, text: str) -> None:
    assert accepts(text)


@pytest.mark.parametrize(
    "text",
    [
        "close + volume",  # units
        "rank(1)",
        "1 + 2",
        "delay(close, -5)",  # the future
        "ts_mean(close, 7)",  # not a window of the campaign
        "rank(vwap)",
        "group_rank(close, industry)",
        "close & open",
        "rank(close > 0) & (close > 0)",
        "close / (close - close)",
        "clip(rank(close), 1, -1)",
        "close / 0",
        "close -",
    ],
)
def test_what_the_parser_or_the_campaign_refuses_cannot_be_written(accepts: Any, text: str) -> None:
    assert not accepts(text)


def test_without_groupings_or_windows_their_operators_are_not_written() -> None:
    text = replace(STANDARD, groups=(), windows=()).grammar()
    without = lacking(text, OPERATORS)
    assert {"group_rank", "ts_mean", "delay"} <= set(without)
    assert {"rank", "add", "where"}.isdisjoint(without)


def test_a_grammar_does_not_depend_on_order() -> None:
    shuffled = Campaign(STANDARD.fields[::-1], STANDARD.groups[::-1], STANDARD.windows[::-1])
    assert shuffled.grammar() == STANDARD.grammar()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fields": ()}, "fields is empty"),
        ({"fields": ("close",), "windows": (5, 0)}, "windows has 0"),
        ({"fields": ("close",), "depth": 0}, "depth is 0"),
        ({"fields": ("close",), "form": "gbnf"}, "form is 'gbnf'"),
        ({"fields": ("close",), "operators": ("sharpe",)}, "operators has sharpe"),
        ({"fields": ("close price",)}, "operator is missing"),
    ],
)
def test_what_cannot_be_exported_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(FactorError, match=said):
        decoding_grammar(**given)


# Each planted operator has a name of its own, since what an operator takes is remembered.


def plant(monkeypatch: pytest.MonkeyPatch, operator: Operator) -> None:
    """Add an operator to the table, wherever it is read."""
    table = MappingProxyType({**OPERATORS, operator.name: operator})
    for name, module in list(sys.modules.items()):
        if name.startswith(("alphaloom.factors", __name__)) and getattr(module, "OPERATORS", None) is not None:
            monkeypatch.setattr(module, "OPERATORS", table)


def plant_rule(monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
    monkeypatch.setattr(unit_rules, "UNIT_RULES", MappingProxyType({**unit_rules.UNIT_RULES, "planted": rule}))


ZSCORE = OPERATORS["ts_zscore"]


def test_a_new_operator_and_a_new_definition_come_in_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, replace(ZSCORE, name="planted", scaling=()))
    defined = replace(
        ZSCORE, name="spread_of", definition="100 * (x - ts_sum(x, window)) / (ts_std(x, window) + abs(x))"
    )
    plant(monkeypatch, replace(defined, arguments=defined.arguments[:2]))
    campaign = replace(STANDARD, operators=("planted", "spread_of", "add", "div", "rank"))
    assert lacking(campaign.grammar(), campaign.operators or ()) == []
    assert refusals(campaign, 300) == []


def test_an_operator_whose_units_are_always_refused_is_seen_to_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_node: Any, _units: Any) -> Any:
        raise UnitMismatch("never", "")

    plant_rule(monkeypatch, never)
    plant(monkeypatch, replace(ZSCORE, name="sullen", unit="planted"))
    assert lacking(STANDARD.grammar(), OPERATORS) == ["sullen"]


def test_an_operator_whose_units_depend_on_more_than_units_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def capricious(node: Any, units: Any) -> Any:
        if node.args[0].op == "ts_std":
            raise UnitMismatch("not of a deviation", "")
        return units[0]

    plant_rule(monkeypatch, capricious)
    plant(monkeypatch, replace(ZSCORE, name="moody", unit="planted"))
    found = refusals(replace(STANDARD, operators=("moody", "ts_std", "rank")), 200)
    assert found
    assert all("moody(ts_std(" in text for text, _ in found)


def test_an_operator_that_reads_the_future_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from alphaloom.factors.language import interval

    ahead = {**interval.INTERVAL_RULES, "ahead": lambda read, window: read.shift(window, window)}
    monkeypatch.setattr(interval, "INTERVAL_RULES", MappingProxyType(ahead))
    plant(monkeypatch, replace(ZSCORE, name="ahead", interval="ahead"))
    assert refusals(replace(STANDARD, operators=("ahead", "rank")), 50)
