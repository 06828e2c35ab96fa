"""Type a formula by units, so that a price is never added to a volume.

A unit is price to some power times volume to some power, or a dimensionless kind. Fields have units, each operator
names a rule of `UNIT_RULES`, and a rule refuses arguments that do not agree, with a hint how to correct them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from ..describe.render import render
from ..operators import OPERATORS
from .build import UNREADABLE_NODE
from .definitions import expand_operator
from .node import Node, Path
from .operator import Operator

Exponent = Fraction
NO_EXPONENT = Fraction(0)


@dataclass(frozen=True, slots=True)
class Unit:
    """A power of price times a power of volume, or, where both are 0, a kind.

    Kinds are ``return``, ``ratio``, ``rank``, ``bool``, ``number`` and ``group``; all but the last mix freely.
    """

    price: Exponent = NO_EXPONENT
    volume: Exponent = NO_EXPONENT
    kind: str = ""

    @property
    def is_pure(self) -> bool:
        """Return whether the unit is dimensionless."""
        return self.price == NO_EXPONENT and self.volume == NO_EXPONENT

    @property
    def name(self) -> str:
        """Return the unit in words: ``price``, ``money``, ``price^2``, ``money^-1``, ``rank``."""
        if self.is_pure:
            return self.kind
        if self.price == self.volume:
            return _format_power("money", self.price)
        return "*".join(_format_power(name, to) for name, to in (("price", self.price), ("volume", self.volume)) if to)

    def times(self, other: Unit, sign: int = 1) -> Unit:
        """Return the unit of a product, or of a ratio for `sign` -1."""
        price, volume = self.price + sign * other.price, self.volume + sign * other.volume
        return Unit(price, volume, "ratio" if price == volume == NO_EXPONENT else "")

    def to(self, exponent: Exponent) -> Unit:
        """Return the unit of a power."""
        return RATIO_UNIT if self.is_pure else Unit(self.price * exponent, self.volume * exponent)


class UnitMismatch(Exception):
    """A rule refused its arguments; `position` is the argument to point at.

    `firm` marks formulas without any meaning, such as an operator over days or names of a constant, as opposed to units
    that disagree.
    """

    def __init__(self, message: str, hint: str, position: int = 0, *, firm: bool = False) -> None:
        super().__init__(message)
        self.message, self.hint, self.position, self.firm = message, hint, position, firm
        self.path: Path = ()


def _format_power(name: str, to: Exponent) -> str:
    return name if to == 1 else f"{name}^{float(to):g}"


PRICE_UNIT, VOLUME_UNIT, MONEY_UNIT = Unit(Fraction(1)), Unit(NO_EXPONENT, Fraction(1)), Unit(Fraction(1), Fraction(1))
RETURN_UNIT, RATIO_UNIT, RANK_UNIT, BOOL_UNIT, NUMBER_UNIT, GROUP_UNIT = (
    Unit(kind=kind) for kind in ("return", "ratio", "rank", "bool", "number", "group")
)

FIELD_UNITS: Mapping[str, Unit] = MappingProxyType(
    {
        "open": PRICE_UNIT,
        "high": PRICE_UNIT,
        "low": PRICE_UNIT,
        "close": PRICE_UNIT,
        "close_raw": PRICE_UNIT,
        "vwap": PRICE_UNIT,
        "volume": VOLUME_UNIT,
        "returns": RETURN_UNIT,
        "amount": MONEY_UNIT,
        "cap": MONEY_UNIT,
    }
)
"""The standard fields; any other column of a panel is a ratio."""

Units = tuple[Unit, ...]
UnitRule = Callable[[Node, Units], Unit]

MEND_HINT = "Make it dimensionless first: rank({x}), zscore({x}), or a ratio such as {x} / ts_mean({x}, 20)."


def _shorten_formula(node: Node) -> str:
    text = render(node)
    return text if len(text) <= 40 else f"{node.op}(...)"


def _is_zero(node: Node) -> bool:
    return node.op == "number" and node.value == 0


def _find_common_unit(node: Node, units: Units, first: int = 0) -> Unit:
    """Return the common unit of the arguments from `first` on; a literal 0 has any unit."""
    places = [place for place in range(first, len(units)) if not _is_zero(node.args[place])]
    if not places:
        return NUMBER_UNIT
    unit = units[places[0]]
    for place in places[1:]:
        if (unit.price, unit.volume) != (units[place].price, units[place].volume):
            raise _build_disagreement(node, units, places[0], place)
    kinds = {units[place].kind for place in places} - {"number"}
    if not unit.is_pure or not kinds:
        return unit
    return Unit(kind=kinds.pop() if len(kinds) == 1 else "ratio")


VERBS: Mapping[str, str] = MappingProxyType(
    {"add": "added", "sub": "subtracted", "max": "compared", "min": "compared", "where": "branches of one choice"}
)


def _describe_part(node: Node, unit: Unit) -> str:
    """Return a part of a formula with its unit, in words."""
    if unit.kind:
        kind = {"number": "a plain number", "bool": "a condition"}.get(unit.kind, f"a {unit.kind}")
        return f"{_shorten_formula(node)} is {kind}"
    return f"{_shorten_formula(node)} is in units of {unit.name}"


def _build_disagreement(node: Node, units: Units, first: int, second: int) -> UnitMismatch:
    a, b = node.args[first], node.args[second]
    verb = VERBS.get(node.op, "compared")
    message = f"{_describe_part(a, units[first])} and {_describe_part(b, units[second])}: they cannot be {verb}"
    culprit = a if not units[first].is_pure else b
    return UnitMismatch(message, MEND_HINT.format(x=_shorten_formula(culprit)), second)


def _apply_common(node: Node, units: Units) -> Unit:
    unit = _find_common_unit(node, units)
    return RATIO_UNIT if unit.kind == "bool" or (unit.kind == "rank" and node.op in ("add", "sub")) else unit


def _apply_same(node: Node, units: Units) -> Unit:
    """Keep the unit; a result computed from truth values is a ratio, except the truth of an earlier day."""
    return RATIO_UNIT if units[0].kind == "bool" and node.op != "delay" else units[0]


def _apply_product(_: Node, units: Units) -> Unit:
    total = units[0]
    for unit in units[1:]:
        both = total.times(unit)
        pure = unit if total.kind in ("number", "bool") else total if unit.kind in ("number", "bool") else both
        total = pure if both.is_pure else both
    return RATIO_UNIT if total.kind == "bool" and len(units) > 1 else total


def _apply_quotient(_: Node, units: Units) -> Unit:
    x, y = units
    return x if y.kind == "number" and x.kind != "bool" else x.times(y, -1)


def _apply_power(node: Node, units: Units) -> Unit:
    """Type a power: only a literal number may be the exponent of a dimension."""
    base, exponent = units
    if not exponent.is_pure:
        raise UnitMismatch(
            f"the exponent {_shorten_formula(node.args[1])} is in units of {exponent.name}", MEND_HINT.format(x="it"), 1
        )
    if base.is_pure:
        return RATIO_UNIT
    raised = node.args[1]
    if raised.op != "number" or raised.value is None:
        raise UnitMismatch(
            f"{_shorten_formula(node.args[0])} is in units of {base.name}: only a literal number can be its exponent",
            MEND_HINT.format(x=_shorten_formula(node.args[0])),
        )
    return base.to(Fraction(repr(raised.value)))


def _apply_pure(node: Node, units: Units) -> Unit:
    if not units[0].is_pure:
        raise UnitMismatch(
            f"{node.op} needs a dimensionless argument; {_describe_part(node.args[0], units[0])}",
            MEND_HINT.format(x=_shorten_formula(node.args[0])),
        )
    return RATIO_UNIT


def _apply_comparison(node: Node, units: Units) -> Unit:
    _find_common_unit(node, units)
    return BOOL_UNIT


def _apply_choice(node: Node, units: Units) -> Unit:
    return _find_common_unit(node, units, first=1)


def _make_constant_rule(unit: Unit) -> UnitRule:
    return lambda _node, _units: unit


UNIT_RULES: Mapping[str, UnitRule] = MappingProxyType(
    {
        "same": _apply_same,
        "common": _apply_common,
        "product": _apply_product,
        "quotient": _apply_quotient,
        "quotient_self": _make_constant_rule(RATIO_UNIT),
        "power": _apply_power,
        "root": lambda _, units: units[0].to(Fraction(1, 2)),
        "square": lambda _, units: units[0].to(Fraction(2)),
        "pure": _apply_pure,
        "comparison": _apply_comparison,
        "logic": _make_constant_rule(BOOL_UNIT),
        "choice": _apply_choice,
        "number": _make_constant_rule(NUMBER_UNIT),
        "ratio": _make_constant_rule(RATIO_UNIT),
        "return": _make_constant_rule(RETURN_UNIT),
        "rank": _make_constant_rule(RANK_UNIT),
    }
)
"""The unit rules, by the name in `Operator.unit`."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A place of a formula where units do not agree or an operator cannot be used; see `UnitMismatch`."""

    message: str
    hint: str
    path: Path
    firm: bool = False

    def below(self, place: int) -> Mismatch:
        """Return the mismatch with its path from the operator in whose argument it is."""
        return replace(self, path=(place, *self.path))


