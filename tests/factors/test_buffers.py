"""What the subtree cache keeps and what goes, and how work is cut."""

from __future__ import annotations

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from alphaloom.factors.buffers import Pool, SubtreeCache
from alphaloom.factors.node import Node, field_node
from alphaloom.factors.workers import Workers, cuts


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
    pool = Pool((2, 2))
    array = pool.take()
    pool.give(array)
    assert pool.take() is array
    assert pool.take() is not array


@given(size=st.integers(0, 500), pieces=st.integers(0, 9), multiple=st.sampled_from([1, 16]))
def test_cuts_cover_everything_once(size: int, pieces: int, multiple: int) -> None:
    found = cuts(size, pieces, multiple)
    assert [cell for lo, hi in found for cell in range(lo, hi)] == list(range(size))
    assert all(lo % multiple == 0 for lo, _ in found)


def test_workers_visit_every_cell_once_with_more_than_one_thread() -> None:
    seen, threads = np.zeros((300, 700), np.int64), set()

    def part(lo: int, hi: int) -> None:
        threads.add(threading.get_ident())
        seen[:, lo:hi] += 1

    for count in (1, 2, 3):
        Workers(count).columns(part, seen.shape)
    assert (seen == 3).all()
    assert len(threads) > 1
