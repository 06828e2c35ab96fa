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
from .node import Node, Path, walk
from .render import render
from .syntax import DEEPEST, LONGEST, read, too_deep
from .types import UnitMismatch, unit_of

LARGEST_SIZE = 200


def parse(text: str, *, fields: Collection[str] | None = None, groups: Collection[str] | None = None) -> Expression:
    """Read a formula into an `Expression`.

    Parameters
    ----------
    text : str
        The formula: ``rank(ts_std(returns, 30)) * -1``.
    fields : collection of str, optional
        The columns that may be read; by default the standard ones.
    groups : collection of str, optional
        The groupings that may be named; by default ``sector`` and ``industry``.

    Returns
    -------
    Expression
        The formula with its canonical form, id, unit and proof of causality.

    Raises
    ------
    ParseError
        With the place, the reason, the stage (``parse``, ``types`` or ``causal``) and a hint.
    """
    return _parse(
        text,
        frozenset(FIELDS if fields is None else fields),
        frozenset(GROUPS if groups is None else groups),
    )


@functools.lru_cache(maxsize=8192)
def _parse(text: str, fields: frozenset[str], groups: frozenset[str]) -> Expression:
    builder = Builder(text, fields, groups)
    root = builder.whole(read(text))
    _refuse_large(root, text)
    unit = _typed(root, text, builder.places)
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
        warnings=tuple(builder.warnings),
    )


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


def _typed(root: Node, text: str, places: dict[Path, int]) -> str:
    try:
        return unit_of(root).name
    except UnitMismatch as refusal:
        place = places.get(refusal.path, 0)
        raise ParseError(refusal.message, at=place, text=text, stage="types", hint=refusal.hint) from None


def _canonical(root: Node, text: str) -> Node:
    try:
        plain = canonical(root)
    except BadConstant as refusal:
        raise ParseError(str(refusal), text=text, stage="types") from None
    for _, node in walk(plain):
        if node.op == "number" and not in_range(node.value or 0.0):
            raise ParseError(f"a constant of the formula becomes {node.value:g}", text=text, stage="types")
    return plain
