"""Read a Python factor into an `Expression`, as `parse` does for formulas."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ..errors import ParseError, nearest_name
from ..language.canonical import canonicalise, find_core, strip_sign
from ..language.expression import Expression
from ..language.interval import Interval, find_days_read
from ..language.linear import BadConstant
from ..language.node import Node
from .lint import lint_code
from .meaning import Meaning
from .normal_form import fingerprint_code, normalise_code
from .source import CONTRACT, STAGE, parse_code

UNIVERSE_COLUMN = "universe"
"""A pseudo-column that a factor may read: 1 where a name is in the universe of the day, 0 elsewhere."""
MAX_LOOKBACK_DAYS = 2000
FREE_NUMBERS = frozenset({0, 1, -1})
"""Numbers that do not count as free constants: places, signs, shares of one."""
UNCHOSEN_KEYWORDS = frozenset({"axis", "min_periods", "ddof", "raw", "pct"})


def read_python(text: str, fields: Collection[str], groups: Collection[str]) -> Expression:
    """Read the source of a Python factor.

    Parameters
    ----------
    text : str
        Source that defines `factor(panel)`.
    fields, groups : collection of str
        The columns and groupings of the panel; a grouping is read as a further column, of codes.

    Returns
    -------
    Expression
        With `code`, and an id that does not depend on the spelling of the code. `fields` are all columns that it can
        read: the sandbox gets only these. `warmup` is estimated from the numbers in the code; the true warm-up is only
        known from running it.

    Raises
    ------
    ParseError
        With the stage ``python``: if it is no such code, or names a missing column.
    """
    tree = parse_code(text)
    meaning = Meaning(tree)
    meaning.root()
    reads = _find_columns_read(meaning, text, fields, groups)
    plain = normalise_code(tree)
    root = Meaning(plain).root()
    canonical = _canonicalise_if_possible(root)
    distinct, days = _find_distinct_steps(root), _estimate_days(root, plain)
    return Expression(
        text=text,
        root=root,
        canonical=canonical,
        canonical_text=ast.unparse(plain),
        id="f" + fingerprint_code(plain)[:16],
        unsigned=strip_sign(canonical),
        core=find_core(canonical),
        lookback=Interval(-days, 0),
        warmup=days,
        unit="python",
        size=len(distinct),
        depth=root.depth,
        constants=_count_chosen(plain),
        fields=frozenset(reads),
        warnings=_lint(text, {*fields, *groups, UNIVERSE_COLUMN}),
        code=text,
        reads_members=meaning.reads_all or UNIVERSE_COLUMN in meaning.fields,
    )


def _lint(text: str, columns: Collection[str]) -> tuple[str, ...]:
    """Return the remarks of the linter, by line; they are warnings, because the sandbox is the boundary."""
    return tuple(f"line {remark.line}: {remark.message}. {remark.hint}" for remark in lint_code(text, columns))


def _find_columns_read(meaning: Meaning, text: str, fields: Collection[str], groups: Collection[str]) -> set[str]:
    """Return the columns that the code can read."""
    available = {*fields, *groups}
    lacking = sorted(meaning.fields - available - {UNIVERSE_COLUMN})
    if lacking:
        close = nearest_name(lacking[0], available)
        hint = f"Did you mean {close}? " if close else ""
        listed = ", ".join(sorted(available))
        place = max(text.find(lacking[0]), 0)
        raise ParseError(
            f"the panel has no column {lacking[0]!r}",
            at=place,
            text=text,
            stage=STAGE,
            hint=f"{hint}Columns: {listed}.",
        )
    columns = set(fields) if meaning.reads_all else meaning.fields - {UNIVERSE_COLUMN}
    if not columns - {*groups}:
        raise ParseError("the code reads no column of the panel", text=text, stage=STAGE, hint=CONTRACT)
    return columns


def _canonicalise_if_possible(root: Node) -> Node:
    """Return the canonical form; the tree itself if its constants cannot be folded."""
    try:
        return canonicalise(root)
    except BadConstant:
        return root


def _find_distinct_steps(root: Node) -> set[Node]:
    """Return the distinct steps of a tree: in code, a value that is used twice has a name."""
    steps: set[Node] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node not in steps:
            steps.add(node)
            waiting += node.args
    return steps


def _iter_chosen(tree: ast.AST) -> Iterator[float]:
    """Yield the free constants of the code."""
    for name, value in ast.iter_fields(tree):
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.keyword) and child.arg in UNCHOSEN_KEYWORDS:
                continue
            if (
                isinstance(child, ast.Constant)
                and type(child.value) in (int, float)
                and child.value not in FREE_NUMBERS
            ):
                yield float(child.value)  # type: ignore[arg-type]  # it is one of the two
            elif isinstance(child, ast.AST) and name != "annotation":
                yield from _iter_chosen(child)


def _count_chosen(tree: ast.AST) -> int:
    return sum(1 for _ in _iter_chosen(tree))


def _estimate_days(root: Node, tree: ast.AST) -> int:
    """Estimate the days that the code looks back, from its operators and the whole numbers in it."""
    whole_numbers = [
        int(value) for value in _iter_chosen(tree) if value == int(value) and 0 < value <= MAX_LOOKBACK_DAYS
    ]
    return max(-find_days_read(root).lo, max(whole_numbers, default=0))
