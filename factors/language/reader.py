"""Parse formulas with lark by the grammar file, and rewrite syntax errors for people."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ..errors import ParseError
from ..operators import OPERATORS
from .syntax import MAX_FORMULA_DEPTH, Syntax, build_depth_error

Branch = Tree[Token]
Infix = Mapping[str, str]

SYMBOLS: Infix = MappingProxyType(
    {
        "+": "add", "-": "sub", "*": "mul", "/": "div",
        "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    }
)  # fmt: skip  # a table
JOINERS: Infix = MappingProxyType({"disjunction": "or", "either": "or", "conjunction": "and", "both": "and"})
CHOICE_HINT = "A choice is written where(condition, x, y): where(close > open, volume, 0)."
EARLIER_HINT = "Use parentheses, and delay(x, d) for earlier days: delay(close, 1)."
QUOTES_HINT = "Names are written without quotes: group_rank(returns, sector)."
FOREIGN_SIGN_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "^": "A power is written x ** 2.",
        "?": CHOICE_HINT,
        ":": CHOICE_HINT,
        "!": "Write ~x for not, and != for different: ~(close > open).",
        "$": "Fields are written without $: close.",
        "%": "There is no remainder operator.",
        "[": EARLIER_HINT,
        "]": EARLIER_HINT,
        ".": "Write a call, not a method: delay(close, 1) for close.shift(1).",
        ";": "Write one formula, without a semicolon.",
        "#": "Leave the comment away: a formula is one expression.",
        "{": "Use parentheses: rank(close - open).",
        "}": "Use parentheses: rank(close - open).",
        **dict.fromkeys("\"'`\u2018\u2019\u201c\u201d", QUOTES_HINT),
        **dict.fromkeys("\u2212\u2013\u2014", "Write a plain minus: -returns."),
        **dict.fromkeys("\u00d7\u00b7", "Write *: close * volume."),
        "\u00f7": "Write /: close / open.",
        "\u2264": "Write <=: close <= open.",
        "\u2265": "Write >=: close >= open.",
        "\u2260": "Write !=: close != open.",
        **dict.fromkeys("\uff08\uff09\uff0c", "Write plain parentheses and commas: ts_mean(close, 20)."),
    }
)
"""Signs of other languages, and their equivalents here."""
ALLOWED_HINT = (
    "A formula has names, numbers, + - * / ** < > == & | ~, commas and parentheses: rank(ts_mean(returns, 20))."
)


def read_tree(text: str) -> Syntax:
    """Parse a formula that is neither empty nor too long."""
    try:
        tree: Branch = _load_grammar().parse(text)
    except UnexpectedInput as unexpected:
        raise explain_syntax_error(unexpected, text) from None
    return TreeReader(text).read(tree.children[0], 1)


def read_grammar_text() -> str:
    """Return the grammar of the language, as Lark reads it."""
    return files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")


@functools.cache
def _load_grammar() -> Lark:
    return Lark(read_grammar_text(), parser="lalr", propagate_positions=True, maybe_placeholders=False)


class TreeReader:
    """Turns the parser's tree into syntax with places, counting levels; a chain of one precedence is one level."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, branch: Branch | Token, level: int) -> Syntax:
        """Return the syntax of a branch at a level below the root."""
        assert isinstance(branch, Tree)
        at, end = int(branch.meta.start_pos), int(branch.meta.end_pos)
        if level > MAX_FORMULA_DEPTH:
            raise build_depth_error(self.text, at)
        if branch.data in ("number", "name"):
            return Syntax(str(branch.data), str(branch.children[0]), at, end)
        if branch.data in ("call", "keyword"):
            name, *below = branch.children
            args = tuple(self.read(child, level + 1) for child in below)
            return Syntax(str(branch.data), str(name), at, end, args)
        if branch.data in ("signed", "negated", "power"):
            return self._read_prefix_or_power(branch, at, end, level)
        if branch.data in JOINERS:
            return self._read_chain(
                branch.children[0], [(JOINERS[branch.data], child) for child in branch.children[1:]], level
            )
        rest = branch.children[1:]
        pairs = [(SYMBOLS[str(rest[place])], rest[place + 1]) for place in range(0, len(rest), 2)]
        if branch.data == "comparison" and len(pairs) > 1:
            self._refuse_chained(rest[2])
        return self._read_chain(branch.children[0], pairs, level)

    def _read_prefix_or_power(self, branch: Branch, at: int, end: int, level: int) -> Syntax:
        args = tuple(self.read(child, level + 1) for child in branch.children if isinstance(child, Tree))
        if branch.data == "power":
            return Syntax("call", "power", at, end, args, infix=True)
        if branch.data == "negated":
            return Syntax("call", "not", at, end, args, infix=True)
        minus = str(branch.children[0]) == "-"
        if not minus:
            return args[0]
        if args[0].kind == "number" and not args[0].text.startswith("-"):
            return Syntax("number", f"-{args[0].text}", at, end)
        return Syntax("call", "neg", at, end, args, infix=True)

    def _read_chain(self, first: Branch | Token, pairs: list[tuple[str, Branch | Token]], level: int) -> Syntax:
        """Join a chain of one precedence from the left; three or more terms of a sum or product are one level."""
        chain = self.read(first, level + 1)
        for op, branch in pairs:
            chain = _join_infix(chain, op, self.read(branch, level + 1), chained=len(pairs) > 1)
        return chain

    def _refuse_chained(self, second: Branch | Token) -> None:
        assert isinstance(second, Token)
        raise ParseError(
            "comparisons cannot be chained",
            at=second.start_pos or 0,
            text=self.text,
            hint="Write (low < open) & (open < high); & and | bind tighter than comparisons, as in Python.",
        )


