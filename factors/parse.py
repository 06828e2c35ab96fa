"""Read a formula: names, arguments, units and days are checked, and every refusal says how to mend it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection

from .build import Builder, in_range
from .canonical import canonical, core, unsigned
from .definitions import written_out
from .errors import ParseError
from .expression import Expression
from .fields import FIELDS, GROUPS
from .interval import days_read
from .linear import BadConstant
from .node import Node, walk
from .render import render
from .syntax import DEEPEST, LONGEST, Syntax, read, too_deep
from .types import UnitMismatch, forgiven, unit_of

LARGEST_SIZE = 200


def parse(
    text: str,
    *,
    fields: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    dialect: str = "alphaloom",
) -> Expression:
    """Read a formula into an `Expression`.

    Parameters
    ----------
    text : str
        The formula: ``rank(ts_std(returns, 30)) * -1``.
    fields : collection of str, optional
        The columns that may be read; by default the standard ones.
    groups : collection of str, optional
        The groupings that may be named; by default ``sector`` and ``industry``.
    dialect : str
        The language that the formula is written in (see `dialects`). What a foreign formula means is kept; where its
        units do not agree, and where it differs from what the same words mean here, `Expression.warnings` says so.

    Returns
    -------
    Expression
        The formula with its canonical form, id, unit and proof of causality.

    Raises
    ------
    ParseError
        With the place, the reason, the stage (``parse``, ``types``, ``causal`` or ``dialect``) and a hint.
    """
    return _parse(
        text,
        frozenset(FIELDS if fields is None else fields),
        frozenset(GROUPS if groups is None else groups),
        dialect,
    )


@functools.lru_cache(maxsize=8192)
def _parse(text: str, fields: frozenset[str], groups: frozenset[str], dialect: str) -> Expression:
    builder = Builder(text, fields, groups)
    own = dialect == "alphaloom"
    root = builder.whole(read(text) if own else _imported(builder, dialect))
    _refuse_large(root, text)
    unit = _typed(builder, root, forgiving=not own)
    lookback = days_read(root)
    if lookback.hi > 0:
        raise ParseError(
            "the formula reads the future", text=text, stage="causal", hint="Windows count back: delay(x, 1)."
        )
    reads = _read_names(root, text, fields)
    plain = _canonical(root, text)
    _refuse_large(plain, text)
    canonical_text = render(plain)
    if len(canonical_text) > LONGEST:
        raise ParseError(f"the formula is longer than {LONGEST} characters in its canonical form", text=text)
    return Expression(
        text=text,
        root=root,
        canonical=plain,
        canonical_text=canonical_text,
        id="f" + hashlib.sha256(canonical_text.encode()).hexdigest()[:16],
        unsigned=unsigned(plain),
        core=core(plain),
        lookback=lookback,
        warmup=-lookback.lo,
        unit=unit,
        size=root.size,
        depth=root.depth,
        constants=sum((node.op == "number") + len(node.params) for _, node in walk(root)),
        fields=reads,
        warnings=tuple(dict.fromkeys(builder.warnings)),
    )


def _imported(builder: Builder, dialect: str) -> Syntax:
    """Read a formula of another language into our syntax; what differs is a warning."""
    from .dialects import read_foreign  # most formulas are our own

    imported = read_foreign(builder.text, dialect, fields=builder.fields, groups=builder.groups)
    builder.warnings += imported.notes
    return imported.syntax


def _read_names(root: Node, text: str, fields: frozenset[str]) -> frozenset[str]:
    """Return the columns and groupings that are read, those of definitions too."""
    leaves = [node for _, node in walk(written_out(root))]
    columns = {node.name for node in leaves if node.op == "field"}
    if not columns:
        hint = f"Fields: {', '.join(sorted(fields))}"
        raise ParseError("the formula reads no field", text=text, stage="types", hint=hint)
    if lacking := sorted(columns - fields):
        hint = f"An operator of the formula needs it. Fields: {', '.join(sorted(fields))}"
        raise ParseError(f"the field {lacking[0]} may not be read here", text=text, hint=hint)
    return frozenset(columns | {node.name for node in leaves if node.op == "group"})


def _refuse_large(root: Node, text: str) -> None:
    if root.depth > DEEPEST:
        raise too_deep(text, 0)
    if root.size > LARGEST_SIZE:
        raise ParseError(f"the formula has {root.size} nodes; {LARGEST_SIZE} are allowed", text=text)


def _typed(builder: Builder, root: Node, *, forgiving: bool) -> str:
    """Return the unit of a tree; units that disagree are refused, or are warnings of a formula from elsewhere."""
    try:
        if not forgiving:
            return unit_of(root).name
        unit, mismatches = forgiven(root)
    except UnitMismatch as refusal:
        place = builder.places.get(refusal.path, 0)
        raise ParseError(refusal.message, at=place, text=builder.text, stage="types", hint=refusal.hint) from None
    builder.warnings += [f"units do not agree: {mismatch.message}" for mismatch in mismatches]
    return unit.name


def _canonical(root: Node, text: str) -> Node:
    try:
        plain = canonical(root)
    except BadConstant as refusal:
        raise ParseError(str(refusal), text=text, stage="types") from None
    for _, node in walk(plain):
        if node.op == "number" and not in_range(node.value or 0.0):
            raise ParseError(f"a constant of the formula becomes {node.value:g}", text=text, stage="types")
    return plain
