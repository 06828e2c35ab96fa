"""Parse the source of a Python factor, within bounds of length, depth and numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..errors import ParseError

FACTOR_FUNCTION = "factor"
STAGE = "python"
MAX_CODE_CHARS = 8000
"""Limit on the characters of a factor's source."""
MAX_CODE_DEPTH = 60
MAX_CODE_PIECES = 4000
MAX_DOUBLE = 1e308
NUMBER_CHARS_SHOWN = 40
"""Characters of a number that errors show."""
CODE_LINE_PATTERN = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class|import|from|@)[ \t]*[\w.]", re.MULTILINE)
CONTRACT = 'Write: def factor(panel): return panel["close"].pct_change(5).rank(axis=1, pct=True)'


def is_python(text: str) -> bool:
    """Return whether a text is Python code and not a formula: it has a line with a definition or an import."""
    return CODE_LINE_PATTERN.search(text) is not None


def parse_code(text: str) -> ast.Module:
    """Return the syntax tree of a Python factor.

    Raises
    ------
    ParseError
        If it is too long, is no Python, is nested too deeply, or defines no `factor` of one argument.
    """
    if len(text) > MAX_CODE_CHARS:
        raise _build_error(f"the code has {len(text)} characters; {MAX_CODE_CHARS} are allowed", text, MAX_CODE_CHARS)
    tree = _parse(text)
    _refuse_large(tree, text)
    _refuse_numbers(tree, text)
    _refuse_wrong_signature(tree, text)
    return tree


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        place = _find_place(text, error.lineno or 1, error.offset or 1)
        if "integer string conversion" in error.msg:
            raise _build_range_error(error.lineno or 1, "a number of thousands of digits", text, place) from None
        raise _build_error(f"line {error.lineno or 1}: {error.msg}", text, place) from None
    except ValueError as error:  # a NUL before Python 3.11.4; half of a surrogate pair
        raise _build_error(f"line 1: {error}", text) from None
    except (MemoryError, RecursionError):
        raise _build_error("the code cannot be read: it is nested too deeply", text) from None


def _find_place(text: str, line: int, column: int) -> int:
    """Return the place of a line and column, counted from 0 over the whole text."""
    before = text.splitlines(keepends=True)[: line - 1]
    return min(sum(map(len, before)) + max(column - 1, 0), max(len(text) - 1, 0))


def _refuse_large(tree: ast.Module, text: str) -> None:
    """Refuse trees that are too deep: every later pass over the tree is recursive."""
    waiting: list[tuple[ast.AST, int]] = [(tree, 0)]
    count = 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > MAX_CODE_DEPTH or count > MAX_CODE_PIECES:
            hint = "Test its parts as factors of their own."
            raise _build_error("the code is too large, or nested too deeply", text, hint=hint)
        waiting += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


def _refuse_numbers(tree: ast.Module, text: str) -> None:
    """Refuse numbers that no double can hold: later passes turn numbers into doubles."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int | float | complex) or not isinstance(node, ast.Constant):
            continue
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        if any(abs(part) > MAX_DOUBLE for part in parts):
            excerpt = (ast.get_source_segment(text, node) or "a number")[:NUMBER_CHARS_SHOWN]
            raise _build_range_error(node.lineno, excerpt, text, _find_place(text, node.lineno, node.col_offset + 1))


def _build_range_error(line: int, number: str, text: str, place: int) -> ParseError:
    return _build_error(f"line {line}: {number} is out of range", text, place, "Numbers lie between -1e308 and 1e308.")


def _refuse_wrong_signature(tree: ast.Module, text: str) -> None:
    factors = list(_iter_factors(tree))
    if len(factors) != 1:
        message = "there is no function factor" if not factors else "factor is defined more than once"
        raise _build_error(message, text, hint=CONTRACT)
    signature = factors[0].args
    takes = [*signature.posonlyargs, *signature.args]
    if (
        len(takes) != 1
        or signature.kwonlyargs
        or signature.vararg
        or signature.kwarg
        or isinstance(factors[0], ast.AsyncFunctionDef)
    ):
        raise _build_error("factor takes exactly one argument, the panel", text, hint=CONTRACT)


def _iter_factors(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == FACTOR_FUNCTION:
            yield statement


def _build_error(message: str, text: str, at: int = 0, hint: str = CONTRACT) -> ParseError:
    return ParseError(message, at=at, text=text, stage=STAGE, hint=hint)