def _join_infix(first: Syntax, op: str, second: Syntax, chained: bool) -> Syntax:
    if op == "sub" and chained:
        op, second = "add", Syntax("call", "neg", second.at, second.end, (second,), infix=True)
    together = chained and first.infix and first.text == op and op in ("add", "mul", "and", "or") and first.open_chain
    args = (*first.args, second) if together else (first, second)
    return Syntax("call", op, first.at, second.end, args, infix=True, open_chain=chained)


def explain_syntax_error(unexpected: UnexpectedInput, text: str) -> ParseError:
    """Return the error that explains a syntax error of the parser."""
    at = unexpected.pos_in_stream or 0
    if isinstance(unexpected, UnexpectedCharacters):
        hint = FOREIGN_SIGN_HINTS.get(text[at], ALLOWED_HINT)
        return ParseError(f"'{text[at]}' is not part of the language", at=at, text=text, hint=hint)
    assert isinstance(unexpected, UnexpectedToken)
    token = unexpected.token
    wants_value = "NAME" in unexpected.accepts | unexpected.expected
    if token.type == "$END":
        return _build_early_end_error(text, wants_value)
    before = text[:at].rstrip()
    if text[at] == "=":
        return _build_equals_error(text, at)
    if token.type == "RPAR" and before.count("(") <= before.count(")"):
        return ParseError("this ')' closes nothing", at=at, text=text, hint="Take it away, or open one before it.")
    if wants_value:
        return _build_missing_value_error(text, at, before, str(token))
    if token.type == "COMMA":
        hint = "Write one formula; the arguments of a call stand in its parentheses: max(close, open)."
        return ParseError("a comma stands outside of any call", at=at, text=text, hint=hint)
    return _build_missing_operator_error(text, at, before, str(token))


def _build_equals_error(text: str, at: int) -> ParseError:
    """Return the error for a lone =; ``> =`` was meant as one sign."""
    apart = re.search(r"[<>!=]\s+$", text[:at])
    hint = f"The sign {apart[0][0]}= has no space in it." if apart else "Two values are compared by ==: close == high."
    return ParseError("'=' only names a keyword of a call", at=at, text=text, hint=hint)


def _build_missing_value_error(text: str, at: int, before: str, token: str) -> ParseError:
    """Return the error for a missing value."""
    last = _find_last_word(before)
    if token == last and token in ("&", "|"):
        hint = f"Write one {token}, and parentheses around comparisons: (close > open) {token} (returns > 0)."
        return ParseError(f"'{token}{token}' is not part of the language", at=at - 1, text=text, hint=hint)
    hint = (
        "Take the comma away, or write another argument."
        if last == ","
        else f"Example: {_find_example(before or token)}"
    )
    after = f" after '{last}'" if before else " at the start"
    return ParseError(f"a value is missing{after}, before '{token}'", at=at, text=text, hint=hint)


def _build_missing_operator_error(text: str, at: int, before: str, token: str) -> ParseError:
    """Return the error for two adjacent values, with the operator or comma that may be missing."""
    last = _find_last_word(before)
    message = f"an operator is missing between '{last}' and '{token}'"
    if last in OPERATORS and not OPERATORS[last].infix:
        hint = f"Arguments stand in parentheses: {OPERATORS[last].example}."
    elif last[0].isdigit() and len(before) == at and token[0].isalpha():
        hint = f"A number is written without a unit, and a window counts rows: {last}."
    elif re.search(r"[A-Za-z0-9_]\(", before) and before.count("(") > before.count(")"):
        message = f"a comma or an operator is missing between '{last}' and '{token}'"
        hint = "Arguments of a call have commas between them: ts_mean(returns, 20)."
    else:
        hint = "Two values need a sign between them: close * volume."
    return ParseError(message, at=at, text=text, hint=hint)


def _build_early_end_error(text: str, wants_value: bool) -> ParseError:
    end, last = len(text.rstrip()), _find_last_word(text)
    if wants_value:
        message = f"the formula ends after '{last}', where a value is missing"
        return ParseError(message, at=end, text=text, hint=f"Example: {_find_example(text)}")
    opened = _find_open_brackets(text)
    if not opened:
        return ParseError(f"the formula ends too early, after '{last}'", at=end, text=text)
    marks = "a closing ')' is" if len(opened) == 1 else f"{len(opened)} closing ')' are"
    hint = f"'{_find_name_before(text, opened[-1])}(' at column {opened[-1] + 1} is still open."
    return ParseError(f"{marks} missing at the end", at=end, text=text, hint=hint)


def _find_open_brackets(text: str) -> list[int]:
    """Return the places of the brackets that are still open."""
    opened: list[int] = []
    for at, mark in enumerate(text):
        if mark == "(":
            opened.append(at)
        elif mark == ")" and opened:
            opened.pop()
    return opened


def _find_name_before(text: str, bracket: int) -> str:
    """Return the name before a bracket; empty if the bracket only groups."""
    match = re.search(r"[A-Za-z_][A-Za-z0-9_]*$", text[:bracket])
    return match[0] if match else ""


def _find_example(before: str) -> str:
    """Return an example that uses the last sign, or the call that is still open."""
    word, opened = _find_last_word(before), _find_open_brackets(before)
    if word in ("(", ",") and opened:
        word = _find_name_before(before, opened[-1])
    examples = (operator.example for name, operator in OPERATORS.items() if word and word in (name, operator.infix))
    return next(examples, "rank(ts_mean(returns, 20))")


def _find_last_word(text: str) -> str:
    tokens = re.findall(r"[A-Za-z0-9_.]+|\*\*|[<>=!]=|[^\sA-Za-z0-9_.]", text)
    return tokens[-1] if tokens else ""