@dataclass(frozen=True, slots=True)
class UnitJudgement:
    """The unit of a formula and all its mismatches.

    `sure` is False where the unit is a guess after a mismatch: disagreement with a guess is not reported.
    """

    unit: Unit
    mismatches: tuple[Mismatch, ...] = ()
    sure: bool = True


SETTLED_UNIT_RULES = frozenset({"comparison", "logic", "number", "pure", "quotient_self", "rank", "ratio", "return"})
"""Rules whose result does not depend on the units of the arguments."""


def find_unit(node: Node) -> Unit:
    """Return the unit of an expression.

    Raises
    ------
    UnitMismatch
        If units do not agree, a condition is not true or false, or an operator over days or names gets a constant;
        `path` is the place.
    """
    judgement = judge_units(node)
    if judgement.mismatches:
        raise _build_refusal(judgement.mismatches[0])
    return judgement.unit


def _build_refusal(mismatch: Mismatch) -> UnitMismatch:
    refusal = UnitMismatch(mismatch.message, mismatch.hint, firm=mismatch.firm)
    refusal.path = mismatch.path
    return refusal


@functools.lru_cache(maxsize=4096)
def judge_units(node: Node) -> UnitJudgement:
    """Return the unit of a formula with every mismatch in it, arguments first.

    Each subtree is judged once: nested definitions repeat their arguments exponentially often.
    """
    if node.is_leaf:
        return UnitJudgement(_find_leaf_unit(node), sure=node != UNREADABLE_NODE)
    parts = [judge_units(arg) for arg in node.args]
    units = tuple(part.unit for part in parts)
    mismatches = tuple(mismatch.below(place) for place, part in enumerate(parts) for mismatch in part.mismatches)
    operator = OPERATORS[node.op]
    if misfits := tuple(_iter_misfits(node, units)):
        return _guess_judgement(operator, (*mismatches, *map(_to_mismatch, misfits)))
    if operator.definition:
        return _judge_definition(node, mismatches)
    if not all(part.sure for part in parts):
        return _guess_judgement(operator, (*mismatches, *_iter_sure_mismatches(node, parts)))
    try:
        return UnitJudgement(UNIT_RULES[operator.unit](node, units), mismatches)
    except UnitMismatch as refusal:
        return _guess_judgement(operator, (*mismatches, _to_mismatch(refusal)))


