"""Follow the code of a Python factor without running it, and draw what it computes as a tree.

Straight lines of code, own functions and short loops over known lists are followed step by step. A branch becomes a
choice, a loop over days a step of its own kind that holds what it starts from and what each turn makes of it. Nothing is
ever run, whatever the code says; work and size are bounded, and what goes beyond is drawn as a leaf with a hash.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from ..language.node import Node, field_node, group_node
from .expressions import MASKS, MODULE_ALIASES, Expressions, NameBindings
from .known import unroll_list
from .nodes import CodeTooLong, hash_of, loop_leaf, word
from .source import FACTOR_FUNCTION
from .values import KnownList, Literal, NamedObject, Routine, Value, WholePanel

__all__ = ["Meaning"]


class Meaning(Expressions):
    """Reads one factor; `fields` are exactly the columns that it can read, unless `reads_all` says that it may read any."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__()
        self._tree = tree

    def root(self) -> Node:
        """Return the tree of what the factor returns."""
        try:
            self._run(self._tree.body, self._around)
            factor = self._around[FACTOR_FUNCTION]
            return (
                self.node(self._inside(factor, (WholePanel(),), {}))
                if isinstance(factor, Routine)
                else group_node("nothing")
            )
        except (CodeTooLong, RecursionError):
            self.reads_all = True
            read = [field_node(word(name)) for name in sorted(self.fields)]
            return self.make("py.code", *read, group_node(hash_of(self._tree)))

    def _run(self, statements: Sequence[ast.stmt], names: NameBindings) -> Value | None:
        """Follow a block; return what it returns, or None where it falls through."""
        for place, statement in enumerate(statements):
            self._step()
            if isinstance(statement, ast.Return):
                return self._value(statement.value, names) if statement.value else Literal(None)
            if isinstance(statement, ast.If):
                return self._branch(statement, statements[place + 1 :], names)
            found = STATEMENTS.get(type(statement), Meaning._ignore)(self, statement, names)
            if found is not None:
                return found
        return None

    def _ignore(self, statement: ast.stmt, names: NameBindings) -> None:
        """Look at the values of a statement that has no meaning of its own: they may read columns."""
        for each in ast.iter_child_nodes(statement):
            if isinstance(each, ast.expr):
                self._value(each, names)

    def _branch(self, statement: ast.If, rest: Sequence[ast.stmt], names: NameBindings) -> Value | None:
        """Follow both sides of a condition and what comes after it."""
        test = self._value(statement.test, names)
        if isinstance(test, Literal):
            return self._run([*(statement.body if test.value else statement.orelse), *rest], names)
        sides = (dict(names), dict(names))
        first, second = (
            self._run(block, side) for block, side in zip((statement.body, statement.orelse), sides, strict=True)
        )
        if first is not None and second is not None:
            return self._choice(test, first, second)
        if first is None and second is None:
            self._merge(test, names, *sides)
            return self._run(rest, names)
        after = self._run(rest, sides[first is not None]) or Literal(None)
        return self._choice(test, first if first is not None else after, second if second is not None else after)

    def _merge(self, test: Value, names: NameBindings, one: NameBindings, other: NameBindings) -> None:
        """Give each name that a side has changed both meanings."""
        for name in sorted({*one, *other}):
            yes, no = one.get(name, Literal(None)), other.get(name, Literal(None))
            names[name] = self._choice(test, yes, no)

    def _assign(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.Assign)
        value = self._value(statement.value, names)
        for target in statement.targets:
            self._bind(target, value, names)

    def _assign_annotated(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.AnnAssign)
        if statement.value is not None:
            self._bind(statement.target, self._value(statement.value, names), names)

    def _augment(self, statement: ast.stmt, names: NameBindings) -> None:
        assert isinstance(statement, ast.AugAssign)
        before = self._value(statement.target, names)
        self._bind(statement.target, self._joined(statement.op, before, self._value(statement.value, names)), names)

    def _bind(self, target: ast.expr, value: Value, names: NameBindings) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            items: Iterable[Value] = value.items if isinstance(value, KnownList) else ()
            for place, (each, item) in enumerate(zip_longest(target.elts, items)):
                if each is not None:
                    self._bind(each, item or self.make("py.part", value, Literal(place)), names)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, value, names)
        elif isinstance(target, ast.Subscript):
            self._put(target, value, names)

    def _put(self, target: ast.Subscript, value: Value, names: NameBindings) -> None:
        """Write into some cells of what a name stands for."""
        place = self._value(target.slice, names)
        owner = self._value(target.value, names)
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
        for each in statement.names:
            whole = f"{module}.{each.name}" if module else each.name
            head, _, tail = whole.partition(".")
            named = MODULE_ALIASES.get(head, head) + (f".{tail}" if tail else "")
            names[each.asname or each.name.partition(".")[0]] = NamedObject(named)

    def _expression(self, statement: ast.stmt, names: NameBindings) -> None:
        """Follow a call for what it changes: a list that grows, a frame that is changed in place."""
        assert isinstance(statement, ast.Expr)
        value = self._value(statement.value, names)
        called = statement.value.func if isinstance(statement.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in names:
            owner = names[called.value.id]
            if called.attr == "append" and isinstance(owner, KnownList) and isinstance(statement.value, ast.Call):
                added = tuple(self._value(each, names) for each in statement.value.args)
                names[called.value.id] = KnownList((*owner.items, *added))
            elif not isinstance(owner, WholePanel | NamedObject | Routine):
                names[called.value.id] = value

    def _with(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        assert isinstance(statement, ast.With)
        for item in statement.items:
            entered = self._value(item.context_expr, names)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, entered, names)
        return self._run(statement.body, names)

    def _try(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        """Follow what is tried, and what is done where it fails."""
        assert isinstance(statement, ast.Try)
        found = self._run(statement.body, names)
        for handler in statement.handlers:
            side = dict(names)
            caught = self._run(handler.body, side)
            self._merge(group_node("fails"), names, side, dict(names))
            found = found if caught is None or found is None else self.make("py.try", found, caught)
        ended = self._run([*statement.orelse, *statement.finalbody], names)
        return found if found is not None else ended

    # Loops.

    def _for(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        assert isinstance(statement, ast.For | ast.AsyncFor)
        over = self._value(statement.iter, names)
        items = unroll_list(over)
        if items is not None and not _may_leave(statement):
            for item in items:
                self._bind(statement.target, item, names)
                self._run(statement.body, names)
            return None
        turn: Value = self.make("py.item", over, loop_leaf("turn"))
        return self._loop(over, statement, names, lambda side: self._bind(statement.target, turn, side))

    def _while(self, statement: ast.stmt, names: NameBindings) -> Value | None:
        assert isinstance(statement, ast.While)
        return self._loop(self._value(statement.test, names), statement, names, lambda _: None)

    def _loop(
        self,
        over: Value,
        statement: ast.For | ast.AsyncFor | ast.While,
        names: NameBindings,
        begin: Callable[[NameBindings], None],
    ) -> Value | None:
        """Draw a loop as one step: what it runs over, what it starts from, what each turn makes of it."""
        changed = sorted(_changed_names(statement) & {*names}, key=list(names).index)
        side = dict(names)
        for at, name in enumerate(changed):
            if not isinstance(names[name], WholePanel | NamedObject | Routine):
                side[name] = loop_leaf(str(at))
        begin(side)
        left = self._run(statement.body, side)
        carried = [name for name in changed if name in side and side[name] != names[name]]
        turns = [side[name] for name in carried] + ([left] if left is not None else [])
        loop = self.make("py.loop", over, *(names[name] for name in carried), *turns)
        for at, name in enumerate(carried):
            names[name] = loop if len(carried) == 1 else self.make("py.part", loop, Literal(at))
        return None


def _changed_names(statement: ast.AST) -> set[str]:
    """Return the names that a loop may change: those that it binds, writes into, or calls a method of for itself."""
    found: set[str] = set()
    for each in ast.walk(statement):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            found.add(each.id)
        base = each.value if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) else each
        base = base.func if isinstance(base, ast.Call) else base
        if isinstance(each, ast.Expr) or (isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)):
            while isinstance(base, ast.Attribute | ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name):
                found.add(base.id)
    return found


def _may_leave(statement: ast.AST) -> bool:
    """Tell whether a loop may end before its list does."""
    return any(isinstance(each, ast.Break | ast.Continue | ast.Return) for each in ast.walk(statement))


STATEMENTS: Mapping[type[ast.stmt], Callable[[Meaning, ast.stmt, NameBindings], Value | None]] = MappingProxyType(
    {
        ast.Assign: Meaning._assign, ast.AnnAssign: Meaning._assign_annotated, ast.AugAssign: Meaning._augment,
        ast.FunctionDef: Meaning._define, ast.AsyncFunctionDef: Meaning._define, ast.Import: Meaning._import,
        ast.ImportFrom: Meaning._import, ast.Expr: Meaning._expression, ast.With: Meaning._with, ast.Try: Meaning._try,
        ast.For: Meaning._for, ast.AsyncFor: Meaning._for, ast.While: Meaning._while,
    }
)  # fmt: skip
