"""Fold the constants of a Python factor while it is read: arithmetic on numbers, short ranges, sums of lists."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..language.node import Node
from .normal_form import EXACT_STEPS
from .values import KnownList, Literal, Spans, Value, Vector, WeightedWindows

MAX_UNROLLED_ITEMS = 24
MAX_VECTOR_ITEMS = 512
MAX_KNOWN_NUMBER = 1e15
MAX_KNOWN_TEXT_CHARS = 200
MAX_EXPONENT = 64.0

NUMPY_CONSTANTS: Mapping[str, Value] = MappingProxyType(
    {
        "nan": Literal(math.nan),
        "NaN": Literal(math.nan),
        "inf": Literal(math.inf),
        "pi": Literal(math.pi),
        "e": Literal(math.e),
        "NA": Literal(None),
        "newaxis": Literal(None),
    }
)

Number = int | float
PYTHON_ARITHMETIC: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = MappingProxyType(
    {
        **EXACT_STEPS,
        ast.Pow: lambda x, y: float(x) ** y if abs(y) <= MAX_EXPONENT else math.inf,
    }
)


def fold_operation(op: ast.operator, left: object, right: object) -> Literal | None:
    """Evaluate arithmetic on two known values; None if it cannot be evaluated."""
    if isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add):
        return Literal((left + right)[:MAX_KNOWN_TEXT_CHARS])
    step = PYTHON_ARITHMETIC.get(type(op))
    if step is None or not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if max(abs(left), abs(right)) > MAX_KNOWN_NUMBER:
        return None
    try:
        value = step(left, right)
    except (ArithmeticError, ValueError):
        return None
    return Literal(value) if isinstance(value, int | float) else None


def combine_vectors(op: ast.operator, left: Value, right: Value) -> Value | None:
    """Evaluate arithmetic on known arrays, with a number or another array, or as the weights of a window."""
    if isinstance(left, Spans) and isinstance(right, Vector) and isinstance(op, ast.Mult):
        return WeightedWindows(left, right)
    if isinstance(left, Vector) and isinstance(right, Spans) and isinstance(op, ast.Mult):
        return WeightedWindows(right, left)
    numbers = [_list_numbers(side) for side in (left, right)]
    if Vector not in (type(left), type(right)) or None in numbers:
        return None
    one, other = (side or () for side in numbers)
    count = max(len(one), len(other))
    if not {len(one), len(other)} <= {1, count}:
        return None
    pairs = [(one[at % len(one)], other[at % len(other)]) for at in range(count)]
    products = [fold_operation(op, x, y) for x, y in pairs]
    return Vector(tuple(float(str(side.value)) for side in products if side)) if all(products) else None


def _list_numbers(value: Value) -> tuple[float, ...] | None:
    """Return the numbers of a known array, or a known number."""
    if isinstance(value, Vector):
        return value.numbers
    number = value.value if isinstance(value, Literal) else None
    return (float(number),) if isinstance(number, int | float) else None


def sum_weighted_window(weighted: WeightedWindows, make: Callable[..., Node]) -> Node | None:
    """Return the sum of a weighted window with linear or equal weights as an operator; None for other weights."""
    weights, spans = weighted.weights.numbers, weighted.spans
    first, total = weights[0] if weights else 0.0, sum(weights)
    if spans.kind != "rolling" or len(weights) != spans.window or not total or not first:
        return None
    if all(math.isclose(weight, first * (at + 1), rel_tol=1e-6) for at, weight in enumerate(weights)):
        return make("mul", Literal(total), make("decay_linear", spans.x, window=spans.window))
    if all(math.isclose(weight, first, rel_tol=1e-6) for weight in weights):
        return make("mul", Literal(total), make("ts_mean", spans.x, window=spans.window))
    return None


def reduce_vector(name: str, vector: Vector) -> Value | None:
    """Evaluate a reduction of a known array."""
    numbers = vector.numbers
    if name in ("sum", "mean") and numbers:
        return Literal(sum(numbers) / (len(numbers) if name == "mean" else 1))
    return vector if name in ("copy", "astype", "reshape", "flatten", "ravel") else None


def _build_vector(name: str, args: Sequence[Value]) -> Value | None:
    """Evaluate a numpy function that builds an array from known numbers."""
    items = unroll_list(args[0]) if args else None
    if name in ("array", "asarray") and items:
        values = [item.value for item in items if isinstance(item, Literal) and isinstance(item.value, int | float)]
        return Vector(tuple(map(float, values))) if len(values) == len(items) else None
    numbers = [arg.value for arg in args if isinstance(arg, Literal) and isinstance(arg.value, int | float)]
    if len(numbers) != len(args) or not numbers or max(map(abs, numbers)) > MAX_VECTOR_ITEMS:
        return None
    if name == "ones":
        return Vector((1.0,) * int(numbers[0]))
    if name != "arange" or not all(number == int(number) for number in numbers) or 0 in numbers[2:]:
        return None
    steps = range(*map(int, numbers))
    return Vector(tuple(map(float, steps))) if len(steps) else None


def unroll_list(value: Value) -> Sequence[Value] | None:
    """Return the members of a list that is known and short; None for any other value."""
    if isinstance(value, KnownList) and len(value.items) <= MAX_UNROLLED_ITEMS:
        return value.items
    return None


def fold_call(name: str, args: Sequence[Value], make: Callable[..., Node]) -> Value | None:
    """Evaluate a builtin function on known arguments; None if they are not known."""
    if name == "range":
        return _fold_range(args)
    if name in ("array", "asarray", "arange", "ones") and (vector := _build_vector(name, args)) is not None:
        return vector
    if name in ("max", "min", "maximum", "minimum") and len(args) > 1:
        return _fold_extreme(name[:3], args, make)
    items = unroll_list(args[0]) if args else None
    if items is None:
        return _fold_number(name, args)
    if name == "sum" and items and len(args) == 1:
        return items[0] if len(items) == 1 else make("add", *items)
    if name == "enumerate":
        return KnownList(tuple(KnownList((Literal(at), item)) for at, item in enumerate(items)))
    if name == "zip" and all(unroll_list(arg) is not None for arg in args):
        rows = zip(*(unroll_list(arg) or () for arg in args), strict=False)
        return KnownList(tuple(KnownList(tuple(row)) for row in rows))
    if name == "len":
        return Literal(len(items))
    return KnownList(tuple(items)) if name in ("list", "tuple", "set", "iter") else None


def _fold_range(args: Sequence[Value]) -> Value | None:
    numbers = [arg.value for arg in args if isinstance(arg, Literal) and type(arg.value) is int]
    if len(numbers) != len(args) or not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
        return None
    turns = range(*numbers)
    return KnownList(tuple(map(Literal, turns))) if len(turns) <= MAX_UNROLLED_ITEMS else None


def _fold_extreme(op: str, args: Sequence[Value], make: Callable[..., Node]) -> Value:
    numbers = [item.value for item in args if isinstance(item, Literal) and isinstance(item.value, int | float)]
    if len(numbers) == len(args):
        return Literal(max(numbers) if op == "max" else min(numbers))
    return make(op, *args)


def _fold_number(name: str, args: Sequence[Value]) -> Value | None:
    """Evaluate a function of one known number."""
    value = args[0].value if len(args) == 1 and isinstance(args[0], Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or name not in NUMBER_FUNCTIONS:
        return None
    try:
        return Literal(NUMBER_FUNCTIONS[name](value))
    except (ArithmeticError, ValueError):
        return None


NUMBER_FUNCTIONS: Mapping[str, Callable[[Number], Number]] = MappingProxyType(
    {
        "int": int, "float": float, "abs": abs, "round": round, "sqrt": math.sqrt, "log": math.log, "exp": math.exp,
        "float64": float, "floor": math.floor, "ceil": math.ceil,
    }
)  # fmt: skip  # a table
