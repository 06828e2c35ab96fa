"""What the subtree cache keeps and what goes, and how work is cut."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from alphaloom.factors.engine.buffers import BufferPool, SubtreeCache
from alphaloom.factors.engine.tiles import Layout
from alphaloom.factors.engine.workers import Workers
from alphaloom.factors.kernels.cells import gather, scatter
from alphaloom.factors.language.node import Node, field_node


def values() -> NDArray[np.float32]:
    return np.zeros((2, 2), np.float32)  # 16 bytes


def named(count: int) -> list[Node]:
    return [field_node(f"x{k}") for k in range(count)]


def test_the_cheapest_goes_first() -> None:
    cache = SubtreeCache(32)
    cheap, dear, other = named(3)
    kept = values()
    assert not list(cache.offer(cheap, kept, 1.0))
    assert not list(cache.offer(dear, values(), 50.0))
    assert list(cache.offer(other, values(), 5.0)) == [(cheap, kept)]
    assert cheap not in cache
    assert cache.bytes == 32


def test_what_is_asked_for_stays_and_the_rest_grows_old() -> None:
    cache = SubtreeCache(32)
    wanted, once, *others = named(12)
    list(cache.offer(wanted, values(), 2.5))
    list(cache.offer(once, values(), 3.0))
    for node in others:
        assert cache.get(wanted, 2.5) is not None
        list(cache.offer(node, values(), 2.0))
    assert wanted in cache
    assert once not in cache


def test_what_is_larger_than_the_budget_comes_back() -> None:
    cache = SubtreeCache(15)
    node, array = field_node("x"), values()
    assert list(cache.offer(node, array, 9.0)) == [(node, array)]
    assert cache.bytes == 0


def test_a_pool_hands_out_what_it_got() -> None:
    pool = BufferPool(4)
    array = pool.take()
    pool.give(array)
    assert pool.take() is array
    assert pool.take() is not array


@given(days=st.integers(1, 40), names=st.integers(1, 500), threads=st.integers(1, 3))
def test_tiles_hold_every_cell_once(days: int, names: int, threads: int) -> None:
    layout = Layout.of(days, names, threads)
    rows = np.arange(days * names, dtype=np.float32).reshape(days, names)
    flat = layout.cut(rows)
    again = np.hstack([layout.tile(flat, tile) for tile in range(layout.count)])
    np.testing.assert_array_equal(again, rows)


@given(days=st.integers(1, 40), names=st.integers(1, 300), first=st.integers(0, 39))
def test_rows_are_gathered_and_scattered_unchanged(days: int, names: int, first: int) -> None:
    layout, first = Layout(days, names, 64), min(first, days - 1)
    rows = np.arange(days * names, dtype=np.float32).reshape(days, names)
    block = np.empty((days - first, names), np.float32)
    gather(block, layout.cut(rows), first, days, layout.width)
    np.testing.assert_array_equal(block, rows[first:])
    flat = layout.cut(np.zeros_like(rows))
    scatter(flat, block, first, days, layout.width)
    np.testing.assert_array_equal(layout.cut(np.where(np.arange(days)[:, None] < first, 0, rows)), flat)


def test_workers_do_every_part_once_with_more_than_one_thread() -> None:
    seen, threads = np.zeros(200, np.int64), set()
    for count in (1, 2, 3):
        together = threading.Barrier(count)

        def body(thread: int, part: int, together: threading.Barrier = together) -> None:
            if part < together.parties:
                together.wait(timeout=20)
            threads.add(thread)
            seen[part] += 1

        Workers(count).share(len(seen), body)
    assert (seen == 3).all()
    assert threads == {0, 1, 2}


def test_an_error_in_a_thread_comes_out() -> None:
    def body(thread: int, part: int) -> None:
        if part == 3:
            raise ValueError("part 3")

    for count in (1, 2):
        with pytest.raises(ValueError, match="part 3"):
            Workers(count).share(8, body)
