"""Run a plan: stage after stage, tile after tile; results are written as soon as they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..kernels.cells import Array, Flat, Members, emit, gather, scatter
from ..language.node import Node
from ..operators import OPERATORS, fill_parameters
from .buffers import BufferPool, Scratch, SubtreeCache
from .plan import EvaluationPlan, RowStep, TileSteps, estimate_subtree_cost, find_compute
from .tiles import ROWS_TOGETHER, Layout, LeafStore
from .workers import Workers

MIN_THREADED_CELLS = 1 << 16
"""Cells below which a second thread costs more than it saves."""
ROWS_PER_BLOCK = 64
"""Rows that an operator across names takes at a time, so that they stay in the processor's cache."""


class PlanRun:
    """One pass over a plan: holds the stored values until their last use."""

    def __init__(
        self,
        plan: EvaluationPlan,
        store: LeafStore,
        pool: BufferPool,
        scratch: Scratch,
        cache: SubtreeCache,
        workers: Workers,
    ) -> None:
        self._plan = plan
        self._store = store
        self._pool = pool
        self._scratch = scratch
        self._cache = cache
        self._workers = workers
        self._alive: dict[Node, Flat] = {}
        self._results: list[Array] = []
        self._alone = store.member.size < MIN_THREADED_CELLS

    def fill(self, results: list[Array]) -> None:
        """Run the stages; each result is written as soon as its tile is computed."""
        self._gather_leaves()
        self._results = results
        for at, stage in enumerate(self._plan.stages):
            stored = self._plan.stored.get(at, set())
            if isinstance(stage, TileSteps):
                _OnTiles(self, stage, stored).run()
            else:
                _OnRows(self, stage, stored).run()
            for node in self._plan.done_with.get(at, ()):
                self._release(node)

    def _gather_leaves(self) -> None:
        """Resolve leaves and cached subtrees; raise `PanelLacksField` before any computation."""
        for node in self._plan.leaves:
            if node.op == "group":
                self._store.codes(node)
            elif node.op == "field":
                self._alive[node] = self._store.flat(node)
        for node in self._plan.known:
            flat = self._cache.get(node, estimate_subtree_cost(node))
            assert flat is not None, "a plan is run before the cache can change"
            self._alive[node] = flat

    def _new(self, node: Node) -> Flat:
        """Return a new array for the values of a stored node."""
        self._alive[node] = self._pool.take()
        return self._alive[node]

    def _release(self, node: Node) -> None:
        """Release a stored node: its values go to the cache, or its array goes back to the pool."""
        flat = self._alive.pop(node)
        if node in self._cache:
            return
        for gone, freed in self._cache.offer(node, flat, estimate_subtree_cost(node)):
            if gone not in self._alive:
                self._pool.give(freed)


def list_numbers(node: Node) -> list[float]:
    """Return the numbers of a step in the form that its kernel takes."""
    values = fill_parameters(node)
    return [
        int(values[argument.name]) if argument.is_whole else values[argument.name]
        for argument in OPERATORS[node.op].numbers
    ]


class _OnTiles:
    """The steps of one stage as a list of calls on slots, which every tile goes through.

    A slot is an array of the tile's size: a scratch array for a value that ends within the tile, else the tile's part
    of a stored value, a column, or a number.
    """

    def __init__(self, run: PlanRun, stage: TileSteps, stored: set[Node]) -> None:
        self._run = run
        self._stored = stored
        self._layout: Layout = run._store.layout
        self._bound: list[Node] = []
        self._slots: dict[Node, int] = {}
        self._free: list[int] = []
        self._temporary = 0
        self._calls: list[Callable[[_Views, int], None]] = []
        self._compile(stage)

    def _compile(self, stage: TileSteps) -> None:
        """Choose a slot for each value; slots are reused after the last reader of their value."""
        last: dict[Node, int] = {}
        for at, node in enumerate(stage.steps):
            last.update((arg, at) for arg in node.args)
        for node in stage.results:
            if node not in stage.steps:
                self._emit(node, stage.results[node])
        for at, node in enumerate(stage.steps):
            reads = [self._slot(arg, find_compute(node).by_rows) for arg in node.args]
            self._slots[node] = out = self._out(node)
            self._calls.append(_call(node, out, reads))
            if node in stage.results:
                self._emit(node, stage.results[node])
            for arg in {*node.args, node}:
                if self._slots.get(arg, -1) >= 0 and last.get(arg, at) == at:
                    self._free.append(self._slots.pop(arg))

    def _slot(self, node: Node, single_row: bool) -> int:
        """Return the slot of a value: from 0 for a temporary one, below 0 for a bound one."""
        if node in self._slots:
            return self._slots[node]
        bound = node if node.op != "number" or single_row else Node("panel", (node,))
        if bound not in self._bound:
            self._bound.append(bound)
        return -1 - self._bound.index(bound)

    def _out(self, node: Node) -> int:
        """Return a slot for a new value."""
        if node in self._stored:
            self._run._new(node)
            return self._slot(node, single_row=False)
        if self._free:
            return self._free.pop()
        self._temporary += 1
        return self._temporary - 1

    def _emit(self, node: Node, places: Sequence[int]) -> None:
        """Add the calls that copy a value to its places among the results."""
        slot, member = self._slot(node, single_row=False), self._run._store.member
        for place in places:
            self._calls.append(partial(_emit_slot, self._run._results[place], slot, member))

    def run(self) -> None:
        """Take every tile through the calls."""
        layout, scratch = self._layout, self._run._scratch

        def one(thread: int, tile: int) -> None:
            lo, hi = layout.columns(tile)
            size = layout.days * (hi - lo)
            spare = scratch.take(thread, self._temporary, layout.days * layout.width)
            arrays = [buffer[:size].reshape(layout.days, hi - lo) for buffer in spare]
            arrays += [self._bound_tile(node, tile) for node in reversed(self._bound)]
            views = _Views(arrays, [_merge_rows(array, ROWS_TOGETHER) for array in arrays])
            for call in self._calls:
                call(views, lo)

        self._run._workers.share(layout.count, one, alone=self._run._alone)

    def _bound_tile(self, node: Node, tile: int) -> Array:
        """Return a tile's part of a stored value, of a column, or of a number."""
        lo, hi = self._layout.columns(tile)
        if node.op == "number":
            return self._run._store.number(node)[:, : (hi - lo) * (ROWS_TOGETHER if self._layout.days > 1 else 1)]
        if node.op == "panel":
            return np.repeat(self._run._store.number(node.args[0])[:, : hi - lo], self._layout.days, axis=0)
        return self._layout.tile(self._run._alive[node], tile)


