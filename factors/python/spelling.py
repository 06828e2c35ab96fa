"""What the names of some code stand for, whatever it calls them: `import numpy as n` makes `n.load` numpy.load."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["Spelling", "constant", "is_negative", "keyword"]

SHORT_MODULE_NAMES = {"np": "numpy", "pd": "pandas"}


class Spelling:
    """The names that code gives to modules and to what is in them, and those that it makes itself.

    Attributes
    ----------
    stored : frozenset of str
        Names that are assigned, defined or taken as an argument.
    seeds : bool
        Numpy's global generator is given a seed somewhere.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._names = dict(SHORT_MODULE_NAMES)
        self.stored = frozenset(_stored_names(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self._names |= {alias.asname: alias.name for alias in node.names if alias.asname}
            elif isinstance(node, ast.ImportFrom):
                self._names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
                self._rename(node)
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
        self.seeds = any(self.of(call.func) == "numpy.random.seed" and call.args for call in calls)

    def _rename(self, node: ast.Assign) -> None:
        """Follow `load = np.load`."""
        path = self.of(node.value)
        if path.partition(".")[0] in {"numpy", "pandas"}:
            self._names |= {target.id: path for target in node.targets if isinstance(target, ast.Name)}

    def of(self, node: ast.AST) -> str:
        """Return the dotted name that an expression stands for; what cannot be told is `?`."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.of(node.value)}.{node.attr}"
        return "?"


def _stored_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def constant(node: ast.AST | None) -> object:
    """Return the value of a constant, None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return what a call gives for a keyword."""
    return next((word.value for word in call.keywords if word.arg == name), None)


def is_negative(node: ast.AST | None) -> bool:
    """Tell whether an expression is written as a negative number."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand)
        return isinstance(value, int | float) and value > 0
    return False
