"""Parse a formula: names, arguments, units and days are checked, and every error has a hint how to correct it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection

from ..describe.render import as_syntax, render
from ..errors import ParseError
from ..python import is_python, read_python
from .build import Builder, is_in_range
from .canonical import canonicalise, find_core, strip_sign
from .definitions import count_expanded_nodes, expand_tree
from .expression import Expression
from .interval import find_days_read
from .linear import BadConstant
from .node import STANDARD_FIELDS, STANDARD_GROUPS, Node, Path, walk
from .syntax import MAX_FORMULA_CHARS, MAX_FORMULA_DEPTH, Syntax, build_depth_error, read_syntax
from .types import Mismatch, judge_units

MAX_NODES = 200
CONSTANTS_HINT = "Constants are worked out when a formula is read: they must be numbers between 1e-15 and 1e15."


def parse(
    text: str,
    *,
    fields: Collection[str] | None = None,
    groups: Collection[str] | None = None,
    dialect: str = "alphaloom",
    refuse_units: bool = True,
) -> Expression:
    """Read a formula, or the code of a Python factor, into an `Expression`.

    Parameters
    ----------
    text : str
        The formula: ``rank(ts_std(returns, 30)) * -1``; or source that defines ``factor(panel)``.
    fields : collection of str, optional
        The columns that may be read; by default the standard ones.
    groups : collection of str, optional
        The groupings that may be named; by default ``sector`` and ``industry``.
    dialect : str
        The language of the formula (see `dialects`). A foreign formula keeps its meaning; `Expression.warnings` lists
        units that do not agree, and differences from the same words in our language.
    refuse_units : bool
        Whether units that do not agree are refused in Alphaloom's own language. A library may hold a formula from
        another dialect, so there they are warnings.

    Returns
    -------
    Expression
        The formula with its canonical form, id, unit and proof of causality.

    Raises
    ------
    ParseError
        With the place, the reason, the stage (``parse``, ``types``, ``causal``, ``dialect`` or ``python``) and a hint.
    """
    return _parse(
        text,
        frozenset(STANDARD_FIELDS if fields is None else fields),
        frozenset(STANDARD_GROUPS if groups is None else groups),
        dialect,
        refuse_units,
    )


def express(node: Node, *, fields: Collection[str] | None = None, groups: Collection[str] | None = None) -> Expression:
    """Return the `Expression` of a tree that was built, with every check that reading its text makes.

    The result is that of ``parse(render(node))``, except that a difference inside a sum keeps its own node. It takes
    about half as long, because no text is parsed.

    Raises
    ------
    ParseError
        As `parse`, without a place.
    """
    columns = frozenset(STANDARD_FIELDS if fields is None else fields)
    builder = Builder(render(node), columns, frozenset(STANDARD_GROUPS if groups is None else groups))
    return _prove_expression(builder, builder.whole(as_syntax(node)), forgiving=False)


def normalise_unchecked(
    node: Node, *, fields: Collection[str] | None = None, groups: Collection[str] | None = None
) -> tuple[Node, Node]:
    """Return the canonical tree and the core that `express` gives a tree, before names, units and days are checked.

    It takes a third of the time: whoever drops most trees for their form expresses the others only.

    Raises
    ------
    ParseError
        `express` would refuse the tree as well: it is too large, or a constant is no number.
    """
    if _has_keyword(node):
        expression = express(node, fields=fields, groups=groups)  # a keyword equal to its default is left out
        return expression.canonical, expression.core
    _refuse_large(node, "")
    _refuse_explosion(node, "")
    try:
        plain = canonicalise(node)
    except BadConstant as refusal:
        raise ParseError(str(refusal), stage="types", hint=CONSTANTS_HINT) from None
    return plain, find_core(plain)


def _has_keyword(node: Node) -> bool:
    return any(name != "window" for name, _ in node.params) or any(map(_has_keyword, node.args))


@functools.lru_cache(maxsize=2048)
def _parse(text: str, fields: frozenset[str], groups: frozenset[str], dialect: str, refuse_units: bool) -> Expression:
    if is_python(text):
        return read_python(text, fields, groups)
    builder = Builder(text, fields, groups)
    own = dialect == "alphaloom"
    root = _build_tree(builder, read_syntax(text) if own else _import_foreign(builder, dialect), dialect)
    return _prove_expression(builder, root, forgiving=not (own and refuse_units))


def _prove_expression(builder: Builder, root: Node, *, forgiving: bool) -> Expression:
    """Return the expression of a tree, after checks of its size, units and days."""
    text = builder.text
    _refuse_large(root, text)
    _refuse_explosion(root, text)
    unit = _check_units(builder, root, forgiving=forgiving)
    lookback = find_days_read(root)
    if lookback.hi > 0:
        raise ParseError(
            "the formula reads the future", text=text, stage="causal", hint="Windows count back: delay(x, 1)."
        )
    reads = _read_names(builder, root)
    plain = _find_canonical(builder, root)
    _refuse_large(plain, text)
    canonical_text = render(plain)
    if len(canonical_text) > MAX_FORMULA_CHARS:
        message = (
            f"the formula has {len(canonical_text)} characters in its canonical form; {MAX_FORMULA_CHARS} are allowed"
        )
        raise ParseError(message, text=text, hint="Shorten it: what repeats a long part is written out each time.")
    return Expression(
        text=text,
        root=root,
        canonical=plain,
        canonical_text=canonical_text,
        id="f" + hashlib.sha256(canonical_text.encode()).hexdigest()[:16],
        unsigned=strip_sign(plain),
        core=find_core(plain),
        lookback=lookback,
        warmup=-lookback.lo,
        unit=unit,
        size=root.size,
        depth=root.depth,
        constants=sum((node.op == "number") + len(node.params) for _, node in walk(root)),
        fields=reads,
        warnings=tuple(dict.fromkeys(builder.warnings)),
    )


def _build_tree(builder: Builder, syntax: Syntax, dialect: str) -> Node:
    """Return the tree; if it has mistakes, its units are judged too, so that all mistakes are reported at once."""
    try:
        return builder.whole(syntax)
    except ParseError as error:
        if dialect == "alphaloom":
            units = (_build_unit_error(builder, mismatch) for mismatch in judge_units(builder.root).mismatches)
            error.others = tuple(sorted((*error.others, *units), key=lambda mistake: mistake.at))
        raise


def _import_foreign(builder: Builder, dialect: str) -> Syntax:
    """Read a formula of another language into our syntax; differences become warnings."""
    from ..dialects import read_foreign  # most formulas are our own

    imported = read_foreign(builder.text, dialect, fields=builder.fields, groups=builder.groups)
    builder.warnings += imported.notes
    return imported.syntax


def _read_names(builder: Builder, root: Node) -> frozenset[str]:
    """Return the columns and groupings that are read, including those of definitions."""
    leaves = [node for _, node in walk(expand_tree(root))]
    columns = {node.name for node in leaves if node.op == "field"}
    if not columns:
        hint = f"Fields: {', '.join(sorted(builder.fields))}"
        raise ParseError("the formula reads no field", text=builder.text, stage="types", hint=hint)
    if lacking := sorted(columns - builder.fields):
        raise _build_definition_error(builder, root, lacking[0])
    return frozenset(columns | {node.name for node in leaves if node.op == "group"})


def _build_definition_error(builder: Builder, root: Node, field: str) -> ParseError:
    """Return the error that points at the operator whose definition reads a missing column."""
    readers = [
        (path, node) for path, node in walk(root) if any(leaf.name == field for _, leaf in walk(expand_tree(node)))
    ]
    path, node = max(readers, key=lambda reader: len(reader[0]))
    return ParseError(
        f"{node.op} reads the field {field}, which is not there",
        at=builder.places.get(path, 0),
        text=builder.text,
        hint=f"Fields: {', '.join(sorted(builder.fields))}. What it stands for: alphaloom factor operators {node.op}",
    )


def _refuse_large(root: Node, text: str) -> None:
    if root.depth > MAX_FORMULA_DEPTH:
        raise build_depth_error(text, 0)
    if root.size > MAX_NODES:
        raise ParseError(
            f"the formula has {root.size} nodes; {MAX_NODES} are allowed",
            text=text,
            hint="Test its parts as factors of their own.",
        )


def _refuse_explosion(root: Node, text: str) -> None:
    """Refuse a formula that is too large with its definitions expanded, before they are expanded."""
    size = count_expanded_nodes(root)
    if size > MAX_NODES:
        raise ParseError(
            f"the formula has {size} nodes when its operators are written out; {MAX_NODES} are allowed",
            text=text,
            hint="Operators that stand for a formula grow fast inside each other: "
            "`alphaloom factor operators NAME` shows it.",
        )


def _check_units(builder: Builder, root: Node, *, forgiving: bool) -> str:
    """Return the unit of a tree; units that disagree are errors, or warnings if `forgiving`."""
    judgement = judge_units(root)
    refused = [mismatch for mismatch in judgement.mismatches if mismatch.firm or not forgiving]
    if refused:
        error, *others = sorted(
            (_build_unit_error(builder, mismatch) for mismatch in refused), key=lambda error: error.at
        )
        error.others = tuple(others)
        raise error
    builder.warnings += [f"units do not agree: {mismatch.message}" for mismatch in judgement.mismatches]
    return judgement.unit.name


def _build_unit_error(builder: Builder, mismatch: Mismatch) -> ParseError:
    """Return the error for a mismatch, with its place."""
    place = builder.places.get(mismatch.path, 0)
    return ParseError(mismatch.message, at=place, text=builder.text, stage="types", hint=mismatch.hint)


def _find_canonical(builder: Builder, root: Node) -> Node:
    try:
        plain = canonicalise(root)
    except BadConstant as refusal:
        place = builder.places.get(_find_bad_constant(root), 0)
        raise ParseError(str(refusal), at=place, text=builder.text, stage="types", hint=CONSTANTS_HINT) from None
    for _, node in walk(plain):
        if node.op == "number" and not is_in_range(node.value or 0.0):
            raise ParseError(
                f"a constant of the formula becomes {node.value:g}",
                text=builder.text,
                stage="types",
                hint=CONSTANTS_HINT,
            )
    return plain


def _find_bad_constant(root: Node) -> Path:
    """Return the path of the innermost step whose constants cannot be folded."""
    deepest: Path = ()
    for path, node in walk(root):
        try:
            canonicalise(node)
        except BadConstant:
            deepest = max(deepest, path, key=len)
    return deepest
