"""Follow the expressions of a Python factor: what each stands for, without running any."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ..language.node import Node, field_node
from .idioms import attribute, method
from .known import (
    NUMPY_CONSTANTS,
    combine_vectors,
    fold_call,
    fold_operation,
    reduce_vector,
    sum_weighted_window,
    unroll_list,
)
from .nodes import Nodes, loop_leaf, word
from .values import (
    Call,
    CellSelection,
    DayRow,
    KnownList,
    Literal,
    Method,
    NamedObject,
    Routine,
    Spans,
    Value,
    Vector,
    WeightedWindows,
    WholePanel,
)

__all__ = ["Expressions", "NameBindings"]

NameBindings = dict[str, Value]
MAX_CALL_DEPTH = 12
MAX_LIST_ITEMS = 64


class Expressions(Nodes, ABC):
    """Reads expressions; how a block of statements is followed is for who comes after."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._around: NameBindings = {name: NamedObject(short) for name, short in MODULE_ALIASES.items()}

    @abstractmethod
    def _run(self, statements: Sequence[ast.stmt], names: NameBindings) -> Value | None:
        """Follow a block; return what it returns, or None where it falls through."""

    @abstractmethod
    def _bind(self, target: ast.expr, value: Value, names: NameBindings) -> None:
        """Let a target stand for a value."""

    def _value(self, node: ast.expr | None, names: NameBindings) -> Value:
        """Return what an expression stands for."""
        self._step()
        if node is None:
            return Literal(None)
        return EXPRESSIONS.get(type(node), Expressions._read_unknown)(self, node, names)

    def _read_unknown(self, node: ast.expr, names: NameBindings) -> Value:
        """Draw an expression that has no rule with what stands in it."""
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        return self.make(f"py.{type(node).__name__.lower()}", *(self._value(each, names) for each in inner))

    def _constant(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Constant)
        return Literal(node.value)

    def _name(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Name)
        found = names.get(node.id)
        return found if found is not None else self._around.get(node.id) or NamedObject(node.id)

    def _members(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.List | ast.Tuple | ast.Set)
        return KnownList(tuple(self._value(each, names) for each in node.elts))

    def _binary(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.BinOp)
        return self._joined(node.op, self._value(node.left, names), self._value(node.right, names))

    def _joined(self, op: ast.operator, left: Value, right: Value) -> Value:
        """Return an arithmetic step; on known numbers and texts it is worked out."""
        if isinstance(left, Literal) and isinstance(right, Literal):
            known = fold_operation(op, left.value, right.value)
            if known is not None:
                return known
        weights = combine_vectors(op, left, right)
        if weights is not None:
            return weights
        if isinstance(left, KnownList) and isinstance(right, KnownList) and isinstance(op, ast.Add):
            whole = (*left.items, *right.items)
            return KnownList(whole) if len(whole) <= MAX_LIST_ITEMS else self.make("add", left, right)
        return self.make(BINARY.get(type(op), f"py.{type(op).__name__.lower()}"), left, right)

    def _unary(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.UnaryOp)
        value = self._value(node.operand, names)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(value, Literal) and isinstance(value.value, int | float):
            return Literal(-value.value if isinstance(node.op, ast.USub) else not value.value)
        return self.make("neg" if isinstance(node.op, ast.USub) else "not", value)

    def _compare(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Compare)
        parts = [self._value(each, names) for each in (node.left, *node.comparators)]
        steps = [
            self.make(COMPARISON_OPERATORS.get(type(op), f"py.{type(op).__name__.lower()}"), left, right)
            for op, left, right in zip(node.ops, parts[:-1], parts[1:], strict=True)
        ]
        return steps[0] if len(steps) == 1 else self.make("and", *steps)

    def _boolean(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.BoolOp)
        parts = [self._value(each, names) for each in node.values]
        return self.make("and" if isinstance(node.op, ast.And) else "or", *parts)

    def _conditional(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.IfExp)
        test = self._value(node.test, names)
        if isinstance(test, Literal):
            return self._value(node.body if test.value else node.orelse, names)
        return self._choice(test, self._value(node.body, names), self._value(node.orelse, names))

    def _choice(self, test: Value, yes: Value, no: Value) -> Value:
        return yes if yes == no else self.make("where", test, yes, no)

    def _function(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Lambda)
        return Routine(node.args, (ast.Return(value=node.body),), names)

    def _attribute(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Attribute)
        owner = self._value(node.value, names)
        if isinstance(owner, NamedObject):
            return NUMPY_CONSTANTS.get(node.attr) or NamedObject(f"{owner.name}.{node.attr}")
        if node.attr in ("iloc", "loc", "at", "iat"):
            return CellSelection(owner)
        found = attribute(owner, node.attr, self) if not isinstance(owner, WholePanel) else None
        return found if found is not None else Method(owner, node.attr)

    def _item(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Subscript)
        owner, place = self._value(node.value, names), self._value(node.slice, names)
        if isinstance(owner, WholePanel):
            return self._column(place)
        known = place.value if isinstance(place, Literal) else None
        if isinstance(owner, KnownList) and isinstance(known, int) and -len(owner.items) <= known < len(owner.items):
            return owner.items[known]
        owner = owner.owner if isinstance(owner, CellSelection) else owner
        if isinstance(owner, Vector) and isinstance(node.slice, ast.Slice) and ast.unparse(node.slice) == "::-1":
            return Vector(owner.numbers[::-1])
        if isinstance(owner, Spans) and known in (0, -1):
            return self._end(owner, known == -1)
        if isinstance(owner, Node) and owner.op == "ts_rank" and known == -1:  # the last of a window's ranks
            return owner
        return self.make("py.item", owner, place)

    def _end(self, spans: Spans, last: bool) -> Value:
        """Return the first or last value of each window."""
        if spans.kind == "ranked" and last:
            return self.make("ts_rank", spans.x, window=spans.window)
        if last:
            return spans.x
        return self.make("delay", spans.x, window=max(spans.window - 1, 1))

    def _column(self, place: Value) -> Value:
        if isinstance(place, Literal) and isinstance(place.value, str):
            self.fields.add(place.value)
            return field_node(word(place.value))
        if isinstance(place, KnownList) and place.items:
            return self.make("py.list", *(self._column(each) for each in place.items))
        self.reads_all = True
        return self.make("py.column", place)

    def _slice(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Slice)
        ends = [self._value(each, names) for each in (node.lower, node.upper, node.step) if each is not None]
        kinds = "".join("01"[each is not None] for each in (node.lower, node.upper, node.step))
        return self.make(f"py.slice{kinds}", *ends)

    def _comprehension(self, node: ast.expr, names: NameBindings) -> Value:
        """Follow a list that is written as a loop over a known one."""
        assert isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp)
        first = node.generators[0]
        over = self._value(first.iter, names)
        side = dict(names)
        if len(node.generators) == 1 and (items := unroll_list(over)) is not None and not first.ifs:
            found = []
            for item in items:
                self._bind(first.target, item, side)
                found.append(self._value(node.elt, side))
            return KnownList(tuple(found))
        for each in node.generators:
            self._bind(each.target, self.make("py.item", self._value(each.iter, side), loop_leaf("turn")), side)
        tests = [self._value(test, side) for each in node.generators for test in each.ifs]
        return self.make("py.comprehension", over, self._value(node.elt, side), *tests)

    # Calls.

    def _call(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Call)
        called = self._value(node.func, names)
        args = tuple(self._value(each, names) for each in node.args)
        named = {each.arg or "more": self._value(each.value, names) for each in node.keywords}
        if isinstance(called, Routine):
            return self._inside(called, args, named)
        if isinstance(called, NamedObject):
            return self._given(called.name, args, named)
        if isinstance(called, Method):
            return self._method(Call(called.name, called.owner, args, named))
        return self._own_step("call", (called, *args), named)

    def _method(self, given: Call) -> Value:
        if isinstance(given.owner, WholePanel):
            return self._column(given.args[0]) if given.name == "get" and given.args else self._other(given.owner)
        if isinstance(given.owner, Vector) and (known := reduce_vector(given.name, given.owner)) is not None:
            return known
        if isinstance(given.owner, WeightedWindows) and given.name in ("sum", "nansum"):
            return sum_weighted_window(given.owner, self.make) or self.node(given.owner)
        if given.name == "dot" and given.args:
            return self._dot(given.owner, given.args[0])
        if given.name in ("apply", "transform", "agg", "aggregate", "pipe", "map", "applymap"):
            return self._follow_apply(given)
        found = method(given, self)
        return found if found is not None else self._own_step(given.name, (given.owner, *given.args), given.named)

    def _dot(self, left: Value, right: Value) -> Value:
        found = combine_vectors(ast.Mult(), left, right)
        if isinstance(found, WeightedWindows):
            return sum_weighted_window(found, self.make) or self.node(found)
        return self.make("py.dot", left, right)

    def _own_step(self, name: str, args: Sequence[Value], named: Mapping[str, Value]) -> Node:
        """Draw a step that the language does not have; keyword arguments in the order of their names."""
        more = [named[key] for key in sorted(named) if key not in IGNORED_KEYWORDS]
        return self.make(f"py.{word(name)}", *args, *more)

    def _follow_apply(self, given: Call) -> Value:
        """Follow a function that is applied to windows, to one day's names, or to one name's days."""
        function = given.given("func", 0) or Literal(None)
        rest = given.args[1:]
        owner: Value = given.owner
        if given.is_across and not isinstance(owner, Spans):
            owner = DayRow(self.node(owner))
        if isinstance(function, Routine):
            found = self._inside(function, (owner, *rest), {})
        elif isinstance(function, NamedObject):
            found = self._given(function.name, (owner, *rest), {})
        elif isinstance(function, Literal) and isinstance(function.value, str):
            found = self._method(Call(function.value, owner, rest, {}))
        else:
            found = self.make("py.apply", owner, function)
        return found

    def _given(self, name: str, args: tuple[Value, ...], named: Mapping[str, Value]) -> Value:
        """Follow a function of numpy, pandas or Python itself."""
        short = name.rpartition(".")[2]
        found = fold_call(short, args, self.make) if not named else None
        if found is not None:
            return found
        if args and isinstance(args[0], Spans) and short in ("Series", "DataFrame", "array", "asarray"):
            return args[0]
        if short in ("dot", "inner", "average") and len(args) == 2 and not named:
            return self._dot(*args)
        if short in ("sum", "nansum") and args and isinstance(args[0], WeightedWindows | Vector):
            return self._method(Call(short.removeprefix("nan"), args[0]))
        if short == "where" and len(args) == 3:
            return self.make("where", *args)
        if args and not isinstance(args[0], Literal | KnownList | WholePanel | NamedObject):
            given = Call(short, args[0], args[1:], named)
            if isinstance(args[0], Spans) and short == "rankdata":
                return Spans("ranked", args[0].x, args[0].window)
            known = method(given, self)
            if known is not None:
                return known
        return self._own_step(short, args, named)

    def _inside(self, routine: Routine, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
        """Follow a function of the code with its arguments in place."""
        if self._depth >= MAX_CALL_DEPTH:
            return self.make("py.call", *args)
        takes = [each.arg for each in (*routine.takes.posonlyargs, *routine.takes.args, *routine.takes.kwonlyargs)]
        names = dict(routine.around)
        ordinary = [*routine.takes.posonlyargs, *routine.takes.args]
        for each, default in zip(reversed(ordinary), reversed(routine.takes.defaults), strict=False):
            names[each.arg] = self._value(default, dict(routine.around))
        for each, value in zip(routine.takes.kwonlyargs, routine.takes.kw_defaults, strict=True):
            names[each.arg] = self._value(value, dict(routine.around))
        unset = {each: loop_leaf(str(at)) for at, each in enumerate(takes) if each not in names or at < len(args)}
        names |= (
            unset | dict(zip(takes, args, strict=False)) | {key: each for key, each in named.items() if key in takes}
        )
        self._depth += 1
        try:
            return self._run(routine.body, names) or Literal(None)
        finally:
            self._depth -= 1


MODULE_ALIASES: Mapping[str, str] = MappingProxyType({"np": "np", "numpy": "np", "pd": "pd", "pandas": "pd"})
IGNORED_KEYWORDS = frozenset({"min_periods", "axis", "raw", "engine", "adjust", "ignore_na", "method", "pct", "na_option",
                         "ddof", "out", "dtype", "inplace", "index", "columns", "copy", "skipna", "numeric_only"})  # fmt: skip
MASKS = frozenset({"and", "eq", "ge", "gt", "is_missing", "le", "lt", "ne", "not", "or"})
BINARY: Mapping[type[ast.operator], str] = MappingProxyType(
    {
        ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "power", ast.BitAnd: "and",
        ast.BitOr: "or",
    }
)  # fmt: skip
COMPARISON_OPERATORS: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
)
EXPRESSIONS: Mapping[type[ast.expr], Callable[[Expressions, ast.expr, NameBindings], Value]] = MappingProxyType(
    {
        ast.Constant: Expressions._constant, ast.Name: Expressions._name, ast.List: Expressions._members, ast.Tuple: Expressions._members,
        ast.Set: Expressions._members, ast.BinOp: Expressions._binary, ast.UnaryOp: Expressions._unary, ast.Compare: Expressions._compare,
        ast.BoolOp: Expressions._boolean, ast.IfExp: Expressions._conditional, ast.Lambda: Expressions._function,
        ast.Attribute: Expressions._attribute, ast.Subscript: Expressions._item, ast.Slice: Expressions._slice,
        ast.ListComp: Expressions._comprehension, ast.GeneratorExp: Expressions._comprehension,
        ast.SetComp: Expressions._comprehension, ast.Call: Expressions._call,
    }
)  # fmt: skip
