"""Read the grammar file with lark, and say in our words what it stumbles over."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from .errors import ParseError
from .syntax import DEEPEST, Syntax, too_deep

Branch = Tree[Token]
Infix = Mapping[str, str]

SYMBOLS: Infix = MappingProxyType(
    {
        "+": "add", "-": "sub", "*": "mul", "/": "div",
        "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
    }
)  # fmt: skip
JOINERS: Infix = MappingProxyType({"disjunction": "or", "either": "or", "conjunction": "and", "both": "and"})
FOREIGN: Mapping[str, str] = MappingProxyType(
    {
        "^": "A power is written x ** 2.",
        "?": "A choice is written where(condition, x, y).",
        ":": "A choice is written where(condition, x, y).",
        "!": "Write ~x for not, and != for different.",
        "$": "Fields are written without $: close.",
        "%": "There is no remainder operator.",
        "[": "Use parentheses, and delay(x, d) for earlier days.",
        "]": "Use parentheses, and delay(x, d) for earlier days.",
        ";": "Write one formula, without a semicolon.",
        '"': "Names are written without quotes: group_rank(returns, sector).",
        "'": "Names are written without quotes: group_rank(returns, sector).",
    }
)
"""Signs of other languages, and what to write here."""


def read_tree(text: str) -> Syntax:
    """Read a formula that is neither empty nor too long."""
    try:
        tree: Branch = _grammar().parse(text)
    except UnexpectedInput as unexpected:
        raise _teach(unexpected, text) from None
    return _Reader(text).read(tree.children[0], 1)


@functools.cache
def _grammar() -> Lark:
    source = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(source, parser="lalr", propagate_positions=True, maybe_placeholders=False)


class _Reader:
    """Turn the parser's tree into syntax with places, counting levels; a chain of one precedence is one level."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, branch: Branch | Token, level: int) -> Syntax:
        assert isinstance(branch, Tree)
        at, end = int(branch.meta.start_pos), int(branch.meta.end_pos)
        if level > DEEPEST:
            raise too_deep(self.text, at)
        if branch.data in ("number", "name"):
            return Syntax(str(branch.data), str(branch.children[0]), at, end)
        if branch.data in ("call", "keyword"):
            name, *below = branch.children
            args = tuple(self.read(each, level + 1) for each in below)
            return Syntax(str(branch.data), str(name), at, end, args)
        if branch.data in ("signed", "negated", "power"):
            return self._prefix_or_power(branch, at, end, level)
        if branch.data in JOINERS:
            return self._chain(
                branch.children[0], [(JOINERS[branch.data], each) for each in branch.children[1:]], level
            )
        rest = branch.children[1:]
        pairs = [(SYMBOLS[str(rest[place])], rest[place + 1]) for place in range(0, len(rest), 2)]
        if branch.data == "comparison" and len(pairs) > 1:
            self._refuse_chained(rest[2])
        return self._chain(branch.children[0], pairs, level)

    def _prefix_or_power(self, branch: Branch, at: int, end: int, level: int) -> Syntax:
        args = tuple(self.read(each, level + 1) for each in branch.children if isinstance(each, Tree))
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

    def _chain(self, first: Branch | Token, pairs: list[tuple[str, Branch | Token]], level: int) -> Syntax:
        """Join a chain of one precedence from the left; three or more terms of a sum or product are one level."""
        left = self.read(first, level + 1)
        for op, branch in pairs:
            right = self.read(branch, level + 1)
            left = _joined(left, op, right, chained=len(pairs) > 1)
        return left

    def _refuse_chained(self, second: Branch | Token) -> None:
        assert isinstance(second, Token)
        raise ParseError(
            "comparisons cannot be chained",
            at=second.start_pos or 0, text=self.text,
            hint="Write (low < open) & (open < high); & and | bind tighter than comparisons, as in Python.",
        )  # fmt: skip


def _joined(left: Syntax, op: str, right: Syntax, chained: bool) -> Syntax:
    if op == "sub" and chained:
        op, right = "add", Syntax("call", "neg", right.at, right.end, (right,), infix=True)
    together = chained and left.infix and left.text == op and op in ("add", "mul", "and", "or") and left.open_chain
    args = (*left.args, right) if together else (left, right)
    return Syntax("call", op, left.at, right.end, args, infix=True, open_chain=chained)


def _teach(unexpected: UnexpectedInput, text: str) -> ParseError:
    """Say in our words what the parser stumbled over."""
    at = unexpected.pos_in_stream or 0
    if isinstance(unexpected, UnexpectedCharacters):
        return ParseError(f"'{text[at]}' is not part of the language", at=at, text=text, hint=FOREIGN.get(text[at], ""))
    assert isinstance(unexpected, UnexpectedToken)
    token = unexpected.token
    before = text[: at if token.type != "$END" else len(text)].rstrip()
    wants_value = "NAME" in unexpected.accepts | unexpected.expected
    if token.type == "$END":
        return _ended_early(text, wants_value)
    if text[at] == "=":
        return ParseError("'=' only names a keyword of a call", at=at, text=text, hint="Two values are compared by ==.")
    if token.type == "RPAR" and before.count("(") <= before.count(")"):
        return ParseError("this ')' closes nothing", at=at, text=text)
    if wants_value:
        after = f" after '{_last_word(before)}'" if before else " at the start"
        return ParseError(f"a value is missing{after}, before '{token}'", at=at, text=text, hint=_doubled(text, at))
    if token.type == "COMMA":
        return ParseError("a comma stands outside of any call", at=at, text=text)
    return ParseError(
        f"an operator is missing between '{_last_word(before)}' and '{token}'",
        at=at, text=text, hint="Two values need a sign between them: close * volume.",
    )  # fmt: skip


def _ended_early(text: str, wants_value: bool) -> ParseError:
    missing = text.count("(") - text.count(")")
    end = len(text.rstrip())
    if wants_value:
        return ParseError(f"the formula ends after '{_last_word(text)}', where a value is missing", at=end, text=text)
    marks = "a closing ')' is" if missing == 1 else f"{missing} closing ')' are"
    return ParseError(f"{marks} missing at the end", at=end, text=text)


def _last_word(text: str) -> str:
    found = re.findall(r"[A-Za-z0-9_.]+|[^\sA-Za-z0-9_.]", text)
    return found[-1] if found else ""


def _doubled(text: str, at: int) -> str:
    """Return a hint for && and ||."""
    return f"Write one {text[at]}." if text[at] in "&|" and text[at - 1 : at] == text[at] else ""
