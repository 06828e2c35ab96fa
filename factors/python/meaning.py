"""Follow the code of a Python factor without running it, and build a tree of what it computes.

Straight-line code, own functions and short loops over known lists are followed step by step. A branch becomes a choice;
a loop over days becomes a step of its own kind, with the initial values and the results of one turn. Code is never run.
Work and size are bounded; a part beyond the bounds becomes a leaf with a hash.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from ..language.node import Node, field_node, group_node
from .constant_folding import (
    NUMPY_CONSTANTS,
    combine_vectors,
    fold_call,
    fold_operation,
    reduce_vector,
    sum_weighted_window,
    unroll_list,
)
from .idioms import read_attribute, read_method
from .source import FACTOR_FUNCTION
from .values import (
    Call,
    CellSelection,
    CodeTooLong,
    DayRow,
    KnownList,
    Literal,
    Method,
    NamedObject,
    Nodes,
    Routine,
    Spans,
    Value,
    Vector,
    WeightedWindows,
    WholePanel,
    build_loop_leaf,
    build_word,
    hash_code,
)

NameBindings = dict[str, Value]
MAX_CALL_DEPTH = 12
MAX_LIST_ITEMS = 64
MODULE_ALIASES: Mapping[str, str] = MappingProxyType({"np": "np", "numpy": "np", "pd": "pd", "pandas": "pd"})
IGNORED_KEYWORDS = frozenset(
    {"min_periods", "axis", "raw", "engine", "adjust", "ignore_na", "method", "pct", "na_option", "ddof", "out",
     "dtype", "inplace", "index", "columns", "copy", "skipna", "numeric_only"}
)  # fmt: skip  # a table
MASKS = frozenset({"and", "eq", "ge", "gt", "is_missing", "le", "lt", "ne", "not", "or"})
BINARY: Mapping[type[ast.operator], str] = MappingProxyType(
    {
        ast.Add: "add",
        ast.Sub: "sub",
        ast.Mult: "mul",
        ast.Div: "div",
        ast.Pow: "power",
        ast.BitAnd: "and",
        ast.BitOr: "or",
    }
)
COMPARISON_OPERATORS: Mapping[type[ast.cmpop], str] = MappingProxyType(
    {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
)


class Meaning(Nodes):
    """Reads one factor; `fields` are all columns that it can read, unless `reads_all` is set: then it may read any."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__()
        self._tree = tree
        self._depth = 0
        self._around: NameBindings = {name: NamedObject(short) for name, short in MODULE_ALIASES.items()}

    def root(self) -> Node:
        """Return the tree of what the factor returns."""
        try:
            self._follow(self._tree.body, self._around)
            factor = self._around[FACTOR_FUNCTION]
            return (
                self.node(self._follow_routine(factor, (WholePanel(),), {}))
                if isinstance(factor, Routine)
                else group_node("nothing")
            )
        except (CodeTooLong, RecursionError):
            self.reads_all = True
            columns = [field_node(build_word(name)) for name in sorted(self.fields)]
            return self.make("py.code", *columns, group_node(hash_code(self._tree)))

    def _follow(self, statements: Sequence[ast.stmt], names: NameBindings) -> Value | None:
        """Follow a block; return its return value, or None if it falls through."""
        for place, statement in enumerate(statements):
            self._step()
            if isinstance(statement, ast.Return):
                return self._evaluate(statement.value, names) if statement.value else Literal(None)
            if isinstance(statement, ast.If):
                return self._follow_branch(statement, statements[place + 1 :], names)
            returned = STATEMENTS.get(type(statement), Meaning._ignore)(self, statement, names)
            if returned is not None:
                return returned
        return None

    def _ignore(self, statement: ast.stmt, names: NameBindings) -> None:
        """Follow the expressions of a statement without a meaning of its own: they may read columns."""
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self._evaluate(child, names)

    def _follow_branch(self, statement: ast.If, rest: Sequence[ast.stmt], names: NameBindings) -> Value | None:
        """Follow both sides of a condition and the statements after it."""
        test = self._evaluate(statement.test, names)
        if isinstance(test, Literal):
            return self._follow([*(statement.body if test.value else statement.orelse), *rest], names)
        sides = (dict(names), dict(names))
        first, second = (
            self._follow(block, side) for block, side in zip((statement.body, statement.orelse), sides, strict=True)
        )
        if first is not None and second is not None:
            return self._choose(test, first, second)
        if first is None and second is None:
            self._merge(test, names, *sides)
            return self._follow(rest, names)
        after = self._follow(rest, sides[first is not None]) or Literal(None)
        return self._choose(test, first if first is not None else after, second if second is not None else after)

    def _merge(self, test: Value, names: NameBindings, first: NameBindings, second: NameBindings) -> None:
        """Bind each name to a choice between its values on both sides."""
        for name in sorted({*first, *second}):
            yes, no = first.get(name, Literal(None)), second.get(name, Literal(None))
            names[name] = self._choose(test, yes, no)

    def _assign(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.Assign)
        value = self._evaluate(statement.value, names)
        for target in statement.targets:
            self._bind(target, value, names)

    def _assign_annotated(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.AnnAssign)
        if statement.value is not None:
            self._bind(statement.target, self._evaluate(statement.value, names), names)

    def _augment(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.AugAssign)
        before = self._evaluate(statement.target, names)
        self._bind(statement.target, self._combine(statement.op, before, self._evaluate(statement.value, names)), names)

    def _bind(self, target: ast.expr, value: Value, names: NameBindings) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items: Iterable[Value] = value.items if isinstance(value, KnownList) else ()
            for place, (element, item) in enumerate(zip_longest(target.elts, items)):
                if element is not None:
                    self._bind(element, item or self.make("py.part", value, Literal(place)), names)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value, names)
        elif isinstance(target, ast.Subscript):
            self._put(target, value, names)

    def _put(self, target: ast.Subscript, value: Value, names: NameBindings) -> None:
        """Assign to some cells of a name's value."""
        place = self._evaluate(target.slice, names)
        owner = self._evaluate(target.value, names)
        base = target.value
        while isinstance(base, ast.Attribute | ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name):
            mask = isinstance(place, Node) and place.op in MASKS and not isinstance(owner, KnownList)
            changed = self.make("where", place, value, owner) if mask else self.make("py.set", owner, place, value)
            names[base.id] = changed

    def _define(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        names[statement.name] = Routine(statement.args, tuple(statement.body), names)

    def _import(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.Import | ast.ImportFrom)
        module = getattr(statement, "module", None) or ""
        for alias in statement.names:
            path = f"{module}.{alias.name}" if module else alias.name
            head, _, tail = path.partition(".")
            dotted = MODULE_ALIASES.get(head, head) + (f".{tail}" if tail else "")
            names[alias.asname or alias.name.partition(".")[0]] = NamedObject(dotted)

    def _read_expression(self, statement: ast.stmt, names: NameBindings) -> None:
        """Follow a call for its side effect: a list that grows, a frame that is changed in place."""
        assert isinstance(statement, ast.Expr)
        value = self._evaluate(statement.value, names)
        method = statement.value.func if isinstance(statement.value, ast.Call) else None
        if isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name) and method.value.id in names:
            owner = names[method.value.id]
            if method.attr == "append" and isinstance(owner, KnownList) and isinstance(statement.value, ast.Call):
                added = tuple(self._evaluate(arg, names) for arg in statement.value.args)
                names[method.value.id] = KnownList((*owner.items, *added))
            elif not isinstance(owner, WholePanel | NamedObject | Routine):
                names[method.value.id] = value

    def _read_with(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        assert isinstance(statement, ast.With)
        for item in statement.items:
            entered = self._evaluate(item.context_expr, names)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, entered, names)
        return self._follow(statement.body, names)

    def _read_try(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        """Follow a `try` block and its handlers."""
        assert isinstance(statement, ast.Try)
        returned = self._follow(statement.body, names)
        for handler in statement.handlers:
            side = dict(names)
            caught = self._follow(handler.body, side)
            self._merge(group_node("fails"), names, side, dict(names))
            returned = returned if caught is None or returned is None else self.make("py.try", returned, caught)
        ended = self._follow([*statement.orelse, *statement.finalbody], names)
        return returned if returned is not None else ended

    # Loops.

    def _read_for(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        assert isinstance(statement, ast.For | ast.AsyncFor)
        over = self._evaluate(statement.iter, names)
        items = unroll_list(over)
        if items is not None and not _may_leave(statement):
            for item in items:
                self._bind(statement.target, item, names)
                self._follow(statement.body, names)
            return None
        turn: Value = self.make("py.item", over, build_loop_leaf("turn"))
        return self._build_loop(over, statement, names, lambda side: self._bind(statement.target, turn, side))

    def _read_while(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        assert isinstance(statement, ast.While)
        return self._build_loop(self._evaluate(statement.test, names), statement, names, lambda _: None)

    def _build_loop(
        self,
        over: Value,
        statement: ast.For | ast.AsyncFor | ast.While,
        names: NameBindings,
        begin: Callable[[NameBindings], None],
    ) -> Value | None:
        """Build one step for a loop: its iterable, its initial values, and the result of each turn."""
        changed = sorted(_find_changed_names(statement) & {*names}, key=list(names).index)
        side = dict(names)
        for at, name in enumerate(changed):
            if not isinstance(names[name], WholePanel | NamedObject | Routine):
                side[name] = build_loop_leaf(str(at))
        begin(side)
        returned = self._follow(statement.body, side)
        carried = [name for name in changed if name in side and side[name] != names[name]]
        turns = [side[name] for name in carried] + ([returned] if returned is not None else [])
        loop = self.make("py.loop", over, *(names[name] for name in carried), *turns)
        for at, name in enumerate(carried):
            names[name] = loop if len(carried) == 1 else self.make("py.part", loop, Literal(at))
        return None

    # Expressions.

    def _evaluate(self, node: ast.expr | None, names: NameBindings) -> Value:
        """Return the value of an expression."""
        self._step()
        if node is None:
            return Literal(None)
        return EXPRESSIONS.get(type(node), Meaning._read_unknown)(self, node, names)

    def _read_unknown(self, node: ast.expr, names: NameBindings) -> Value:
        """Build a node over the parts of an expression without a rule."""
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return self.make(f"py.{type(node).__name__.lower()}", *(self._evaluate(child, names) for child in inner))

    def _read_constant(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Constant)
        return Literal(node.value)

    def _read_name(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Name)
        value = names.get(node.id)
        return value if value is not None else self._around.get(node.id) or NamedObject(node.id)

    def _read_members(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.List | ast.Tuple | ast.Set)
        return KnownList(tuple(self._evaluate(element, names) for element in node.elts))

    def _read_binary(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.BinOp)
        return self._combine(node.op, self._evaluate(node.left, names), self._evaluate(node.right, names))

    def _combine(self, op: ast.operator, first: Value, second: Value) -> Value:
        """Return an arithmetic step; on known numbers and texts it is evaluated."""
        if isinstance(first, Literal) and isinstance(second, Literal):
            folded = fold_operation(op, first.value, second.value)
            if folded is not None:
                return folded
        weights = combine_vectors(op, first, second)
        if weights is not None:
            return weights
        if isinstance(first, KnownList) and isinstance(second, KnownList) and isinstance(op, ast.Add):
            items = (*first.items, *second.items)
            return KnownList(items) if len(items) <= MAX_LIST_ITEMS else self.make("add", first, second)
        return self.make(BINARY.get(type(op), f"py.{type(op).__name__.lower()}"), first, second)

    def _read_unary(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.UnaryOp)
        value = self._evaluate(node.operand, names)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(value, Literal) and isinstance(value.value, int | float):
            return Literal(-value.value if isinstance(node.op, ast.USub) else not value.value)
        return self.make("neg" if isinstance(node.op, ast.USub) else "not", value)

    def _read_comparison(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Compare)
        parts = [self._evaluate(side, names) for side in (node.left, *node.comparators)]
        steps = [
            self.make(COMPARISON_OPERATORS.get(type(op), f"py.{type(op).__name__.lower()}"), left, right)
            for op, left, right in zip(node.ops, parts[:-1], parts[1:], strict=True)
        ]
        return steps[0] if len(steps) == 1 else self.make("and", *steps)

    def _read_boolean(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.BoolOp)
        parts = [self._evaluate(part, names) for part in node.values]
        return self.make("and" if isinstance(node.op, ast.And) else "or", *parts)

    def _read_conditional(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.IfExp)
        test = self._evaluate(node.test, names)
        if isinstance(test, Literal):
            return self._evaluate(node.body if test.value else node.orelse, names)
        return self._choose(test, self._evaluate(node.body, names), self._evaluate(node.orelse, names))

    def _choose(self, test: Value, yes: Value, no: Value) -> Value:
        return yes if yes == no else self.make("where", test, yes, no)

    def _read_lambda(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Lambda)
        return Routine(node.args, (ast.Return(value=node.body),), names)

    def _read_attribute(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Attribute)
        owner = self._evaluate(node.value, names)
        if isinstance(owner, NamedObject):
            return NUMPY_CONSTANTS.get(node.attr) or NamedObject(f"{owner.name}.{node.attr}")
        if node.attr in ("iloc", "loc", "at", "iat"):
            return CellSelection(owner)
        value = read_attribute(owner, node.attr, self) if not isinstance(owner, WholePanel) else None
        return value if value is not None else Method(owner, node.attr)

    def _read_item(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Subscript)
        owner, place = self._evaluate(node.value, names), self._evaluate(node.slice, names)
        if isinstance(owner, WholePanel):
            return self._read_column(place)
        position = place.value if isinstance(place, Literal) else None
        if (
            isinstance(owner, KnownList)
            and isinstance(position, int)
            and -len(owner.items) <= position < len(owner.items)
        ):
            return owner.items[position]
        owner = owner.owner if isinstance(owner, CellSelection) else owner
        if isinstance(owner, Vector) and isinstance(node.slice, ast.Slice) and ast.unparse(node.slice) == "::-1":
            return Vector(owner.numbers[::-1])
        if isinstance(owner, Spans) and position in (0, -1):
            return self._read_end(owner, position == -1)
        if isinstance(owner, Node) and owner.op == "ts_rank" and position == -1:  # the last rank of a window
            return owner
        return self.make("py.item", owner, place)

    def _read_end(self, spans: Spans, last: bool) -> Value:
        """Return the first or last value of each window."""
        if spans.kind == "ranked" and last:
            return self.make("ts_rank", spans.x, window=spans.window)
        if last:
            return spans.x
        return self.make("delay", spans.x, window=max(spans.window - 1, 1))

    def _read_column(self, place: Value) -> Value:
        if isinstance(place, Literal) and isinstance(place.value, str):
            self.fields.add(place.value)
            return field_node(build_word(place.value))
        if isinstance(place, KnownList) and place.items:
            return self.make("py.list", *(self._read_column(item) for item in place.items))
        self.reads_all = True
        return self.make("py.column", place)

    def _read_slice(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Slice)
        ends = [self._evaluate(bound, names) for bound in (node.lower, node.upper, node.step) if bound is not None]
        kinds = "".join("01"[bound is not None] for bound in (node.lower, node.upper, node.step))
        return self.make(f"py.slice{kinds}", *ends)

    def _read_comprehension(self, node: ast.expr, names: NameBindings) -> Value:
        """Follow a comprehension over a known list."""
        assert isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp)
        first = node.generators[0]
        over = self._evaluate(first.iter, names)
        side = dict(names)
        if len(node.generators) == 1 and (items := unroll_list(over)) is not None and not first.ifs:
            members = []
            for item in items:
                self._bind(first.target, item, side)
                members.append(self._evaluate(node.elt, side))
            return KnownList(tuple(members))
        for generator in node.generators:
            item = self.make("py.item", self._evaluate(generator.iter, side), build_loop_leaf("turn"))
            self._bind(generator.target, item, side)
        tests = [self._evaluate(test, side) for generator in node.generators for test in generator.ifs]
        return self.make("py.comprehension", over, self._evaluate(node.elt, side), *tests)

    # Calls.

    def _read_call(self, node: ast.expr, names: NameBindings) -> Value:
        assert isinstance(node, ast.Call)
        target = self._evaluate(node.func, names)
        args = tuple(self._evaluate(arg, names) for arg in node.args)
        keywords = {keyword.arg or "more": self._evaluate(keyword.value, names) for keyword in node.keywords}
        if isinstance(target, Routine):
            return self._follow_routine(target, args, keywords)
        if isinstance(target, NamedObject):
            return self._follow_library(target.name, args, keywords)
        if isinstance(target, Method):
            return self._follow_method(Call(target.name, target.owner, args, keywords))
        return self._build_own_step("call", (target, *args), keywords)

    def _follow_method(self, call: Call) -> Value:
        if isinstance(call.owner, WholePanel):
            return self._read_column(call.args[0]) if call.name == "get" and call.args else self._other(call.owner)
        if isinstance(call.owner, Vector) and (reduced := reduce_vector(call.name, call.owner)) is not None:
            return reduced
        if isinstance(call.owner, WeightedWindows) and call.name in ("sum", "nansum"):
            return sum_weighted_window(call.owner, self.make) or self.node(call.owner)
        if call.name == "dot" and call.args:
            return self._multiply_weights(call.owner, call.args[0])
        if call.name in ("apply", "transform", "agg", "aggregate", "pipe", "map", "applymap"):
            return self._follow_apply(call)
        value = read_method(call, self)
        return value if value is not None else self._build_own_step(call.name, (call.owner, *call.args), call.named)

    def _multiply_weights(self, first: Value, second: Value) -> Value:
        product = combine_vectors(ast.Mult(), first, second)
        if isinstance(product, WeightedWindows):
            return sum_weighted_window(product, self.make) or self.node(product)
        return self.make("py.dot", first, second)

    def _build_own_step(self, name: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Node:
        """Build a step that the language lacks; keyword arguments are in the order of their names."""
        values = [keywords[key] for key in sorted(keywords) if key not in IGNORED_KEYWORDS]
        return self.make(f"py.{build_word(name)}", *args, *values)

    def _follow_apply(self, call: Call) -> Value:
        """Follow a function that is applied to windows, to one day's names, or to one name's days."""
        function = call.argument("func", 0) or Literal(None)
        rest = call.args[1:]
        owner: Value = call.owner
        if call.is_across and not isinstance(owner, Spans):
            owner = DayRow(self.node(owner))
        if isinstance(function, Routine):
            value = self._follow_routine(function, (owner, *rest), {})
        elif isinstance(function, NamedObject):
            value = self._follow_library(function.name, (owner, *rest), {})
        elif isinstance(function, Literal) and isinstance(function.value, str):
            value = self._follow_method(Call(function.value, owner, rest, {}))
        else:
            value = self.make("py.apply", owner, function)
        return value

    def _follow_library(self, name: str, args: tuple[Value, ...], keywords: Mapping[str, Value]) -> Value:
        """Follow a function of numpy, pandas or Python itself."""
        short = name.rpartition(".")[2]
        folded = fold_call(short, args, self.make) if not keywords else None
        if folded is not None:
            return folded
        if args and isinstance(args[0], Spans) and short in ("Series", "DataFrame", "array", "asarray"):
            return args[0]
        if short in ("dot", "inner", "average") and len(args) == 2 and not keywords:
            return self._multiply_weights(*args)
        if short in ("sum", "nansum") and args and isinstance(args[0], WeightedWindows | Vector):
            return self._follow_method(Call(short.removeprefix("nan"), args[0]))
        if short == "where" and len(args) == 3:
            return self.make("where", *args)
        if args and not isinstance(args[0], Literal | KnownList | WholePanel | NamedObject):
            call = Call(short, args[0], args[1:], keywords)
            if isinstance(args[0], Spans) and short == "rankdata":
                return Spans("ranked", args[0].x, args[0].window)
            value = read_method(call, self)
            if value is not None:
                return value
        return self._build_own_step(short, args, keywords)

    def _follow_routine(self, routine: Routine, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
        """Follow a function of the code with its arguments bound."""
        if self._depth >= MAX_CALL_DEPTH:
            return self.make("py.call", *args)
        takes = [
            argument.arg for argument in (*routine.takes.posonlyargs, *routine.takes.args, *routine.takes.kwonlyargs)
        ]
        names = dict(routine.around)
        ordinary = [*routine.takes.posonlyargs, *routine.takes.args]
        for argument, default in zip(reversed(ordinary), reversed(routine.takes.defaults), strict=False):
            names[argument.arg] = self._evaluate(default, dict(routine.around))
        for argument, value in zip(routine.takes.kwonlyargs, routine.takes.kw_defaults, strict=True):
            names[argument.arg] = self._evaluate(value, dict(routine.around))
        unset = {
            argument: build_loop_leaf(str(at))
            for at, argument in enumerate(takes)
            if argument not in names or at < len(args)
        }
        names |= (
            unset
            | dict(zip(takes, args, strict=False))
            | {key: argument for key, argument in keywords.items() if key in takes}
        )
        self._depth += 1
        try:
            return self._follow(routine.body, names) or Literal(None)
        finally:
            self._depth -= 1


def _find_changed_names(statement: ast.AST) -> set[str]:
    """Return the names that a loop may change: bound names, targets of item writes, owners of called methods."""
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        base = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else node
        base = base.func if isinstance(base, ast.Call) else base
        if isinstance(node, ast.Expr) or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)):
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                names.add(base.id)
    return names


def _may_leave(statement: ast.AST) -> bool:
    """Return whether a loop may end early."""
    return any(isinstance(node, ast.Break | ast.Continue | ast.Return) for node in ast.walk(statement))


STATEMENTS: Mapping[type[ast.stmt], Callable[[Meaning, ast.stmt, NameBindings], Value | None]] = MappingProxyType(
    {
        ast.Assign: Meaning._assign, ast.AnnAssign: Meaning._assign_annotated, ast.AugAssign: Meaning._augment,
        ast.FunctionDef: Meaning._define, ast.AsyncFunctionDef: Meaning._define, ast.Import: Meaning._import,
        ast.ImportFrom: Meaning._import, ast.Expr: Meaning._read_expression, ast.With: Meaning._read_with,
        ast.Try: Meaning._read_try,
        ast.For: Meaning._read_for, ast.AsyncFor: Meaning._read_for, ast.While: Meaning._read_while,
    }
)  # fmt: skip  # a table
EXPRESSIONS: Mapping[type[ast.expr], Callable[[Meaning, ast.expr, NameBindings], Value]] = MappingProxyType(
    {
        ast.Constant: Meaning._read_constant, ast.Name: Meaning._read_name, ast.List: Meaning._read_members,
        ast.Tuple: Meaning._read_members, ast.Set: Meaning._read_members, ast.BinOp: Meaning._read_binary,
        ast.UnaryOp: Meaning._read_unary, ast.Compare: Meaning._read_comparison, ast.BoolOp: Meaning._read_boolean,
        ast.IfExp: Meaning._read_conditional, ast.Lambda: Meaning._read_lambda,
        ast.Attribute: Meaning._read_attribute, ast.Subscript: Meaning._read_item, ast.Slice: Meaning._read_slice,
        ast.ListComp: Meaning._read_comprehension, ast.GeneratorExp: Meaning._read_comprehension,
        ast.SetComp: Meaning._read_comprehension, ast.Call: Meaning._read_call,
    }
)  # fmt: skip  # a table