def _find_leaf_unit(node: Node) -> Unit:
    if node.op == "field":
        return FIELD_UNITS.get(node.name, RATIO_UNIT)
    return NUMBER_UNIT if node.op == "number" else GROUP_UNIT


def _to_mismatch(refusal: UnitMismatch) -> Mismatch:
    """Return a rule's refusal as a mismatch at its argument."""
    return Mismatch(refusal.message, refusal.hint, (refusal.position,), refusal.firm)


def _iter_sure_mismatches(node: Node, parts: Sequence[UnitJudgement]) -> Iterator[Mismatch]:
    """Yield mismatches among the arguments of a sum or similar operator whose units are certain."""
    places = [place for place, part in enumerate(parts) if part.sure]
    if not OPERATORS[node.op].many or len(places) < 2:
        return
    fewer = node.with_args(*(node.args[place] for place in places))
    try:
        UNIT_RULES[OPERATORS[node.op].unit](fewer, tuple(parts[place].unit for place in places))
    except UnitMismatch as refusal:
        mismatch = _to_mismatch(refusal)
        yield replace(mismatch, path=(places[mismatch.path[0]], *mismatch.path[1:]))


def _guess_judgement(operator: Operator, mismatches: tuple[Mismatch, ...]) -> UnitJudgement:
    """Guess the unit of a refused step, so that the steps around it can be judged."""
    return UnitJudgement(
        BOOL_UNIT if operator.unit == "comparison" else RATIO_UNIT, mismatches, operator.unit in SETTLED_UNIT_RULES
    )


