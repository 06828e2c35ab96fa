"""Build the tree of a formula from its syntax; names, arguments and numbers are checked, all mistakes collected."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ..describe.render import render_number
from ..errors import ParseError, nearest_name
from ..operators import OPERATORS
from .node import Node, Path, call_node, field_node, group_node, number_node
from .operator import Argument, Operator
from .syntax import Syntax

LARGEST_NUMBER = 1e15
ADV = re.compile(r"adv([1-9][0-9]{0,3})")
"""Average daily dollar volume over some days, as in the WorldQuant paper: a name for ``ts_mean(amount, n)``."""
UNREADABLE_NODE = field_node("?")
SYNONYMS = {
    "correlation": "ts_corr", "corr": "ts_corr", "cov": "ts_cov", "covariance": "ts_cov", "ref": "delay",
    "lag": "delay", "shift": "delay", "mean": "ts_mean", "ma": "ts_mean", "std": "ts_std",
    "stddev": "ts_std", "pow": "power", "if": "where", "iff": "where", "cs_rank": "rank", "sum": "ts_sum",
    "argmax": "ts_argmax", "argmin": "ts_argmin", "indneutralize": "group_demean", "neutralize": "group_demean",
    "signedpower": "signed_power", "product": "ts_product", "diff": "delta", "pct_change": "ts_returns", "ln": "log",
    "return": "returns", "ret": "returns", "price": "close", "vol": "volume",
    "market_cap": "cap", "mktcap": "cap",
}  # fmt: skip  # a table
"""Names of our operators and fields in other languages, for suggestions when a name is unknown."""


def is_in_range(value: float) -> bool:
    """Return whether a number is within the range allowed in formulas."""
    return value == 0 or 1 / LARGEST_NUMBER <= abs(value) <= LARGEST_NUMBER


@dataclass
class Builder:
    """Builds nodes from syntax; collects the place of each node, for later errors, and every mistake."""

    text: str
    fields: frozenset[str]
    groups: frozenset[str]
    places: dict[Path, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    errors: list[ParseError] = field(default_factory=list)
    root: Node = UNREADABLE_NODE

    def whole(self, piece: Syntax) -> Node:
        """Return the tree of a formula; raise `ParseError` with all its mistakes."""
        self.root = root = self._build_or_record(piece, ())
        if self.errors:
            first, *others = sorted(self.errors, key=lambda error: error.at)
            first.others = tuple(others)
            raise first
        return root

    def _build_or_record(self, piece: Syntax, path: Path) -> Node:
        """Return the node of a piece; record a mistake in it and go on, so that other mistakes are found too."""
        try:
            return self.build(piece, path)
        except ParseError as error:
            self.errors.append(error)
            return UNREADABLE_NODE

    def refuse(self, message: str, piece: Syntax, hint: str = "", stage: str = "parse") -> ParseError:
        """Return an error that points at a piece."""
        return ParseError(message, at=piece.at, text=self.text, stage=stage, hint=hint)

    def build(self, piece: Syntax, path: Path) -> Node:
        """Return the node of a piece of syntax."""
        self.places[path] = piece.at
        if piece.kind == "number":
            return number_node(self._read_number(piece))
        if piece.kind == "name":
            return self._build_field(piece)
        return self._build_call(piece, path)

    def _read_number(self, piece: Syntax) -> float:
        value = float(piece.text)
        vanishes = value == 0 and any(digit in "123456789" for digit in piece.text.lower().partition("e")[0])
        if vanishes or not is_in_range(value):
            raise self.refuse(f"{piece.text} is out of range", piece, "Numbers lie between 1e-15 and 1e15.")
        return value

    def _build_field(self, piece: Syntax) -> Node:
        if piece.text in self.fields:
            return field_node(piece.text)
        if (days := ADV.fullmatch(piece.text)) and "amount" in self.fields:
            return call_node("ts_mean", field_node("amount"), window=float(days[1]))
        if piece.text in OPERATORS:
            operator = OPERATORS[piece.text]
            raise self.refuse(f"{piece.text} is an operator, not a field", piece, _format_lesson(operator))
        if piece.text in self.groups:
            raise self.refuse(
                f"{piece.text} is a grouping, not a field", piece, "It goes last: group_demean(returns, sector)."
            )
        raise self.refuse(f"unknown field '{piece.text}'", piece, self._suggest_name(piece.text, self.fields, "Fields"))

    def _suggest_name(self, name: str, names: Collection[str], title: str) -> str:
        low = name.lower()
        guess = SYNONYMS.get(low, "") if f"ts_{low}" not in names else f"ts_{low}"
        guess = guess if guess in names else nearest_name(name, names)
        meant = [f"Did you mean {guess}?"] if guess else []
        if names is OPERATORS:
            return " ".join(
                [*meant, _format_lesson(OPERATORS[guess]) if guess else "All are listed by: alphaloom factor operators"]
            )
        return " ".join([*meant, *([f"{title}: {', '.join(sorted(names))}."] if len(names) <= 20 else [])])

    def _build_call(self, piece: Syntax, path: Path) -> Node:
        operator = OPERATORS.get(piece.text)
        if operator is None:
            if piece.text in self.fields:
                raise self.refuse(
                    f"{piece.text} is a field and takes no arguments",
                    piece,
                    f"For an earlier day: delay({piece.text}, 1).",
                )
            raise self.refuse(
                f"unknown operator '{piece.text}'", piece, self._suggest_name(piece.text, OPERATORS, "Operators")
            )
        positionals = [arg for arg in piece.args if arg.kind != "keyword"]
        keywords = self._read_keywords(piece, operator)
        positional = operator.positional
        if operator.takes_many:
            positional += (positional[-1],) * (len(positionals) - len(positional))
        slots = [argument for argument in positional if argument.name not in keywords]
        self._check_count(piece, operator, positionals, slots)
        paired = list(zip(slots, positionals, strict=False))
        nodes = [
            self._build_argument(argument, arg, operator, (*path, place))
            for place, (argument, arg) in enumerate(pair for pair in paired if pair[0].is_node)
        ]
        numbers = {argument.name: arg for argument, arg in paired if not argument.is_node} | keywords
        return Node(operator.name, tuple(nodes), self._read_numbers(operator, numbers))

    def _read_keywords(self, piece: Syntax, operator: Operator) -> dict[str, Syntax]:
        """Return the arguments that are passed by name."""
        keywords: dict[str, Syntax] = {}
        numbers = {argument.name for argument in operator.numbers}
        for arg in piece.args:
            if arg.kind != "keyword":
                if keywords:
                    raise self.refuse("arguments by name come last", arg, _format_lesson(operator))
                continue
            if arg.text not in numbers:
                guess = nearest_name(arg.text, numbers)
                meant = f"Did you mean {guess}? " if guess else ""
                raise self.refuse(f"{operator.name} has no keyword '{arg.text}'", arg, meant + _format_lesson(operator))
            if arg.text in keywords:
                raise self.refuse(f"{arg.text} is given twice", arg, _format_lesson(operator))
            keywords[arg.text] = arg.args[0]
        return keywords

    def _check_count(self, piece: Syntax, operator: Operator, positional: list[Syntax], slots: list[Argument]) -> None:
        needed = sum(argument.default is None for argument in slots)
        if needed <= len(positional) <= len(slots):
            return
        all_needed = sum(argument.default is None for argument in operator.positional)
        plural = "" if all_needed == 1 else "s"
        takes = (
            f"{all_needed}" if all_needed == len(operator.positional) else f"{all_needed} or {len(operator.positional)}"
        )
        was = f"{len(positional)} {'was' if len(positional) == 1 else 'were'} given"
        place = positional[len(slots)] if len(positional) > len(slots) else piece
        raise self.refuse(f"{operator.name} takes {takes} argument{plural}; {was}", place, _format_lesson(operator))

    def _build_argument(self, argument: Argument, piece: Syntax, operator: Operator, path: Path) -> Node:
        if argument.kind != "group":
            return self._build_or_record(piece, path)
        self.places[path] = piece.at
        if piece.kind != "name" or piece.text not in self.groups:
            hint = f"{self._suggest_name(piece.text, self.groups, 'Groupings')} {_format_lesson(operator)}"
            raise self.refuse(f"{operator.name} needs a grouping here, not '{piece.text}'", piece, hint)
        return group_node(piece.text)

    def _read_numbers(self, operator: Operator, pieces: dict[str, Syntax]) -> tuple[tuple[str, float], ...]:
        """Return the numbers of a call in the order of the signature, without those equal to their default."""
        values: dict[str, float] = {}
        for argument in operator.numbers:
            if argument.name in pieces:
                parse = self._read_word if argument.choices else self._read_literal
                values[argument.name] = parse(argument, pieces[argument.name], operator)
        window = values.get("window")
        self._check_order(operator, values, pieces)
        optional = [argument for argument in operator.numbers if argument.keyword or argument.default]
        defaults = {argument.name: window if argument.default is None else argument.default for argument in optional}
        return tuple((name, value) for name, value in values.items() if defaults.get(name) != value)

    def _check_order(self, operator: Operator, values: dict[str, float], pieces: dict[str, Syntax]) -> None:
        for smaller, larger in (("min_periods", "window"), ("low", "high")):
            if values.get(smaller, 0.0) > values.get(larger, float("inf")):
                raise self.refuse(f"{smaller} exceeds {larger}", pieces[smaller], _format_lesson(operator))

    def _read_word(self, argument: Argument, piece: Syntax, operator: Operator) -> float:
        """Return the position of a word among the choices of an argument."""
        if piece.kind != "name" or piece.text not in argument.choices:
            meant = nearest_name(piece.text, argument.choices)
            hint = f"It is one of {', '.join(argument.choices)}. {_format_lesson(operator)}"
            hint = (f"Did you mean {meant}? " if meant else "") + hint
            raise self.refuse(f"{argument.name} of {operator.name} cannot be '{piece.text}'", piece, hint)
        return float(argument.choices.index(piece.text))

    def _read_literal(self, argument: Argument, piece: Syntax, operator: Operator) -> float:
        if piece.kind != "number":
            kind = "a whole number of days" if argument.kind == "window" else "a number"
            raise self.refuse(f"{argument.name} of {operator.name} must be {kind}", piece, _format_lesson(operator))
        value = self._read_number(piece)
        if argument.kind == "window" and value < 0:
            raise self._build_future_error(piece, operator)
        if argument.kind == "window" and value != int(value):
            self.warnings.append(f"the window {piece.text} of {operator.name} was floored to {int(value)}")
            value = float(int(value))
        if not argument.low <= value <= argument.high or (argument.whole and value != int(value)):
            raise self.refuse(
                f"{argument.name} of {operator.name} cannot be {piece.text}",
                piece,
                f"{_format_bounds(argument)} {_format_lesson(operator)}",
            )
        return value

    def _build_future_error(self, piece: Syntax, operator: Operator) -> ParseError:
        days = piece.text[1:]
        return self.refuse(
            f"{operator.name} with {piece.text} would read {days} day{'' if days == '1' else 's'} into the future",
            piece,
            f"Windows count back: {operator.example}.",
            "causal",
        )


def _format_lesson(operator: Operator) -> str:
    return f"Write {operator.signature}, for example {operator.example}."


def _format_bounds(argument: Argument) -> str:
    kind = "a whole number" if argument.whole else "a number"
    low, high = (render_number(bound) if abs(bound) < LARGEST_NUMBER else "" for bound in (argument.low, argument.high))
    limits = f" from {low} to {high}" if low and high else f" of at least {low}" if low else ""
    return f"It is {kind}{limits}."
