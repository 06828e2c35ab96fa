"""Make an example of a call out of the rule that reads it."""

from __future__ import annotations

from collections.abc import Iterator

from ..language.syntax import Syntax
from .dialect import Dialect
from .rule import NUMBER_LETTERS, WINDOW_LETTERS, RewriteRule, kind_of
from .spelling import spell_formula


def example_of(rule: RewriteRule, dialect: Dialect) -> str:
    """Return a call that the rule reads: ``Corr($close, $volume, 20)``."""
    columns = iter([dialect.field_written(name) for name in ("close", "volume", "open", "high", "low")])
    truths = rule.own.text in ("and", "or", "not")
    return spell_formula(_fill_pattern(rule.foreign, dialect, columns, truths=truths), dialect)


def _fill_pattern(pattern: Syntax, dialect: Dialect, columns: Iterator[str], *, truths: bool) -> Syntax:
    kind = kind_of(pattern.text) if pattern.kind == "name" else ""
    if not kind:
        args = tuple(_fill_pattern(arg, dialect, columns, truths=truths) for arg in pattern.args)
        return Syntax(pattern.kind, pattern.text, 0, 0, args, infix=pattern.infix)
    if kind in WINDOW_LETTERS or kind in NUMBER_LETTERS:
        return Syntax("number", "20" if kind in WINDOW_LETTERS else "1", 0, 0)
    if kind == "g":
        return Syntax("name", f"{dialect.group_sign}sector", 0, 0)
    if (kind == "c" or truths) and "gt" in dialect.symbols:  # elsewhere numbers are conditions too
        sides = tuple(Syntax("name", dialect.field_written(name), 0, 0) for name in ("close", "open"))
        return Syntax("call", "gt", 0, 0, sides, infix=True)
    return Syntax("name", next(columns), 0, 0)
