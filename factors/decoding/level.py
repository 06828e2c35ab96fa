"""Build the rules of a decoding grammar level by level: a formula of a level holds formulas of the levels below.

`GrammarRules` holds the result and writes it in the notations that decoders read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from ..describe.render import (
    BIND_ATOM,
    BIND_BOTH,
    BIND_COMPARISON,
    BIND_EITHER,
    BIND_POWER,
    BIND_PRODUCT,
    BIND_SIGNED,
    BIND_SUM,
)
from ..language.node import Node, group_node, number_node
from ..operators import OPERATORS
from .production import Production, ProductionPart
from .unit_class import ANY_CLASS, PANEL_CLASSES
from .weight import LevelRoom, Weight, weigh_call

ROOT = "root"

Alternative = tuple[str, ...]
"""Symbols in a row: the name of a rule, or a terminal in double quotes."""

SIGN_RULE_NAMES = {
    BIND_COMPARISON: "comparison", BIND_EITHER: "either", BIND_BOTH: "both", BIND_SUM: "sum", BIND_PRODUCT: "product", BIND_SIGNED: "signed",
    BIND_POWER: "power",
}  # fmt: skip
"""What is written with a sign, by how tightly it binds, loosest first."""
STABLE_FORM, FIRM_FORM, INSIDE_FORM, HEAVY_FORM, WIDE_PREFIX = "stable", "firm", "inside", "heavy", "wide_"
"""Forms of a formula: columns, and calls that cannot be 0 by algebra; these and a sum of different columns, for what
one divides by; whatever needs parentheses; calls whose coefficients are too large for the level; and, before the name of
another form, that form with such calls, for operators that let no coefficient out."""

Form = int | str
"""How tightly a formula must bind at least, or one of the forms above or of `SIGN_RULE_NAMES`."""
Weighted = tuple[Alternative, Weight]
Symbol = tuple[str, Weight]


@dataclass(frozen=True, slots=True)
class FittedProduction:
    """A production at a level: the symbols of its parts, the weight of the whole, and the depth of its parts."""

    production: Production
    symbols: Alternative
    weight: Weight
    depth: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column that may be read: its name, its unit class, the columns behind it (`adv20` reads another), and its weight."""

    name: str
    unit: str
    reads: frozenset[str]
    weight: Weight


