"""Read a formula: names, arguments, units and days are checked, and every refusal says how to mend it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

from .canonical import canonical, core, unsigned
from .errors import ParseError, nearest
from .expression import Expression
from .interval import days_read
from .linear import BadConstant
from .node import Node, Path, field_node, group, number, walk
from .operators import OPERATORS
from .render import render, render_number
from .signature import Argument, Operator
from .syntax import DEEPEST, LONGEST, Syntax, read, too_deep
from .types import FIELD_UNITS, UnitMismatch, unit_of

FIELDS: tuple[str, ...] = tuple(FIELD_UNITS)
GROUPS: tuple[str, ...] = ("sector", "industry")
LARGEST_NUMBER = 1e15
LARGEST_SIZE = 200
SYNONYMS = {
    "correlation": "ts_corr", "corr": "ts_corr", "cov": "ts_cov", "covariance": "ts_cov", "ref": "delay", "lag": "delay",
    "shift": "delay", "mean": "ts_mean", "sma": "ts_mean", "ma": "ts_mean", "wma": "decay_linear", "std": "ts_std",
    "stddev": "ts_std", "pow": "power", "if": "where", "iff": "where", "cs_rank": "rank", "sum": "ts_sum",
    "argmax": "ts_argmax", "argmin": "ts_argmin", "indneutralize": "group_demean", "neutralize": "group_demean",
    "signedpower": "signed_power", "product": "ts_product", "diff": "delta", "pct_change": "ts_returns", "ln": "log",
    "adv20": "ts_mean(amount, 20)", "return": "returns", "ret": "returns", "price": "close", "vol": "volume",
    "market_cap": "cap", "mktcap": "cap",
}  # fmt: skip
"""What other languages call our operators and fields, to name the nearest when one is unknown."""


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
    builder = _Builder(text, fields, groups)
    root = builder.build(read(text), ())
    places = builder.places
    _refuse_large(root, text)
    unit = _typed(root, text, places)
    lookback = days_read(root)
    if lookback.hi > 0:
        raise ParseError(
            "the formula reads the future", text=text, stage="causal", hint="Windows count back: delay(x, 1)."
        )
    reads = frozenset(node.name for _, node in walk(root) if node.name)
    if not any(node.op == "field" for _, node in walk(root)):
        raise ParseError(
            "the formula reads no field", text=text, stage="types", hint=f"Fields: {', '.join(sorted(fields))}"
        )
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
        if node.op == "number" and not _in_range(node.value or 0.0):
            raise ParseError(f"a constant of the formula becomes {node.value:g}", text=text, stage="types")
    return plain


def _in_range(value: float) -> bool:
    return value == 0 or 1 / LARGEST_NUMBER <= abs(value) <= LARGEST_NUMBER


@dataclass
class _Builder:
    """Turn syntax into nodes; remembers the place of each for later refusals."""

    text: str
    fields: frozenset[str]
    groups: frozenset[str]
    places: dict[Path, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, message: str, piece: Syntax, hint: str = "", stage: str = "parse") -> ParseError:
        """Make the error that points at a piece."""
        return ParseError(message, at=piece.at, text=self.text, stage=stage, hint=hint)

    def build(self, piece: Syntax, path: Path) -> Node:
        """Return the node of a piece of syntax."""
        self.places[path] = piece.at
        if piece.kind == "number":
            return number(self._number(piece))
        if piece.kind == "name":
            return self._field(piece)
        return self._call(piece, path)

    def _number(self, piece: Syntax) -> float:
        value = float(piece.text)
        if not _in_range(value):
            raise self.refuse(f"{piece.text} is out of range", piece, "Numbers lie between 1e-15 and 1e15.")
        return value

    def _field(self, piece: Syntax) -> Node:
        if piece.text in self.fields:
            return field_node(piece.text)
        if piece.text in OPERATORS:
            operator = OPERATORS[piece.text]
            raise self.refuse(f"{piece.text} is an operator, not a field", piece, _lesson(operator))
        if piece.text in self.groups:
            raise self.refuse(
                f"{piece.text} is a grouping, not a field", piece, "It goes last: group_demean(returns, sector)."
            )
        raise self.refuse(f"unknown field '{piece.text}'", piece, self._meant(piece.text, self.fields, "Fields"))

    def _meant(self, name: str, known: Collection[str], title: str) -> str:
        guess = SYNONYMS.get(name.lower(), "")
        guess = guess if guess in known or "(" in guess else nearest(name, known)
        listed = f" {title}: {', '.join(sorted(known))}." if len(known) <= 20 else ""
        return ((f"Did you mean {guess}?" if guess else "") + listed).strip()

    def _call(self, piece: Syntax, path: Path) -> Node:
        operator = OPERATORS.get(piece.text)
        if operator is None:
            if piece.text in self.fields:
                raise self.refuse(
                    f"{piece.text} is a field and takes no arguments",
                    piece,
                    f"For an earlier day: delay({piece.text}, 1).",
                )
            raise self.refuse(
                f"unknown operator '{piece.text}'", piece, self._meant(piece.text, OPERATORS, "Operators")
            )
        given = [arg for arg in piece.args if arg.kind != "keyword"]
        named = self._named(piece, operator)
        positional = operator.positional
        if operator.takes_many:
            positional += (positional[-1],) * (len(given) - len(positional))
        slots = [argument for argument in positional if argument.name not in named]
        self._check_count(piece, operator, given, slots)
        paired = list(zip(slots, given, strict=False))
        nodes = [
            self._argument(argument, arg, operator, (*path, place))
            for place, (argument, arg) in enumerate(pair for pair in paired if pair[0].is_node)
        ]
        numbers = {argument.name: arg for argument, arg in paired if not argument.is_node} | named
        return Node(operator.name, tuple(nodes), self._numbers(operator, numbers))

    def _named(self, piece: Syntax, operator: Operator) -> dict[str, Syntax]:
        """Return the arguments that were given by name."""
        found: dict[str, Syntax] = {}
        known = {argument.name for argument in operator.numbers}
        for arg in piece.args:
            if arg.kind != "keyword":
                if found:
                    raise self.refuse("arguments by name come last", arg, _lesson(operator))
                continue
            if arg.text not in known:
                guess = nearest(arg.text, known)
                meant = f"Did you mean {guess}? " if guess else ""
                raise self.refuse(f"{operator.name} has no keyword '{arg.text}'", arg, meant + _lesson(operator))
            if arg.text in found:
                raise self.refuse(f"{arg.text} is given twice", arg, _lesson(operator))
            found[arg.text] = arg.args[0]
        return found

    def _check_count(self, piece: Syntax, operator: Operator, given: list[Syntax], slots: list[Argument]) -> None:
        needed = sum(argument.default is None for argument in slots)
        if needed <= len(given) <= len(slots):
            return
        all_needed = sum(argument.default is None for argument in operator.positional)
        plural = "" if all_needed == 1 else "s"
        takes = (
            f"{all_needed}" if all_needed == len(operator.positional) else f"{all_needed} or {len(operator.positional)}"
        )
        was = f"{len(piece.args)} {'was' if len(piece.args) == 1 else 'were'} given"
        place = given[len(slots)] if len(given) > len(slots) else piece
        raise self.refuse(f"{operator.name} takes {takes} argument{plural}; {was}", place, _lesson(operator))

    def _argument(self, argument: Argument, piece: Syntax, operator: Operator, path: Path) -> Node:
        if argument.kind != "group":
            return self.build(piece, path)
        self.places[path] = piece.at
        if piece.kind != "name" or piece.text not in self.groups:
            hint = self._meant(piece.text, self.groups, "Groupings")
            raise self.refuse(f"{operator.name} needs a grouping here, not '{piece.text}'", piece, hint)
        return group(piece.text)

    def _numbers(self, operator: Operator, pieces: dict[str, Syntax]) -> tuple[tuple[str, float], ...]:
        """Return the numbers of a call in the order of the signature, without those equal to their default."""
        found: dict[str, float] = {}
        for argument in operator.numbers:
            if argument.name in pieces:
                found[argument.name] = self._literal(argument, pieces[argument.name], operator)
        window = found.get("window")
        self._check_order(operator, found, pieces)
        defaults = {each.name: each.default for each in operator.numbers if each.keyword or each.default}
        if "min_periods" in defaults:
            defaults["min_periods"] = window
        return tuple((name, value) for name, value in found.items() if defaults.get(name) != value)

    def _check_order(self, operator: Operator, found: dict[str, float], pieces: dict[str, Syntax]) -> None:
        for smaller, larger in (("min_periods", "window"), ("low", "high")):
            if found.get(smaller, 0.0) > found.get(larger, float("inf")):
                raise self.refuse(f"{smaller} exceeds {larger}", pieces[smaller], _lesson(operator))

    def _literal(self, argument: Argument, piece: Syntax, operator: Operator) -> float:
        if piece.kind != "number":
            wanted = "a whole number of days" if argument.kind == "window" else "a number"
            raise self.refuse(f"{argument.name} of {operator.name} must be {wanted}", piece, _lesson(operator))
        value = self._number(piece)
        if argument.kind == "window" and value < 0:
            raise self._future(piece, operator)
        if argument.kind == "window" and value != int(value):
            self.warnings.append(f"the window {piece.text} of {operator.name} was floored to {int(value)}")
            value = float(int(value))
        if not argument.low <= value <= argument.high or (argument.whole and value != int(value)):
            raise self.refuse(f"{argument.name} of {operator.name} cannot be {piece.text}", piece, _bounds(argument))
        return value

    def _future(self, piece: Syntax, operator: Operator) -> ParseError:
        days = piece.text[1:]
        return self.refuse(
            f"{operator.name} with {piece.text} would read {days} day{'' if days == '1' else 's'} into the future",
            piece, f"Windows count back: {operator.example}.", "causal",
        )  # fmt: skip


def _lesson(operator: Operator) -> str:
    return f"Write {operator.signature}, for example {operator.example}."


def _bounds(argument: Argument) -> str:
    kind = "a whole number" if argument.whole else "a number"
    low, high = (render_number(each) if abs(each) < LARGEST_NUMBER else "" for each in (argument.low, argument.high))
    limits = f" from {low} to {high}" if low and high else f" of at least {low}" if low else ""
    return f"It is {kind}{limits}."