def _judge_definition(node: Node, mismatches: tuple[Mismatch, ...]) -> UnitJudgement:
    """Judge the definition of an operator; a mismatch that its arguments do not have points at the operator."""
    inner = judge_units(expand_operator(node))
    if inner.mismatches and not mismatches:
        first = inner.mismatches[0]
        mismatches = (replace(first, message=f"{node.op}: {first.message}", path=()),)
    return UnitJudgement(inner.unit, mismatches, inner.sure)


def _iter_misfits(node: Node, units: Units) -> Iterator[UnitMismatch]:
    """Yield conditions that are not true or false, and constants as arguments of operators over days or names."""
    operator = OPERATORS[node.op]
    kinds = [argument.kind for argument in operator.nodes]
    for place, (arg, unit) in enumerate(zip(node.args, units, strict=True)):
        kind = kinds[min(place, len(kinds) - 1)]
        if kind == "condition" and unit.kind != "bool":
            yield UnitMismatch(*_build_condition_error(node, arg, unit), place, firm=True)
        elif kind != "group" and _needs_field(operator.family, kind) and not _reads_field(arg):
            yield UnitMismatch(
                f"{node.op} needs something that changes; {_shorten_formula(arg)} is a constant",
                f"Example: {operator.example}",
                place,
                firm=True,
            )
    if operator.unit == "comparison" and not _reads_field(node):
        yield UnitMismatch(f"{_shorten_formula(node)} compares constants", f"Example: {operator.example}", firm=True)


def _needs_field(family: str, kind: str) -> bool:
    return kind == "condition" or family in ("time series", "cross-section")


def _build_condition_error(node: Node, arg: Node, unit: Unit) -> tuple[str, str]:
    symbol = {"and": "&", "or": "|", "not": "~"}.get(node.op, "")
    hint = f"Write a comparison, such as {_shorten_formula(arg)} > 0."
    if symbol in ("&", "|"):
        hint += f" Put parentheses around comparisons: (close > open) {symbol} (volume > delay(volume, 1))."
    return f"{symbol or node.op} needs a condition that is true or false; {_describe_part(arg, unit)}", hint


@functools.lru_cache(maxsize=4096)
def _reads_field(node: Node) -> bool:
    return node.op == "field" or any(map(_reads_field, expand_operator(node).args))
