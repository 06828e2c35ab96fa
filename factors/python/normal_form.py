"""Bring Python factors that differ in spelling alone to one syntax tree; its hash is the id of the factor.

Every step keeps the values to the last bit: names of arguments, variables and own functions are numbered in the order
in which they appear, docstrings and annotations are dropped, numbers are folded, the arguments of a sum or product of
frames are sorted, `a > b` is written `b < a`, and unreachable code and unread assignments are dropped. A step that
might change a value is not taken: two spellings of one factor may then have two ids, but two factors never have one.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType

from .source import FACTOR_FUNCTION

NAME_LOOKUPS = frozenset({"eval", "exec", "globals", "locals", "vars", "dir", "getattr", "setattr", "__import__"})
"""Functions that look up a variable by its name: code with one of them keeps its names."""
MAX_FOLDED_NUMBER = 10**12
MAX_PASSES = 8


def normalise_code(tree: ast.Module) -> ast.Module:
    """Return the tree in normal form; unparsing and parsing it again gives the same normal form."""
    plain, before = copy.deepcopy(tree), ""
    for _ in range(MAX_PASSES):  # the changes of one pass may enable further ones
        plain = _normalise_once(plain)
        now = serialise_tree(plain)
        if now == before:
            break
        before = now
    return plain


def _normalise_once(tree: ast.Module) -> ast.Module:
    plain = _UnreadDropper.drop_unread(_CodeStripper().visit(tree))
    if (
        not any(isinstance(node, ast.ClassDef) for node in ast.walk(plain))
        and not _find_names_read(plain) & NAME_LOOKUPS
    ):
        _rename(plain)
    ordered: ast.Module = ast.fix_missing_locations(_CodeSorter().visit(plain))
    return ordered


def _find_names_read(tree: ast.AST) -> frozenset[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return frozenset(node.id for node in names if isinstance(node.ctx, ast.Load))


def fingerprint_code(tree: ast.Module) -> str:
    """Return the SHA-256 of a normal form, in hexadecimal: equal in every version of Python."""
    return hashlib.sha256(f"python factor 1\n{serialise_tree(tree)}".encode()).hexdigest()


SILENT_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params", "returns", "annotation"})


def serialise_tree(node: object) -> str:
    """Write a tree with all its names and constants, in a form that does not depend on the version of Python."""
    if isinstance(node, ast.AST):
        inner = [
            f"{name}={serialise_tree(value)}" for name, value in ast.iter_fields(node) if name not in SILENT_FIELDS
        ]
        return f"{type(node).__name__}({','.join(inner)})"
    if isinstance(node, list):
        return f"[{','.join(map(serialise_tree, node))}]"
    return f"{type(node).__name__}:{node!r}"


# Parts without effect.

EXACT_STEPS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    }
)
"""Steps on numbers whose result equals that of the code itself, to the last bit and in its type."""


class _CodeStripper(ast.NodeTransformer):
    """Drops docstrings, annotations, bare constants and unreachable code, and folds numbers."""

    def visit(self, node: ast.AST) -> ast.AST:
        """Change the children first, then the blocks that contain them."""
        visited: ast.AST = super().visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(visited, name, None)
            if isinstance(block, list):
                setattr(
                    visited, name, _clean_block(block, may_be_empty=name != "body" or isinstance(visited, ast.Module))
                )
        return visited

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        value = _read_number(node.operand)
        if isinstance(node.op, ast.USub | ast.UAdd) and value is not None:
            return _build_literal(-value if isinstance(node.op, ast.USub) else value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        left, right, step = _read_number(node.left), _read_number(node.right), EXACT_STEPS.get(type(node.op))
        if left is None or right is None or step is None or max(abs(left), abs(right)) > MAX_FOLDED_NUMBER:
            return node
        try:
            return _build_literal(step(left, right))
        except (ZeroDivisionError, OverflowError):
            return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            return node
        return _clean_block(node.body if node.test.value else node.orelse, may_be_empty=True)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            return node
        return node.body if node.test.value else node.orelse


def _read_number(node: ast.AST) -> float | None:
    """Return the value of a number literal; None for anything else, also for a truth value."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value  # type: ignore[return-value]  # it is one of the two
    below = _read_number(node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None
    return None if below is None else -below


def _build_literal(value: float) -> ast.expr:
    """Return a number as Python parses it: a negative one with a unary minus."""
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)


def _clean_block(statements: list[ast.stmt], *, may_be_empty: bool) -> list[ast.stmt]:
    """Return a block without docstrings, `pass`, imports of modules in scope, and statements after a return."""
    block: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue
        if isinstance(statement, ast.Import) and all(
            (alias.name, alias.asname) in GIVEN_IMPORTS for alias in statement.names
        ):
            continue
        block.append(statement)
        if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
            break
    return block if block or may_be_empty else [ast.Pass()]


