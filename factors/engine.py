"""Compute expressions over a panel: an interpreter of compiled kernels over the distinct subtrees of a batch.

A new expression costs no compiling. Values are float32, sums inside the kernels float64; the same expression gives
the same bytes whatever else is in the batch, in the cache, or how many threads there are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .buffers import Pool, SubtreeCache
from .errors import FactorError, PanelLacksField, nearest
from .fields import FIELDS, GROUPS
from .kernels.cells import Array, within
from .node import Node
from .operators import OPERATORS, parameters
from .parse import parse
from .plan import Plan, binary, cost, how, lay_out
from .workers import Workers, usable_cores

if TYPE_CHECKING:
    from ..market.panel import Panel
    from .expression import Expression

MOST_NAMES = 1 << 16
DERIVED = {"vwap": "typical", "amount": "close*volume"}
"""How the loader can make a column out of others: the line to write under `derive`."""


class Engine:
    """Evaluates expressions over one panel.

    Parameters
    ----------
    panel : Panel
        Days x names. Its fields are read as float32, once; cells that are not finite are missing.
    cache_bytes : int
        Bytes of subtrees that are kept between calls; 0 keeps none.
    threads : int, optional
        Threads that share each kernel; None: two where there are two cores.
    """

    def __init__(self, panel: Panel, *, cache_bytes: int = 256 << 20, threads: int | None = None) -> None:
        self.panel = panel
        self._store = _Store(panel)
        self._pool = Pool(panel.universe.shape)
        self._cache = SubtreeCache(cache_bytes)
        self._workers = Workers(min(2, usable_cores()) if threads is None else threads)
        self._lock = threading.Lock()

    def evaluate(self, expressions: Sequence[Expression | str]) -> list[Array]:
        """Compute a batch; subtrees that occur more than once are computed once.

        Parameters
        ----------
        expressions : sequence of Expression or str
            Formulas, parsed or not.

        Returns
        -------
        list of NDArray[np.float32]
            One array ``[T, N]`` for each, in order; NaN where a value is missing and outside the universe. They are
            the caller's own.

        Raises
        ------
        PanelLacksField
            If a formula reads a column or grouping that the panel does not have; nothing is computed then.
        ParseError
            If a text is no formula.
        """
        return self.compute([self._parsed(each).canonical for each in expressions])

    def compute(self, trees: Sequence[Node]) -> list[Array]:
        """Compute a batch of trees as they are, canonical or not; otherwise as `evaluate`."""
        roots = [binary(tree) for tree in trees]
        with self._lock:
            plan = lay_out(roots, self._cache.__contains__)
            return _Run(plan, self._store, self._pool, self._cache, self._workers).results(roots)

    @property
    def cached_bytes(self) -> int:
        """Return the bytes of subtrees that are kept."""
        return self._cache.bytes

    def _parsed(self, expression: Expression | str) -> Expression:
        if isinstance(expression, str):
            return parse(expression, fields={*FIELDS, *self.panel.fields}, groups={*GROUPS, *self.panel.groups})
        return expression


class _Store:
    """The leaves of expressions as the kernels take them: contiguous, writeable, float32."""

    def __init__(self, panel: Panel) -> None:
        if len(panel.symbols) > MOST_NAMES:
            raise FactorError("The panel has too many names.", got=len(panel.symbols), allowed=f"up to {MOST_NAMES}")
        self._panel = panel
        self.member = np.array(panel.universe, np.bool_, order="C")
        self._columns: dict[str, Array] = {}
        self._codes: dict[str, NDArray[np.int16]] = {}

    def values(self, node: Node) -> Array:
        """Return a column, or a number as a row that serves every day."""
        if node.op == "number":
            return _narrow(np.full((1, len(self._panel.symbols)), node.value, np.float64))
        if node.name not in self._columns:
            if node.name not in self._panel.fields:
                raise _lacks("column", node.name, tuple(self._panel.fields))
            self._columns[node.name] = _narrow(self._panel.fields[node.name])
        return self._columns[node.name]

    def codes(self, node: Node) -> NDArray[np.int16]:
        """Return the group of each name, -1 where it is unknown."""
        if node.name not in self._codes:
            if node.name not in self._panel.groups:
                raise _lacks("grouping", node.name, tuple(self._panel.groups))
            self._codes[node.name] = np.array(self._panel.groups[node.name], np.int16, order="C")
        return self._codes[node.name]


class _Run:
    """One pass over a plan: which values are alive, and what becomes of them after their last use."""

    def __init__(self, plan: Plan, store: _Store, pool: Pool, cache: SubtreeCache, workers: Workers) -> None:
        self._plan = plan
        self._store = store
        self._pool = pool
        self._cache = cache
        self._workers = workers
        self._left = dict(plan.uses)
        self._alive: dict[Node, Array] = {}

    def results(self, roots: Sequence[Node]) -> list[Array]:
        """Run the steps, and copy each result as soon as it is there."""
        places: dict[Node, list[int]] = {}
        for place, root in enumerate(roots):
            places.setdefault(root, []).append(place)
        found: dict[int, Array] = {}
        self._gather()
        for node in (*self._plan.leaves, *self._plan.known, *self._plan.steps):
            if node not in self._alive and not node.is_leaf:
                self._alive[node] = self._compute(node)
            for place in places.get(node, ()):
                found[place] = self._copy(node)
                self._release(node)
        return [found[place] for place in range(len(roots))]

    def _gather(self) -> None:
        """Lay hands on what is there already, and refuse a panel that lacks a column before any work is done."""
        for node in self._plan.leaves:
            if node.op == "group":
                self._store.codes(node)
            else:
                self._alive[node] = self._store.values(node)
        for node in self._plan.known:
            array = self._cache.get(node, cost(node))
            if array is not None:
                self._alive[node] = array

    def _compute(self, node: Node) -> Array:
        """Run the kernel of a step."""
        call, out = how(node), self._pool.take()
        arrays: list[Any] = [self._argument(arg, call.by_rows and not call.across) for arg in node.args]
        if call.swapped:
            arrays.reverse()
        if call.stacked:
            arrays[1:] = [tuple(arrays[1:])]
        members = [self._store.member] if call.across else []
        rest = (*arrays, *members, *_numbers(node), *call.fixed)
        share = self._workers.rows if call.by_rows else self._workers.columns
        share(lambda lo, hi: call.sweep(out, *rest, lo, hi), out.shape)
        for arg in node.args:
            self._release(arg)
        return out

    def _argument(self, node: Node, single_row: bool) -> Array | NDArray[np.int16]:
        """Return what a kernel reads; a number as a whole panel where the kernel cannot do with a row."""
        if node.op == "group":
            return self._store.codes(node)
        values = self._alive[node]
        if node.op == "number" and not single_row:
            return np.ascontiguousarray(np.broadcast_to(values, self._store.member.shape))
        return values

    def _copy(self, node: Node) -> Array:
        """Copy the values within the universe."""
        out = np.empty(self._store.member.shape, np.float32)
        values, member = self._alive[node], self._store.member
        self._workers.rows(lambda lo, hi: within(out, values, member, lo, hi), out.shape)
        return out

    def _release(self, node: Node) -> None:
        """Count one use; after the last one the cache may keep the values, and the pool gets what nobody needs."""
        self._left[node] -= 1
        if node.is_leaf or self._left[node]:
            return
        array = self._alive.pop(node)
        if node in self._cache:
            return
        for gone, freed in self._cache.offer(node, array, cost(node)):
            if gone not in self._alive:
                self._pool.give(freed)


def _numbers(node: Node) -> list[float]:
    """Return the numbers of a step as its kernel takes them."""
    values = parameters(node)
    return [int(values[each.name]) if each.is_whole else values[each.name] for each in OPERATORS[node.op].numbers]


def _narrow(values: NDArray[np.float64]) -> Array:
    """Return values as float32; what is not finite there is missing."""
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float32, order="C")
    narrow[~np.isfinite(narrow)] = np.nan
    return narrow


def _lacks(kind: str, name: str, there: tuple[str, ...]) -> PanelLacksField:
    """Name what is missing, what there is, and how to get it."""
    near = nearest(name, there)
    hints = [f"Did you mean {near}?"] if near else []
    if kind == "grouping":
        hints.append(f"Give the {name} of each symbol in a file (--sectors FILE).")
    else:
        hints.append(f"Add a column {name} to the prices.")
    if name in DERIVED:
        hints.append(f"Or let it be derived: `derive: {{{name}: {DERIVED[name]}}}` in the campaign file.")
    return PanelLacksField(
        f"The panel has no {kind} {name}.", field=name, allowed=there or "none", hint=" ".join(hints)
    )