@dataclass
class GrammarLevels:
    """Builds the rules that the start symbol needs, each once."""

    columns: Sequence[Column]
    productions: Sequence[Production]
    room: LevelRoom
    rules: dict[str, list[Alternative]] = field(default_factory=dict)
    symbols: dict[tuple[str, int, Form], Symbol | None] = field(default_factory=dict)
    fitted: dict[tuple[str, int], list[FittedProduction]] = field(default_factory=dict)
    sets: dict[tuple[str, ...], str] = field(default_factory=dict)

    def grammar(self) -> GrammarRules:
        """Return the grammar of the formulas up to the depth of `room`."""
        start = self.symbol(
            ANY_CLASS, self.room.depth, BIND_COMPARISON
        )  # the last level has room for all: none are heavy
        assert start is not None
        return GrammarRules({ROOT: [(start[0],)], **self.rules})

    def symbol(self, unit: str, level: int, form: Form) -> Symbol | None:
        """Return the symbol of the formulas of a class, level and form with their weight; None where there are none."""
        form = self._settled(unit, level, form)
        key = (unit, level, form)
        if key not in self.symbols:
            name = f"{unit}_{level}_{'atom' if form == BIND_ATOM else form}"
            if form == self._settled(unit, level, BIND_COMPARISON):
                name = f"{unit}_{level}"
            self.symbols[key] = self._defined(name, list(self._alternatives(unit, level, form)))
        return self.symbols[key]

    def _settled(self, unit: str, level: int, form: Form) -> Form:
        """Return the binding that is met first from `form` on, so that equal forms share a rule."""
        if isinstance(form, str) or unit == ANY_CLASS:
            return form
        bindings = {each.production.binding for each in self._fitted(unit, level)}
        return min((each for each in bindings if each >= form), default=BIND_ATOM)

    def _defined(self, name: str, weighted: list[Weighted]) -> Symbol | None:
        if not weighted:
            return None
        weight = reduce(Weight.join, (bound for _, bound in weighted))
        alternatives = list(dict.fromkeys(symbols for symbols, _ in weighted))
        if len(alternatives) == 1 and len(alternatives[0]) == 1:
            return alternatives[0][0], weight
        self.rules[name] = alternatives
        return name, weight

    def _alternatives(self, unit: str, level: int, form: Form) -> Iterator[Weighted]:
        if unit == ANY_CLASS:
            yield from self._iter_symbols([(panel_class, form) for panel_class in PANEL_CLASSES], level)
        elif isinstance(form, int):
            tighter = [(unit, name) for binding, name in SIGN_RULE_NAMES.items() if binding >= form]
            yield from self._iter_symbols(tighter, level)
            yield from self._atoms(unit, level)
        elif form.startswith(WIDE_PREFIX):
            tame = form.removeprefix(WIDE_PREFIX)
            yield from self._iter_symbols([(unit, int(tame) if tame.isdigit() else tame), (unit, HEAVY_FORM)], level)
        elif form == HEAVY_FORM:
            yield from self._joined(self._heavy(unit, level))
        elif form == INSIDE_FORM:
            yield from self._iter_symbols([(unit, name) for name in SIGN_RULE_NAMES.values()], level)
        elif form == FIRM_FORM:
            yield from self._iter_symbols([(unit, STABLE_FORM)], level)
            yield from self._gaps(unit, level)
        elif form == STABLE_FORM:
            yield from self._columns(unit)
            yield from self._calls(unit, level, vanishes=False)
        else:
            yield from self._signs(unit, level, form)

    def _iter_symbols(self, wanted: Iterable[tuple[str, Form]], level: int) -> Iterator[Weighted]:
        """Yield the symbols of classes and forms that have any formula."""
        for unit, form in wanted:
            if symbol := self.symbol(unit, level, form):
                yield (symbol[0],), symbol[1]

    def _columns(self, unit: str) -> Iterator[Weighted]:
        columns = [column for column in self.columns if column.unit == unit]
        if columns:
            weight = reduce(Weight.join, (column.weight for column in columns))
            yield (self._choice(f"{unit}_field", [column.name for column in columns]),), weight

    def _atoms(self, unit: str, level: int) -> Iterator[Weighted]:
        yield from self._iter_symbols([(unit, STABLE_FORM)], level)
        yield from self._calls(unit, level, vanishes=True)
        if inside := self.symbol(unit, level, INSIDE_FORM):
            yield (quote_terminal("("), inside[0], quote_terminal(")")), inside[1]

    def _calls(self, unit: str, level: int, *, vanishes: bool) -> Iterator[Weighted]:
        """Yield the calls of a class that have room at a level."""
        fitted = [each for each in self._fitted(unit, level) if not each.production.binding]
        yield from self._joined(each for each in fitted if each.production.vanishes == vanishes)

    def _joined(self, calls: Iterable[FittedProduction]) -> Iterator[Weighted]:
        """Yield calls, those with equal parts together."""
        same: dict[Alternative, list[FittedProduction]] = {}
        for each in calls:
            same.setdefault(each.symbols, []).append(each)
        for symbols, alike in same.items():
            parts = [part for symbol in symbols for part in (quote_terminal(", "), symbol)][1:]
            names = self._choice("function", [call.production.head for call in alike])
            yield (
                (names, quote_terminal("("), *parts, quote_terminal(")")),
                reduce(Weight.join, (call.weight for call in alike)),
            )

    def _signs(self, unit: str, level: int, form: str) -> Iterator[Weighted]:
        """Yield formulas written with a sign of one binding; signs with equal sides share an alternative."""
        same: dict[Alternative, list[FittedProduction]] = {}
        for each in self._fitted(unit, level):
            if SIGN_RULE_NAMES.get(each.production.binding) == form:
                same.setdefault(each.symbols, []).append(each)
        for symbols, written in same.items():
            space = "" if len(symbols) == 1 else " "
            signs = self._choice("sign", [f"{space}{each.production.head}{space}" for each in written])
            weight = reduce(Weight.join, (each.weight for each in written))
            yield (*symbols[:-1], signs, symbols[-1]), weight

    def _gaps(self, unit: str, level: int) -> Iterator[Weighted]:
        """Yield sums of two different columns, or of calls on one of them each: never 0 by algebra."""
        columns = [column for column in self.columns if column.unit == unit]
        signs = [each for each in self._fitted(unit, level) if _is_sum(each.production, unit)]
        for first in columns if signs else ():
            others = [other for other in columns if not first.reads & other.reads]
            sides = [self._single_column(column, level - 1) for column in (first, *others)]
            if not others:
                continue
            _, weight = sides[0]
            name = f"{unit}_{level}_besides_{self.columns.index(first) + 1}"
            other = self._defined(name, [((name,), each) for name, each in sides[1:]])
            assert other is not None
            sign = self._choice("sign", [f" {each.production.head} " for each in signs])
            sum_weight = weigh_call(signs[0].production.node, [weight, other[1]])
            yield (quote_terminal("("), sides[0][0], sign, other[0], quote_terminal(")")), sum_weight

    def _single_column(self, column: Column, level: int) -> Symbol:
        """Return the symbol of a column and, where they fit, of the calls on it that keep its class."""
        weighted: list[Weighted] = [((quote_terminal(column.name),), column.weight)]
        same: dict[Alternative, list[Production]] = {}
        for production in self.productions if level > 1 else ():
            if _keeps_class(production, column.unit) and self.room.holds(
                weigh_call(production.node, [column.weight]), 2
            ):
                symbols = tuple(
                    quote_terminal(column.name) if part.unit else self._words(part) for part in production.parts
                )
                same.setdefault(symbols, []).append(production)
        for symbols, calls in same.items():
            parts = [part for symbol in symbols for part in (quote_terminal(", "), symbol)][1:]
            weight = reduce(Weight.join, (weigh_call(call.node, [column.weight]) for call in calls))
            names = self._choice("function", [call.head for call in calls])
            weighted.append(((names, quote_terminal("("), *parts, quote_terminal(")")), weight))
        symbol = self._defined(f"column_{self.columns.index(column) + 1}_{min(level, 2)}", weighted)
        assert symbol is not None
        return symbol

    def _fitted(self, unit: str, level: int) -> list[FittedProduction]:
        """Return the productions of a class that have room at a level."""
        key = (unit, level)
        if key not in self.fitted:
            own = [production for production in self.productions if production.result == unit] if level > 1 else []
            self.fitted[key] = [fitted for production in own for fitted in self._fits(production, level)]
        return self.fitted[key]

    def _fits(self, production: Production, level: int) -> list[FittedProduction]:
        """Return a production with its parts as deep as fit: all of one depth, or one of them deeper."""
        tame, wide = (self._fit_even(production, level, name) for name in ("", WIDE_PREFIX))
        if tame is not None and wide is not None and wide.depth == tame.depth and wide.symbols != tame.symbols:
            return [wide]
        return self._fit_uneven(production, level) or [fitted for fitted in (tame,) if fitted is not None]

    def _fit_even(self, production: Production, level: int, prefix: str) -> FittedProduction | None:
        """Return a production with all parts of the greatest depth that fits."""
        for base in range(level - 1, 0, -1):
            fitted = self._made(production, [base] * len(production.subtrees), prefix)
            if fitted is not None and self.room.holds(fitted.weight, level):
                return fitted
        return None

    def _fit_uneven(self, production: Production, level: int) -> list[FittedProduction]:
        """Return a production with one part of the level below and the others less deep, where equal depths do not fit."""
        count = len(production.subtrees)
        choices: list[FittedProduction] = []
        for place in range(count if count > 1 else 0):
            for base in range(level - 1, 0, -1):
                depths = [base] * place + [level - 1] + [base] * (count - place - 1)
                fitted = self._made(production, depths)
                if fitted is not None and self.room.holds(fitted.weight, level):
                    choices.append(fitted)
                    break
        return choices

    def _made(self, production: Production, depths: Sequence[int], prefix: str = "") -> FittedProduction | None:
        """Return a production with parts of the given depths; None where a part has no formula."""
        symbols: list[str] = []
        weights: list[Weight] = []
        for place, part in enumerate(production.parts):
            if not part.unit:
                symbols.append(self._words(part))
                continue
            form = _form(production, part, place)
            symbol = self.symbol(part.unit, depths[len(weights)], f"{prefix}{form}" if prefix else form)
            if symbol is None:
                return None
            symbols.append(symbol[0])
            weights.append(symbol[1])
        return FittedProduction(production, tuple(symbols), _weight(production, weights), max(depths, default=0))

    def _heavy(self, unit: str, level: int) -> list[FittedProduction]:
        """Return the calls of a class that only their coefficients keep out of a level."""
        own = [each for each in self.productions if each.result == unit and not each.binding and not each.vanishes]
        heavy: list[FittedProduction] = []
        for production in own if level > 1 else ():
            fitted = self._made(production, [level - 1] * len(production.subtrees))
            fits = fitted is not None and self.room.holds(fitted.weight, level, bits=self.room.depth)
            if fitted is not None and fits and not self.room.holds(fitted.weight, level):
                heavy.append(fitted)
        return heavy

    def _words(self, part: ProductionPart) -> str:
        return self._choice("word", part.words)

    def _choice(self, name: str, words: Sequence[str]) -> str:
        """Return the symbol of one of some words."""
        words = tuple(dict.fromkeys(words))
        if len(words) == 1:
            return quote_terminal(words[0])
        if words not in self.sets:
            taken = sum(rule.startswith(name) for rule in self.sets.values())
            self.sets[words] = f"{name}_{taken + 1}"
            self.rules[self.sets[words]] = [_word_symbols(word) for word in words]
        return self.sets[words]


