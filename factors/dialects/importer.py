"""Read a foreign formula into our syntax: by the grammar of its dialect, then by its rewrite rules.

Each dialect's `.lark` file imports the rules of ``grammar.lark`` and overrides those that it writes differently. Lark
adds the prefix of the imported file to the names of rules; it is removed here. Besides the rules of our own language, a
grammar may use ``choice`` (condition, then, else) and ``days`` (a number with a letter after it: 20d).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.load_grammar import FromPackageLoader

from .. import language
from ..describe.render import render_number
from ..errors import ParseError, nearest_name
from ..language.reader import Branch, TreeReader, explain_syntax_error
from ..language.syntax import (
    MAX_FORMULA_CHARS,
    MAX_FORMULA_DEPTH,
    Syntax,
    build_depth_error,
    read_syntax,
    refuse_deep_brackets,
)
from ..operators import OPERATORS
from .dialect import Dialect, find_dialect, spell_formula
from .rule import (
    EXPRESSION_LETTERS,
    NUMBER_LETTERS,
    WINDOW_LETTERS,
    RewriteRule,
    compute_number,
    find_kind,
    is_computed,
    read_rules,
)

RuleBindings = dict[str, Syntax]
"""The pieces bound to the variables of a rule."""

MAX_REWRITTEN_PIECES = 1000
"""Limit on the pieces of a rewritten formula: nested rules that use an argument twice grow exponentially."""
MAX_FOREIGN_WINDOW = 1e6
TRUTH_OPERATORS = frozenset(name for name, operator in OPERATORS.items() if operator.unit in ("comparison", "logic"))
"""Our operators that are true or false."""


class ImportedFormula(NamedTuple):
    """A foreign formula in our syntax, with the columns of the foreign text, and notes for the reader."""

    syntax: Syntax
    notes: tuple[str, ...]


def read_foreign(text: str, dialect: str, *, fields: Collection[str], groups: Collection[str]) -> ImportedFormula:
    """Read a foreign formula into our syntax.

    Parameters
    ----------
    text : str
        The formula.
    dialect : str
        The name of its dialect.
    fields, groups : collection of str
        Our columns and groupings that may be named.

    Returns
    -------
    ImportedFormula
        The syntax of the equivalent formula in our language, and notes on differences.

    Raises
    ------
    ParseError
        With the place in the foreign text.
    """
    foreign = find_dialect(dialect)
    importer = _Importer(text, foreign, frozenset(fields), frozenset(groups))
    syntax = importer.whole(read_surface(text, foreign))
    return ImportedFormula(syntax, tuple(dict.fromkeys(importer.notes)))


@functools.cache
def _group_by_head(dialect: str) -> Mapping[str, tuple[RewriteRule, ...]]:
    """Return the importing rules by their head; a sign and a name with the same text have different heads."""
    described = find_dialect(dialect)
    by_head: dict[str, list[RewriteRule]] = {}
    for rule in load_rules(dialect):
        if rule.imports:
            head = f"family {rule.family}" if rule.family else _find_head(rule.foreign, described)
            by_head.setdefault(head, []).append(rule)
    return MappingProxyType({name: tuple(rules) for name, rules in by_head.items()})


def _find_head(piece: Syntax, dialect: Dialect) -> str:
    return f"sign {piece.text}" if piece.infix else dialect.fold_case(piece.text)


@dataclass
class _Importer:
    """Rewrite one formula."""

    text: str
    dialect: Dialect
    fields: frozenset[str]
    groups: frozenset[str]
    notes: list[str] = field(default_factory=list)
    sizes: dict[int, tuple[Syntax, int]] = field(default_factory=dict)
    errors: list[ParseError] = field(default_factory=list)

    @property
    def rules(self) -> Mapping[str, tuple[RewriteRule, ...]]:
        return _group_by_head(self.dialect.name)

    def refuse(self, message: str, piece: Syntax, hint: str = "", stage: str = "parse") -> ParseError:
        """Return an error that points at a piece of the foreign text."""
        return ParseError(message, at=piece.at, text=self.text, stage=stage, hint=hint)

    def whole(self, piece: Syntax) -> Syntax:
        """Return our syntax of a formula; raise `ParseError` with all its mistakes."""
        own = self._convert_or_record(piece, "x")
        if self.errors:
            first, *others = sorted(self.errors, key=lambda error: error.at)
            first.others = tuple(others)
            raise first
        return own

    def convert(self, piece: Syntax) -> Syntax:
        """Return our syntax of a foreign piece."""
        if piece.kind == "number":
            return piece
        if piece.kind == "name":
            return self._convert_name(piece)
        if piece.kind == "keyword":
            raise self.refuse(f"{self.dialect.title} gives arguments by position, not by name", piece)
        rules = self.rules.get(_find_head(piece, self.dialect), ())
        for rule in rules:
            bound = self._match(rule.foreign, piece)
            if bound is not None:
                return self._apply_rule(rule, bound, piece)
        if piece.infix:
            return self._keep_sign(piece, rules)
        raise self._build_error(piece, rules)

    def _keep_sign(self, piece: Syntax, rules: tuple[RewriteRule, ...]) -> Syntax:
        """Keep a sign of the same meaning; a chain of three or more with rules for two is split from the left."""
        if rules and len(piece.args) > 2:
            first = replace(piece, args=piece.args[:-1], end=piece.args[-2].end)
            return self.convert(replace(piece, args=(first, piece.args[-1])))
        argument_kinds = {"and": "c" * len(piece.args), "or": "c" * len(piece.args), "not": "c", "where": "cxx"}
        kinds = argument_kinds.get(piece.text, "x" * len(piece.args))
        return replace(piece, args=tuple(map(self._convert_or_record, piece.args, kinds)))

    def _convert_or_record(self, piece: Syntax, kind: str) -> Syntax:
        """Return our syntax of an argument; record a mistake in it and go on, so that other mistakes are found too."""
        try:
            own = self.convert(piece)
        except ParseError as error:
            self.errors.append(error)
            return piece
        if kind != "c" or own.text in TRUTH_OPERATORS:
            return own
        return _fill_rule(read_syntax(self.dialect.truth), {"x": own}, {}, piece)

    def _convert_name(self, piece: Syntax) -> Syntax:
        for rule in self.rules.get(self.dialect.fold_case(piece.text), ()):
            if rule.foreign.kind == "name":
                return self._apply_rule(rule, {}, piece)
        own_column = piece.text in self.fields
        return (None if own_column else self._expand_family(piece)) or replace(piece, text=self._find_column(piece))

    def _expand_family(self, piece: Syntax) -> Syntax | None:
        """Expand a name of a family, such as adv20; None for any other name."""
        families = [rule for rules in self.rules.values() for rule in rules if rule.family]
        for rule in families:
            digits = self.dialect.fold_case(piece.text).removeprefix(rule.family)
            if digits.isdecimal() and digits.isascii() and digits != piece.text:
                return self._apply_rule(rule, {rule.foreign.text: replace(piece, kind="number", text=digits)}, piece)
        return None

    def _find_column(self, piece: Syntax) -> str:
        sign = self.dialect.sign
        bare = piece.text.removeprefix(sign)
        renamed = self.dialect.fields.get(self.dialect.fold_case(bare), bare)
        column = next((name for name in (renamed, self.dialect.fold_case(renamed)) if name in self.fields), None)
        if column is not None and (piece.text.startswith(sign) or self.dialect.sign_optional):
            return column
        if piece.text.lower() in {name.lower() for name in self.rules}:
            raise self.refuse(f"{piece.text} is an operator, not a field", piece, self._format_lesson(piece.text))
        readable = {self.dialect.write_field(name) for name in self.fields}
        guess = nearest_name(piece.text, readable) or nearest_name(f"{sign}{bare}", readable)
        listed = f"Fields: {', '.join(sorted(readable))}." if len(readable) <= 20 else ""
        meant = f"Did you mean {guess}?" if guess else ""
        raise self.refuse(f"unknown field '{piece.text}'", piece, f"{meant} {listed}".strip())

    def _format_lesson(self, name: str) -> str:
        """Return the signature of a call, with an example; rules for special arguments are left out."""
        rules = self.rules.get(self.dialect.fold_case(name), ())
        calls = [rule for rule in rules if rule.foreign.kind == "call" and not rule.refusal]
        general = [rule for rule in calls if all(find_kind(arg.text) for arg in rule.foreign.args)] or calls
        if not general:
            return ""
        signatures = dict.fromkeys(rule.signature for rule in general)
        return f"Write {' or '.join(signatures)}: {build_example(general[0], self.dialect)}"

    def _match(self, pattern: Syntax, piece: Syntax) -> RuleBindings | None:
        """Return the pieces bound to the variables of a pattern; None if it does not match."""
        if pattern.kind == "name" and (kind := find_kind(pattern.text)):
            return {pattern.text: piece} if self._fits(kind, piece) else None
        if pattern.kind == "number":
            same = piece.kind == "number" and float(piece.text) == float(pattern.text)
            return {} if same else None
        if (pattern.kind, pattern.infix, len(pattern.args)) != (piece.kind, piece.infix, len(piece.args)):
            return None
        if self.dialect.fold_case(pattern.text) != self.dialect.fold_case(piece.text):
            return None
        bindings: RuleBindings = {}
        for below, arg in zip(pattern.args, piece.args, strict=True):
            inner = self._match(below, arg)
            if inner is None or any(
                _is_conflict(bindings.get(name), bound_piece) for name, bound_piece in inner.items()
            ):
                return None
            bindings |= inner
        return bindings

    def _fits(self, kind: str, piece: Syntax) -> bool:
        if kind in EXPRESSION_LETTERS:
            return piece.kind in ("name", "call", "number")
        if kind == "g":
            return piece.kind == "name"
        if piece.kind != "number":
            return False
        value = float(piece.text)
        days = math.floor(max(-MAX_FOREIGN_WINDOW, min(value, MAX_FOREIGN_WINDOW)))
        return kind in NUMBER_LETTERS or ((kind != "b") <= days and not (kind == "e" and days % 2))

    def _apply_rule(self, rule: RewriteRule, bound: RuleBindings, piece: Syntax) -> Syntax:
        """Return our side of a rule with its variables filled in."""
        if rule.refusal:
            raise self.refuse(
                f"{rule.signature} of {self.dialect.title} cannot be kept", piece, rule.refusal, "dialect"
            )
        if rule.note:
            self.notes.append(rule.note)
        numbers = {
            name: self._read_number(name, argument, piece)
            for name, argument in bound.items()
            if find_kind(name) in (*WINDOW_LETTERS, *NUMBER_LETTERS)
        }
        pieces = {name: self._find_group(argument) for name, argument in bound.items() if find_kind(name) == "g"}
        pieces |= {
            name: self._convert_or_record(argument, find_kind(name))
            for name, argument in bound.items()
            if find_kind(name) in EXPRESSION_LETTERS
        }
        rewritten = _fill_rule(rule.own, pieces, numbers, piece)
        if self._count_pieces(rewritten) > MAX_REWRITTEN_PIECES:
            raise self.refuse(f"written in our language, the formula has more than {MAX_REWRITTEN_PIECES} parts", piece)
        return rewritten

    def _count_pieces(self, piece: Syntax) -> int:
        """Count the parts of rewritten syntax; counts are cached, because arguments are shared."""
        if id(piece) not in self.sizes:
            self.sizes[id(piece)] = piece, 1 + sum(map(self._count_pieces, piece.args))
        return self.sizes[id(piece)][1]

    def _read_number(self, name: str, piece: Syntax, call: Syntax) -> float:
        value = float(piece.text)
        if find_kind(name) not in WINDOW_LETTERS or value == math.floor(min(value, MAX_FOREIGN_WINDOW)):
            return value
        floored = math.floor(min(value, MAX_FOREIGN_WINDOW))
        self.notes.append(f"the window {piece.text} of {call.text} was floored to {floored}")
        return float(floored)

    def _find_group(self, piece: Syntax) -> Syntax:
        sign, text = self.dialect.fold_case(self.dialect.group_sign), self.dialect.fold_case(piece.text)
        grouping = text.removeprefix(sign)
        if text.startswith(sign) and grouping in self.groups:
            return replace(piece, text=grouping)
        stand_in = self.dialect.stand_ins.get(grouping, "")
        if text.startswith(sign) and stand_in in self.groups:
            self.notes.append(f"no grouping '{grouping}' was named: '{stand_in}' stands in for it")
            return replace(piece, text=stand_in)
        groupings = {self.dialect.group_sign + name for name in (*self.groups, *self.dialect.stand_ins)}
        guess = nearest_name(piece.text, groupings)
        meant = f"Did you mean {guess}? " if guess else ""
        raise self.refuse(
            f"unknown grouping '{piece.text}'", piece, f"{meant}Groupings: {', '.join(sorted(groupings))}."
        )

    def _build_error(self, piece: Syntax, rules: tuple[RewriteRule, ...]) -> ParseError:
        """Return the error that explains why no rule matches a call."""
        name = self.dialect.fold_case(piece.text)
        reason = {self.dialect.fold_case(word): why for word, why in self.dialect.refused.items()}.get(name)
        if reason and not rules:
            return self.refuse(f"{piece.text} of {self.dialect.title} cannot be kept", piece, reason, "dialect")
        if not rules:
            return self._build_unknown_error(piece)
        lesson = self._format_lesson(piece.text)
        sized = [rule for rule in rules if len(rule.foreign.args) == len(piece.args)]
        sized.sort(key=lambda rule: bool(rule.refusal))
        if not sized:
            counts = " or ".join(str(count) for count in sorted({len(rule.foreign.args) for rule in rules}))
            plural, were = "" if counts == "1" else "s", "was" if len(piece.args) == 1 else "were"
            return self.refuse(
                f"{piece.text} takes {counts} argument{plural}; {len(piece.args)} {were} given", piece, lesson
            )
        for pattern, arg in zip(sized[0].foreign.args, piece.args, strict=True):
            if self._match(pattern, arg) is None:
                return self._build_argument_error(pattern, arg, piece, lesson)
        return self.refuse(f"{piece.text} cannot be given these arguments", piece, lesson)

    def _build_argument_error(self, pattern: Syntax, arg: Syntax, call: Syntax, lesson: str) -> ParseError:
        """Return the error for one argument; a negative window reads the future."""
        kind = find_kind(pattern.text)
        if kind in WINDOW_LETTERS and arg.kind == "number" and float(arg.text) < 0:
            days = arg.text[1:]
            return self.refuse(
                f"{call.text} with {arg.text} would read {days} day{'' if days == '1' else 's'} into the future",
                arg,
                "Windows count back: they are positive.",
                "causal",
            )
        if kind in WINDOW_LETTERS:
            least = "of 0 or more" if kind == "b" else "of at least 1"
            return self.refuse(f"{pattern.text} of {call.text} must be a literal number of days {least}", arg, lesson)
        if kind in NUMBER_LETTERS:
            return self.refuse(f"{pattern.text} of {call.text} must be a literal number", arg, lesson)
        if kind == "g":
            return self.refuse(f"{call.text} needs a grouping here", arg, lesson)
        return self.refuse(f"{call.text} cannot be given this", arg, lesson)

    def _build_unknown_error(self, piece: Syntax) -> ParseError:
        if piece.text.removeprefix(self.dialect.sign) in self.fields:
            return self.refuse(f"{piece.text} is a field and takes no arguments", piece)
        operators = {rule.foreign.text for rules in self.rules.values() for rule in rules if rule.foreign.kind == "call"
                 and not rule.foreign.infix}  # fmt: skip  # a table
        guess = nearest_name(piece.text, operators)
        hint = f"Did you mean {guess}? {self._format_lesson(guess)}" if guess else ""
        return self.refuse(f"unknown operator '{piece.text}'", piece, hint)


def _is_conflict(first: Syntax | None, second: Syntax) -> bool:
    """Return whether one variable would be bound to two different pieces."""
    return first is not None and _without_place(first) != _without_place(second)


def _without_place(piece: Syntax) -> Syntax:
    """Return a piece without its place."""
    return replace(piece, at=0, end=0, args=tuple(map(_without_place, piece.args)))


def _fill_rule(own: Syntax, pieces: Mapping[str, Syntax], numbers: dict[str, float], piece: Syntax) -> Syntax:
    if own.kind == "name" and own.text in pieces:
        return pieces[own.text]
    if (own.kind == "name" and own.text in numbers) or is_computed(own):
        return Syntax("number", _compute_text(own, numbers), piece.at, piece.end)
    args = tuple(_fill_rule(arg, pieces, numbers, piece) for arg in own.args)
    return replace(own, at=piece.at, end=piece.end, args=args)


def _compute_text(own: Syntax, numbers: dict[str, float]) -> str:
    try:
        value = compute_number(own, numbers)
    except (ZeroDivisionError, OverflowError):
        return "0"
    return render_number(value) if math.isfinite(value) else "0"


def read_surface(text: str, dialect: Dialect) -> Syntax:
    """Parse a foreign formula; `ParseError` if its form is wrong."""
    if not text.strip():
        raise ParseError("the formula is empty", hint=f"Example: {dialect.example}")
    if len(text) > MAX_FORMULA_CHARS:
        raise ParseError(
            f"the formula has {len(text)} characters; {MAX_FORMULA_CHARS} are allowed", text=text, at=MAX_FORMULA_CHARS
        )
    refuse_deep_brackets(text)
    try:
        tree: Branch = _load_grammar(dialect.grammar).parse(text)
    except UnexpectedInput as unexpected:
        explained = explain_syntax_error(unexpected, text)
        hint = f"{_filter_hint(explained.hint)}A formula of {dialect.title}: {dialect.example}"
        raise ParseError(explained.message, at=explained.at, text=text, hint=hint) from None
    for branch in tree.iter_subtrees():
        branch.data = str(branch.data).removeprefix("grammar__")
    return _SurfaceReader(text).read(tree.children[0], 1)


def _filter_hint(hint: str) -> str:
    """Return a hint about brackets and commas unchanged; empty for others, whose examples are in our own language."""
    return f"{hint} " if any(words in hint for words in ("Take", "still open", "Write a plain")) else ""


@functools.cache
def _load_grammar(name: str) -> Lark:
    source = files(__package__).joinpath(name).read_text(encoding="utf-8")
    folder = FromPackageLoader(language.__name__, ("",))
    return Lark(source, parser="lalr", propagate_positions=True, maybe_placeholders=False, import_paths=[folder])


class _SurfaceReader(TreeReader):
    """Reads the grammar rules that our own language lacks, and the rest as ours."""

    def read(self, branch: Branch | Token, level: int) -> Syntax:
        assert isinstance(branch, Tree)
        at, end = int(branch.meta.start_pos), int(branch.meta.end_pos)
        if level > MAX_FORMULA_DEPTH:
            raise build_depth_error(self.text, at)
        if branch.data == "days":
            return Syntax("number", str(branch.children[0]).rstrip("dD"), at, end)
        if branch.data == "choice":
            args = tuple(self.read(child, level + 1) for child in branch.children)
            return Syntax("call", "where", at, end, args, infix=True)
        return super().read(branch, level)


@functools.cache
def load_rules(name: str) -> tuple[RewriteRule, ...]:
    """Return the rules of a dialect, read once."""
    dialect = find_dialect(name)
    return tuple(read_rules(dialect.rules, lambda text: read_surface(text, dialect)))


def build_example(rule: RewriteRule, dialect: Dialect) -> str:
    """Return an example of a call that the rule matches: ``Corr($close, $volume, 20)``."""
    columns = iter([dialect.write_field(name) for name in ("close", "volume", "open", "high", "low")])
    truths = rule.own.text in ("and", "or", "not")
    return spell_formula(_fill_pattern(rule.foreign, dialect, columns, truths=truths), dialect)


def _fill_pattern(pattern: Syntax, dialect: Dialect, columns: Iterator[str], *, truths: bool) -> Syntax:
    kind = find_kind(pattern.text) if pattern.kind == "name" else ""
    if not kind:
        args = tuple(_fill_pattern(arg, dialect, columns, truths=truths) for arg in pattern.args)
        return Syntax(pattern.kind, pattern.text, 0, 0, args, infix=pattern.infix)
    if kind in WINDOW_LETTERS or kind in NUMBER_LETTERS:
        return Syntax("number", "20" if kind in WINDOW_LETTERS else "1", 0, 0)
    if kind == "g":
        return Syntax("name", f"{dialect.group_sign}sector", 0, 0)
    if (kind == "c" or truths) and "gt" in dialect.symbols:  # elsewhere numbers are conditions too
        sides = tuple(Syntax("name", dialect.write_field(name), 0, 0) for name in ("close", "open"))
        return Syntax("call", "gt", 0, 0, sides, infix=True)
    return Syntax("name", next(columns), 0, 0)
