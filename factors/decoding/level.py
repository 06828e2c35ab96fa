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
    BIND_COMPARISON: "comparison",
    BIND_EITHER: "either",
    BIND_BOTH: "both",
    BIND_SUM: "sum",
    BIND_PRODUCT: "product",
    BIND_SIGNED: "signed",
    BIND_POWER: "power",
}
"""Rules of formulas with a sign, by how tightly the sign binds, loosest first."""
STABLE_FORM, FIRM_FORM, INSIDE_FORM, HEAVY_FORM, WIDE_PREFIX = "stable", "firm", "inside", "heavy", "wide_"
"""Forms of a formula.

Stable: columns, and calls that cannot be 0 by algebra. Firm, for divisors: these and sums of different columns. Inside:
formulas that need parentheses. Heavy: calls whose coefficients are too large for the level. The prefix, before the name
of another form: that form and heavy calls, for operators that let no coefficient out.
"""

Form = int | str
"""How tightly a formula must bind at least, or one of the forms above or of `SIGN_RULE_NAMES`."""
Weighted = tuple[Alternative, Weight]
Symbol = tuple[str, Weight]


@dataclass(frozen=True, slots=True)
class FittedProduction:
    """A production at a level: the symbols of its parts, its weight, and the depth of its parts."""

    production: Production
    symbols: Alternative
    weight: Weight
    depth: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column that may be read: name, unit class, the columns that it reads (`adv20` reads another), and weight."""

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
        # The last level has room for all formulas, so none are heavy.
        start = self.symbol(ANY_CLASS, self.room.depth, BIND_COMPARISON)
        assert start is not None
        return GrammarRules({ROOT: [(start[0],)], **self.rules})

    def symbol(self, unit: str, level: int, form: Form) -> Symbol | None:
        """Return the symbol of the formulas of a class, level and form, with their weight; None if there are none."""
        form = self._settle_form(unit, level, form)
        key = (unit, level, form)
        if key not in self.symbols:
            name = f"{unit}_{level}_{'atom' if form == BIND_ATOM else form}"
            if form == self._settle_form(unit, level, BIND_COMPARISON):
                name = f"{unit}_{level}"
            self.symbols[key] = self._define_rule(name, list(self._iter_alternatives(unit, level, form)))
        return self.symbols[key]

    def _settle_form(self, unit: str, level: int, form: Form) -> Form:
        """Return the loosest binding from `form` on that occurs, so that equal forms share a rule."""
        if isinstance(form, str) or unit == ANY_CLASS:
            return form
        bindings = {fitted.production.binding for fitted in self._list_fitted(unit, level)}
        return min((binding for binding in bindings if binding >= form), default=BIND_ATOM)

    def _define_rule(self, name: str, weighted: list[Weighted]) -> Symbol | None:
        if not weighted:
            return None
        weight = reduce(Weight.join, (bound for _, bound in weighted))
        alternatives = list(dict.fromkeys(symbols for symbols, _ in weighted))
        if len(alternatives) == 1 and len(alternatives[0]) == 1:
            return alternatives[0][0], weight
        self.rules[name] = alternatives
        return name, weight

    def _iter_alternatives(self, unit: str, level: int, form: Form) -> Iterator[Weighted]:
        if unit == ANY_CLASS:
            yield from self._iter_symbols([(panel_class, form) for panel_class in PANEL_CLASSES], level)
        elif isinstance(form, int):
            tighter = [(unit, name) for binding, name in SIGN_RULE_NAMES.items() if binding >= form]
            yield from self._iter_symbols(tighter, level)
            yield from self._iter_atoms(unit, level)
        elif form.startswith(WIDE_PREFIX):
            tame = form.removeprefix(WIDE_PREFIX)
            yield from self._iter_symbols([(unit, int(tame) if tame.isdigit() else tame), (unit, HEAVY_FORM)], level)
        elif form == HEAVY_FORM:
            yield from self._join_calls(self._list_heavy(unit, level))
        elif form == INSIDE_FORM:
            yield from self._iter_symbols([(unit, name) for name in SIGN_RULE_NAMES.values()], level)
        elif form == FIRM_FORM:
            yield from self._iter_symbols([(unit, STABLE_FORM)], level)
            yield from self._iter_gaps(unit, level)
        elif form == STABLE_FORM:
            yield from self._iter_columns(unit)
            yield from self._iter_calls(unit, level, vanishes=False)
        else:
            yield from self._iter_signs(unit, level, form)

    def _iter_symbols(self, choices: Iterable[tuple[str, Form]], level: int) -> Iterator[Weighted]:
        """Yield the symbols of classes and forms that have any formula."""
        for unit, form in choices:
            if symbol := self.symbol(unit, level, form):
                yield (symbol[0],), symbol[1]

    def _iter_columns(self, unit: str) -> Iterator[Weighted]:
        columns = [column for column in self.columns if column.unit == unit]
        if columns:
            weight = reduce(Weight.join, (column.weight for column in columns))
            yield (self._define_choice(f"{unit}_field", [column.name for column in columns]),), weight

    def _iter_atoms(self, unit: str, level: int) -> Iterator[Weighted]:
        yield from self._iter_symbols([(unit, STABLE_FORM)], level)
        yield from self._iter_calls(unit, level, vanishes=True)
        if inside := self.symbol(unit, level, INSIDE_FORM):
            yield (quote_terminal("("), inside[0], quote_terminal(")")), inside[1]

    def _iter_calls(self, unit: str, level: int, *, vanishes: bool) -> Iterator[Weighted]:
        """Yield the calls of a class that fit a level."""
        calls = [fitted for fitted in self._list_fitted(unit, level) if not fitted.production.binding]
        yield from self._join_calls(call for call in calls if call.production.vanishes == vanishes)

    def _join_calls(self, calls: Iterable[FittedProduction]) -> Iterator[Weighted]:
        """Yield calls; those with equal parts share an alternative."""
        same: dict[Alternative, list[FittedProduction]] = {}
        for call in calls:
            same.setdefault(call.symbols, []).append(call)
        for symbols, alike in same.items():
            parts = [part for symbol in symbols for part in (quote_terminal(", "), symbol)][1:]
            names = self._define_choice("function", [one.production.head for one in alike])
            yield (
                (names, quote_terminal("("), *parts, quote_terminal(")")),
                reduce(Weight.join, (one.weight for one in alike)),
            )

    def _iter_signs(self, unit: str, level: int, form: str) -> Iterator[Weighted]:
        """Yield formulas with a sign of one binding; signs with equal sides share an alternative."""
        same: dict[Alternative, list[FittedProduction]] = {}
        for fitted in self._list_fitted(unit, level):
            if SIGN_RULE_NAMES.get(fitted.production.binding) == form:
                same.setdefault(fitted.symbols, []).append(fitted)
        for symbols, alike in same.items():
            space = "" if len(symbols) == 1 else " "
            signs = self._define_choice("sign", [f"{space}{one.production.head}{space}" for one in alike])
            weight = reduce(Weight.join, (one.weight for one in alike))
            yield (*symbols[:-1], signs, symbols[-1]), weight

    def _iter_gaps(self, unit: str, level: int) -> Iterator[Weighted]:
        """Yield sums of two different columns, or of calls on them: never 0 by algebra."""
        columns = [column for column in self.columns if column.unit == unit]
        signs = [fitted for fitted in self._list_fitted(unit, level) if _is_sum(fitted.production, unit)]
        for first in columns if signs else ():
            others = [other for other in columns if not first.reads & other.reads]
            sides = [self._define_column(column, level - 1) for column in (first, *others)]
            if not others:
                continue
            _, weight = sides[0]
            name = f"{unit}_{level}_besides_{self.columns.index(first) + 1}"
            other = self._define_rule(name, [((name,), side_weight) for name, side_weight in sides[1:]])
            assert other is not None
            sign = self._define_choice("sign", [f" {fitted.production.head} " for fitted in signs])
            sum_weight = weigh_call(signs[0].production.node, [weight, other[1]])
            yield (quote_terminal("("), sides[0][0], sign, other[0], quote_terminal(")")), sum_weight

    def _define_column(self, column: Column, level: int) -> Symbol:
        """Return the symbol of a column and of the calls on it that keep its class and fit."""
        weighted: list[Weighted] = [((quote_terminal(column.name),), column.weight)]
        same: dict[Alternative, list[Production]] = {}
        for production in self.productions if level > 1 else ():
            if _keeps_class(production, column.unit) and self.room.holds(
                weigh_call(production.node, [column.weight]), 2
            ):
                symbols = tuple(
                    quote_terminal(column.name) if part.unit else self._choose_word(part) for part in production.parts
                )
                same.setdefault(symbols, []).append(production)
        for symbols, calls in same.items():
            parts = [part for symbol in symbols for part in (quote_terminal(", "), symbol)][1:]
            weight = reduce(Weight.join, (weigh_call(call.node, [column.weight]) for call in calls))
            names = self._define_choice("function", [call.head for call in calls])
            weighted.append(((names, quote_terminal("("), *parts, quote_terminal(")")), weight))
        symbol = self._define_rule(f"column_{self.columns.index(column) + 1}_{min(level, 2)}", weighted)
        assert symbol is not None
        return symbol

    def _list_fitted(self, unit: str, level: int) -> list[FittedProduction]:
        """Return the productions of a class that fit a level."""
        key = (unit, level)
        if key not in self.fitted:
            own = [production for production in self.productions if production.result == unit] if level > 1 else []
            self.fitted[key] = [fitted for production in own for fitted in self._fit(production, level)]
        return self.fitted[key]

    def _fit(self, production: Production, level: int) -> list[FittedProduction]:
        """Return a production with parts as deep as possible: all of one depth, or one of them deeper."""
        tame, wide = (self._fit_even(production, level, name) for name in ("", WIDE_PREFIX))
        if tame is not None and wide is not None and wide.depth == tame.depth and wide.symbols != tame.symbols:
            return [wide]
        return self._fit_uneven(production, level) or [fitted for fitted in (tame,) if fitted is not None]

    def _fit_even(self, production: Production, level: int, prefix: str) -> FittedProduction | None:
        """Return a production with all parts of the greatest depth that fits."""
        for base in range(level - 1, 0, -1):
            fitted = self._fit_depths(production, [base] * len(production.subtrees), prefix)
            if fitted is not None and self.room.holds(fitted.weight, level):
                return fitted
        return None

    def _fit_uneven(self, production: Production, level: int) -> list[FittedProduction]:
        """Return a production with one part of the level below and the others less deep, for each such part."""
        count = len(production.subtrees)
        choices: list[FittedProduction] = []
        for place in range(count if count > 1 else 0):
            for base in range(level - 1, 0, -1):
                depths = [base] * place + [level - 1] + [base] * (count - place - 1)
                fitted = self._fit_depths(production, depths)
                if fitted is not None and self.room.holds(fitted.weight, level):
                    choices.append(fitted)
                    break
        return choices

    def _fit_depths(self, production: Production, depths: Sequence[int], prefix: str = "") -> FittedProduction | None:
        """Return a production with parts of some depths; None if a part has no formula."""
        symbols: list[str] = []
        weights: list[Weight] = []
        for place, part in enumerate(production.parts):
            if not part.unit:
                symbols.append(self._choose_word(part))
                continue
            form = _find_form(production, part, place)
            symbol = self.symbol(part.unit, depths[len(weights)], f"{prefix}{form}" if prefix else form)
            if symbol is None:
                return None
            symbols.append(symbol[0])
            weights.append(symbol[1])
        return FittedProduction(production, tuple(symbols), _weigh(production, weights), max(depths, default=0))

    def _list_heavy(self, unit: str, level: int) -> list[FittedProduction]:
        """Return the calls of a class that do not fit a level because of their coefficients alone."""
        productions = self.productions if level > 1 else ()
        heavy: list[FittedProduction] = []
        for production in productions:
            if production.result != unit or production.binding or production.vanishes:
                continue
            fitted = self._fit_depths(production, [level - 1] * len(production.subtrees))
            fits = fitted is not None and self.room.holds(fitted.weight, level, bits=self.room.depth)
            if fitted is not None and fits and not self.room.holds(fitted.weight, level):
                heavy.append(fitted)
        return heavy

    def _choose_word(self, part: ProductionPart) -> str:
        return self._define_choice("word", part.words)

    def _define_choice(self, name: str, words: Sequence[str]) -> str:
        """Return the symbol for a choice of words."""
        words = tuple(dict.fromkeys(words))
        if len(words) == 1:
            return quote_terminal(words[0])
        if words not in self.sets:
            count = sum(rule.startswith(name) for rule in self.sets.values())
            self.sets[words] = f"{name}_{count + 1}"
            self.rules[self.sets[words]] = [_split_words(word) for word in words]
        return self.sets[words]


def _find_form(production: Production, part: ProductionPart, place: int) -> Form:
    """Return how tightly a part must bind, as in `grammar.lark`.

    Chains associate to the left; comparisons and powers do not chain.
    """
    if part.must_stay:
        return FIRM_FORM
    if not production.binding:
        return BIND_COMPARISON
    leans_left = place == 0 and len(production.parts) == 2 and production.binding not in (BIND_COMPARISON, BIND_POWER)
    return production.binding if leans_left else production.binding + 1


def _weigh(production: Production, weights: list[Weight]) -> Weight:
    """Return the weight of a production: the upper bounds over its words."""
    remaining = iter(weights)
    parts: list[list[Node | Weight]] = []
    for place in production.places:
        part = production.parts[place]
        parts.append([next(remaining)] if part.unit else [_build_leaf(word) for word in part.words])
    every: list[list[Node | Weight]] = [[]]
    for choices in parts:
        every = [[*before, choice] for before in every for choice in choices]
    return reduce(Weight.join, (weigh_call(production.node, args) for args in every))


def _split_words(words: str) -> Alternative:
    """Return the symbols of a word, or of several words with commas between them."""
    first, *rest = words.split(", ")
    return (
        quote_terminal(first),
        *(symbol for word in rest for symbol in (quote_terminal(", "), quote_terminal(word))),
    )


def _build_leaf(word: str) -> Node:
    return group_node(word) if word[0].isalpha() or word[0] == "_" else number_node(float(word))


def _is_sum(production: Production, unit: str) -> bool:
    """Return whether a production is a sum or difference of two formulas of a class."""
    return production.binding == BIND_SUM and [part.unit for part in production.parts] == [unit, unit]


def _keeps_class(production: Production, unit: str) -> bool:
    """Return whether a production is a call on one formula of a class that returns the class and has a kernel."""
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
        The alternatives of each name; `ROOT` is the start.
    """

    rules: Mapping[str, Sequence[Alternative]]

    def reachable(self) -> list[str]:
        """Return the rules that the start uses, in the order of first use."""
        names, waiting = [ROOT], [ROOT]
        while waiting:
            for alternative in self.rules[waiting.pop(0)]:
                new = [symbol for symbol in alternative if not is_terminal(symbol) and symbol not in names]
                names += dict.fromkeys(new)
                waiting += dict.fromkeys(new)
        return names

    def ebnf(self) -> str:
        """Return the grammar as EBNF with ``::=`` and ``root``, which xgrammar, vLLM and llama.cpp read."""
        return self._write("{name} ::= {body}", ROOT)

    def lark(self) -> str:
        """Return the grammar in lark's notation with ``start``, which lark and llguidance read."""
        return self._write("{name}: {body}", "start")

    def _write(self, line: str, start: str) -> str:
        lines = []
        for name in self.reachable():
            body = " | ".join(" ".join(alternative) for alternative in self.rules[name])
            lines.append(line.format(name=start if name == ROOT else name, body=body))
        return "\n".join(lines) + "\n"