def _form(production: Production, part: ProductionPart, place: int) -> Form:
    """Return how tightly a part must bind, as in `grammar.lark`: chains associate to the left, comparisons and powers do not chain."""
    if part.must_stay:
        return FIRM_FORM
    if not production.binding:
        return BIND_COMPARISON
    leans_left = place == 0 and len(production.parts) == 2 and production.binding not in (BIND_COMPARISON, BIND_POWER)
    return production.binding if leans_left else production.binding + 1


def _weight(production: Production, weights: list[Weight]) -> Weight:
    """Return the weight of a production, the heaviest over its words."""
    remaining = iter(weights)
    parts: list[list[Node | Weight]] = []
    for place in production.places:
        part = production.parts[place]
        parts.append([next(remaining)] if part.unit else [_leaf(word) for word in part.words])
    every: list[list[Node | Weight]] = [[]]
    for choices in parts:
        every = [[*before, choice] for before in every for choice in choices]
    return reduce(Weight.join, (weigh_call(production.node, args) for args in every))


def _word_symbols(words: str) -> Alternative:
    """Return the symbols of a word, or of several with commas between them."""
    first, *rest = words.split(", ")
    return (
        quote_terminal(first),
        *(symbol for word in rest for symbol in (quote_terminal(", "), quote_terminal(word))),
    )