GIVEN_IMPORTS = frozenset({("numpy", "np"), ("pandas", "pd")})
"""Imports of modules that are in scope already."""


class _UnreadDropper(ast.NodeTransformer):
    """Drops assignments of harmless values to names that nothing reads, and functions that nothing calls."""

    def __init__(self, names: frozenset[str]) -> None:
        self._read = names

    @classmethod
    def drop_unread(cls, tree: ast.AST) -> ast.AST:
        names = _find_names_read(tree)
        if names & NAME_LOOKUPS:
            return tree
        stripped: ast.Module = cls(frozenset(names | {FACTOR_FUNCTION})).visit(tree)
        return stripped

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        unread = all(isinstance(target, ast.Name) and target.id not in self._read for target in node.targets)
        return ast.Pass() if unread and _is_harmless(node.value) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        if node.name not in self._read and not node.decorator_list:
            return ast.Pass()
        self.generic_visit(node)
        node.body = _clean_block(node.body, may_be_empty=False)
        return node

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.generic_visit(node)
        node.body = _clean_block(node.body, may_be_empty=True)
        return node


def _is_harmless(node: ast.expr) -> bool:
    """Return whether evaluating an expression has no side effect and cannot fail, except for a missing column."""
    kinds = (ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Subscript)
    return all(isinstance(piece, kinds) for piece in ast.walk(node))


# Names.


def _rename(tree: ast.AST) -> None:
    """Give numbers to arguments, variables and functions, in the order in which the code binds them."""
    names = _number_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.name = names.get(node.name, node.name)


def _number_names(tree: ast.AST) -> dict[str, str]:
    """Return a new name for each name that may change; empty if one of the new names occurs in the code."""
    pieces = _walk_in_order(tree)
    keywords = {piece.arg for piece in pieces if isinstance(piece, ast.keyword)}
    arguments = {piece.arg for piece in pieces if isinstance(piece, ast.arg)}
    fixed = {FACTOR_FUNCTION, *(keywords & arguments), *(name for piece in pieces for name in _list_fixed_names(piece))}
    bound = dict.fromkeys(name for piece in pieces for name in _list_bound_names(piece) if name not in fixed)
    names = {name: f"v{number}" for number, name in enumerate(bound)}
    others = {piece.id for piece in pieces if isinstance(piece, ast.Name)} | fixed | {str(piece) for piece in keywords}
    return {} if (others - {*names}) & {*names.values()} else names


def _list_fixed_names(node: ast.AST) -> list[str]:
    """Return the names that a piece of code binds or reads as text, which must stay."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    names = (getattr(node, "name", None), getattr(node, "rest", None))
    matched = isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping)
    return [name for name in names if name] if matched else []


def _walk_in_order(node: ast.AST) -> list[ast.AST]:
    """Return every node in the order of the text."""
    ordered, waiting = [], [node]
    while waiting:
        piece = waiting.pop()
        ordered.append(piece)
        waiting += reversed(list(ast.iter_child_nodes(piece)))
    return ordered


def _list_bound_names(node: ast.AST) -> list[str]:
    """Return the names that a node binds."""
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


# Order.


class _CodeSorter(ast.NodeTransformer):
    """Sorts commutative operands (sums and products of frames, `&` and `|`) and keyword arguments."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        free = isinstance(node.op, ast.Mult | ast.Add) and (_is_numeric(node.left) or _is_numeric(node.right))
        if free and serialise_tree(node.right) < serialise_tree(node.left):
            node.left, node.right = node.right, node.left
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        turned = TURNED_COMPARISONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if turned is None:
            return node
        return ast.copy_location(ast.Compare(node.comparators[0], [turned()], [node.left]), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if all(keyword.arg for keyword in node.keywords):
            node.keywords.sort(key=lambda keyword: str(keyword.arg))
        return node


TURNED_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = MappingProxyType({ast.Gt: ast.Lt, ast.GtE: ast.LtE})


def _is_numeric(node: ast.expr) -> bool:
    """Return whether a value is certainly a number or a frame: lists and texts do not commute."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.BinOp):
        parts = _is_numeric(node.left) or _is_numeric(node.right)
        return isinstance(node.op, ast.Sub | ast.Div | ast.Pow) or (isinstance(node.op, ast.Add) and parts)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    method = node.func if isinstance(node, ast.Call) else None
    return isinstance(method, ast.Attribute) and method.attr in FRAME_METHODS


FRAME_METHODS = frozenset(
    {"abs", "rank", "shift", "diff", "pct_change", "rolling", "mean", "std", "var", "sum", "median", "log", "exp",
     "fillna", "ffill", "clip", "where", "mask", "div", "sub", "add", "mul", "corr", "cov", "sqrt", "tanh", "sign"}
)  # fmt: skip  # a table
"""Methods that return a number or a frame for every owner."""