@dataclass(frozen=True, slots=True)
class _Views:
    """The slots of one tile, plain and with rows merged (see `_merge_rows`)."""

    tiles: list[Array]
    joined: list[tuple[Array, Array]]


def _merge_rows(tile: Array, together: int) -> tuple[Array, Array]:
    """Return a tile with groups of rows merged into one row each, and the remaining rows.

    A kernel on single cells does not depend on where a row ends, and long rows cost less than many short ones. A number
    is one row already.
    """
    days, names = tile.shape
    if days == 1:
        return tile, tile[:, : max(names // together, 1)]
    whole = days - days % together
    return tile[:whole].reshape(whole // together, names * together), tile[whole:]


def _emit_slot(out: Array, slot: int, member: Members, views: _Views, first: int) -> None:
    """Write a slot to its columns of a result."""
    emit(out, views.tiles[slot], member, 0, first)


def _call(node: Node, out: int, reads: list[int]) -> Callable[[_Views, int], None]:
    """Bind a kernel to its slots and numbers; slots below 0 count from the end of the list."""
    compute = find_compute(node)
    sweep, rest = compute.sweep, (*list_numbers(node), *compute.fixed)
    order = reads[::-1] if compute.swapped else reads

    def by_time(views: _Views, _: int) -> None:
        target = views.tiles[out]
        sweep(target, *[views.tiles[slot] for slot in order], *rest, 0, target.shape[1])

    def by_cell(views: _Views, _: int) -> None:
        for part in (0, 1):
            target = views.joined[out][part]
            sweep(target, *[views.joined[slot][part] for slot in order], *rest, 0, target.shape[0])

    return by_cell if compute.by_rows else by_time


class _OnRows:
    """One step across the names, on a few whole rows at a time."""

    def __init__(self, run: PlanRun, stage: RowStep, stored: set[Node]) -> None:
        self._run = run
        self._stage = stage
        self._layout: Layout = run._store.layout
        self._flat = run._new(stage.step) if stage.step in stored else None

    def run(self) -> None:
        """Take every block of rows through the kernel."""
        layout, node = self._layout, self._stage.step
        panels = [arg for arg in node.args if arg.op not in ("group", "number")]
        scratch = self._run._scratch

        def one(thread: int, part: int) -> None:
            first = part * ROWS_PER_BLOCK
            rows = min(ROWS_PER_BLOCK, layout.days - first)
            spare = scratch.take(thread, 1 + len(panels), ROWS_PER_BLOCK * layout.names)
            out, *blocks = [buffer[: rows * layout.names].reshape(rows, layout.names) for buffer in spare]
            self._fill(out, dict(zip(panels, blocks, strict=True)), first)

        self._run._workers.share(-(-layout.days // ROWS_PER_BLOCK), one, alone=self._run._alone)

    def _fill(self, out: Array, blocks: dict[Node, Array], first: int) -> None:
        """Gather some rows, compute them, and write them to the store and the results."""
        node, layout, store = self._stage.step, self._layout, self._run._store
        compute, rows = find_compute(node), out.shape[0]
        for arg, block in blocks.items():
            gather(block, self._run._alive[arg], first, layout.days, layout.width)
        arrays: list[Any] = [self._argument(arg, blocks, rows) for arg in node.args]
        if compute.stacked:
            arrays[1:] = [tuple(arrays[1:])]
        member = store.member[first : first + rows]
        compute.sweep(out, *arrays, member, *list_numbers(node), *compute.fixed, 0, rows)
        if self._flat is not None:
            scatter(self._flat, out, first, layout.days, layout.width)
        for place in self._stage.results:
            emit(self._run._results[place], out, store.member, first, 0)

    def _argument(self, node: Node, blocks: dict[Node, Array], rows: int) -> Any:
        if node.op == "group":
            return self._run._store.codes(node)
        if node.op == "number":
            return np.repeat(self._run._store.number(node)[:, : self._layout.names], rows, axis=0)
        return blocks[node]