def _leaf(word: str) -> Node:
    return group_node(word) if word[0].isalpha() or word[0] == "_" else number_node(float(word))


def _is_sum(production: Production, unit: str) -> bool:
    """Return whether a production is a sum or difference of two formulas of a class."""
    return production.binding == BIND_SUM and [part.unit for part in production.parts] == [unit, unit]


def _keeps_class(production: Production, unit: str) -> bool:
    """Return whether a production is a call on one formula of a class that returns the class and is no definition."""
    own = [production.parts[place].unit for place in production.places]
    kernel = not production.binding and not OPERATORS[production.node.op].definition
    return kernel and not production.vanishes and own == [unit] and production.result == unit


def quote_terminal(text: str) -> str:
    """Return the symbol of a fixed text."""
    return json.dumps(text)


def is_terminal(symbol: str) -> bool:
    """Return whether a symbol is a fixed text."""
    return symbol.startswith('"')


@dataclass(frozen=True)
class GrammarRules:
    """A context-free grammar.

    Attributes
    ----------
    rules : mapping of str to alternatives
        What each name may be replaced by; `ROOT` is the start.
    """

    rules: Mapping[str, Sequence[Alternative]]

    def reachable(self) -> list[str]:
        """Return the names that the start leads to, in the order in which a reader meets them."""
        seen, waiting = [ROOT], [ROOT]
        while waiting:
            for alternative in self.rules[waiting.pop(0)]:
                new = [symbol for symbol in alternative if not is_terminal(symbol) and symbol not in seen]
                seen += dict.fromkeys(new)
                waiting += dict.fromkeys(new)
        return seen

    def ebnf(self) -> str:
        """Return the grammar as EBNF with ``::=`` and ``root``, which xgrammar, vLLM and llama.cpp read."""
        return self._written("{name} ::= {body}", ROOT)

    def lark(self) -> str:
        """Return the grammar in lark's notation with ``start``, which lark and llguidance read."""
        return self._written("{name}: {body}", "start")

    def _written(self, line: str, start: str) -> str:
        lines = []
        for name in self.reachable():
            body = " | ".join(" ".join(alternative) for alternative in self.rules[name])
            lines.append(line.format(name=start if name == ROOT else name, body=body))
        return "\n".join(lines) + "\n"
