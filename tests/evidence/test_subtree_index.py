"""The index finds what comparing with everything finds, and keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from alphaloom.evidence.originality import catalogue as shelf, subtree_index
from alphaloom.evidence.originality.catalogue import (
    Catalogue,
    MemoryIndex,
    Selection,
    draw_formula,
    postings,
    search_indexes,
)
from alphaloom.evidence.originality.published import formulas, published_expressions, read_published_file
from alphaloom.evidence.originality.subtree_index import KnownLibrary, SortedRun, SubtreeIndex
from alphaloom.factors import Expression, parse, sample
from alphaloom.factors.similarity.compare import (
    KnownFormula,
    Likeness,
    compare_formulas,
    pack_formula,
    rank_likeness,
    unpack_formula,
)
from alphaloom.factors.similarity.outline import Outline, draw_outline, list_subtrees
from alphaloom.ledger import LibraryRow

COUNT = 2000
Found = list[tuple[float, str, str, bool]]


@cache
def factors() -> list[tuple[str, Expression, str]]:
    """Return random formulas whose names are in another order than they are."""
    rng = np.random.default_rng(11)
    return [(f"n{place * 7919 % COUNT:05}", sample(rng), "the library") for place in range(COUNT)]


@cache
def known() -> list[tuple[KnownFormula, Outline]]:
    return [draw_formula(*factor) for factor in factors()]


@cache
def asked() -> list[Expression]:
    """Return new formulas, some old ones, and parts that nearly everything holds."""
    rng = np.random.default_rng(12)
    common = [parse(text) for text in ("close", "close / volume", "rank(close) - rank(volume)", "ts_mean(close, 900)")]
    return [*(sample(rng) for _ in range(12)), *(factor[1] for factor in factors()[:4]), *common]


def told(found: Sequence[Likeness]) -> Found:
    return [(like.ratio, like.known.name, like.shared, like.exact) for like in found]


@cache
def by_comparing(top: int = 10) -> list[Found]:
    """Return the answers of the slow definition."""
    everything = [[compare_formulas(one, each) for each, _ in known()] for one in asked()]
    return [told(rank_likeness([like for like in found if like.ratio > 0], top)) for found in everything]


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs be made and joined after few formulas."""
    monkeypatch.setattr(subtree_index, "MAX_TABLE_ROWS", 40)


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize("settled", [False, True])
def test_the_index_says_what_comparing_with_2000_says(tmp_path: Path, settled: bool) -> None:
    with SubtreeIndex(tmp_path) as index:
        for first in range(0, COUNT, 97):
            assert index.add(known()[first : first + 97]) == len(known()[first : first + 97])
        if settled:
            index.settle()
        assert len(index) == COUNT
        assert [told(index.nearest(draw_outline(one.core), 10)) for one in asked()] == by_comparing()


def test_so_does_a_shelf_in_memory() -> None:
    catalogue = Catalogue.of(factors())
    assert [told(catalogue.nearest(one, 10)) for one in asked()] == by_comparing()


def test_several_shelves_are_one() -> None:
    shelves = [MemoryIndex(known()[:700]), MemoryIndex(known()[700:1500]), MemoryIndex(known()[1500:])]
    assert [told(search_indexes(draw_outline(one.core), shelves, 10)) for one in asked()] == by_comparing()


def test_hashes_that_collide_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With four bits of hash nearly everything collides, and the answers stay what they are."""

    def crude(part: Outline) -> shelf.Posting:
        return (part.digest[0] >> 4 << 4) + min(len(part.codes), 15), part.codes[:15]

    monkeypatch.setattr(shelf, "posting", crude)
    with SubtreeIndex(tmp_path) as index:
        index.add(known()[:400])
        index.settle()
        crowded: list[list[shelf.InvertedIndex]] = [index.shelves[:1], [MemoryIndex(known()[:400])]]
    few = [each for each, _ in known()[:400]]
    for one in asked()[:12]:
        right = rank_likeness([like for like in (compare_formulas(one, other) for other in few) if like.ratio > 0], 5)
        assert [told(search_indexes(draw_outline(one.core), shelves, 5)) for shelves in crowded] == [told(right)] * 2


@pytest.mark.usefixtures("small_table")
def test_what_was_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with SubtreeIndex(tmp_path) as index:
        index.add(known()[:100])
        index.add(known()[100:120])
    with SubtreeIndex(tmp_path) as again:
        assert len(again) == 120
        assert all(each.name in again for each, _ in known()[:120])
        assert known()[120][0].name not in again
        assert again.add(known()[:120]) == 0
        one = factors()[110]
        assert again.nearest(draw_outline(one[1].core))[0].ratio == 1.0


class Crash(Exception):
    """A process that dies."""


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize("step", ["sort_contents", "write_run", "merge_runs", "_find_first_joined"])
@pytest.mark.parametrize("before", [True, False])
def test_a_crash_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, before: bool
) -> None:
    with SubtreeIndex(tmp_path) as index:
        index.add(known()[:50])
        index.add(known()[50:70])
        right = getattr(subtree_index, step)

        def dies(*given: object) -> None:
            if not before:
                right(*given)
            raise Crash

        monkeypatch.setattr(subtree_index, step, dies)
        with pytest.raises(Crash):
            index.add(known()[70:150])
        assert len(index) == 70
        monkeypatch.setattr(subtree_index, step, right)
    with SubtreeIndex(tmp_path) as again:
        assert len(again) == 70
        assert again.add(known()[70:150]) == 80
        assert len(again) == 150
        again.settle()
        again.settle()
        assert [path.name for path in tmp_path.glob("run-*")][-1:] == [again._runs[0].path.name]


@pytest.mark.usefixtures("small_table")
def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    with SubtreeIndex(tmp_path) as one, SubtreeIndex(tmp_path) as other:
        for first in range(0, 200, 20):
            (one if first % 40 else other).add(known()[first : first + 20])
        one.add(known()[200:201])
        assert len(one) == 201
    with SubtreeIndex(tmp_path) as again:
        assert {each.name for each, _ in known()[:201] if each.name in again} == {
            each.name for each, _ in known()[:201]
        }


def test_an_index_of_another_form_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SubtreeIndex(tmp_path) as index:
        index.add(known()[:10])
    monkeypatch.setattr(subtree_index, "hash_outline_code", lambda: "another")
    with SubtreeIndex(tmp_path) as again:
        assert (len(again), again.nearest(known()[0][1])) == (0, [])


def test_a_formula_survives_being_packed() -> None:
    for each, _ in known()[:50]:
        assert unpack_formula(pack_formula(each), each.size) == each


def test_each_subtree_is_found_under_its_own_text() -> None:
    for each, whole in known()[:200]:
        assert whole.size == each.size
        for part in list_subtrees(whole):
            assert each.holds(part)
        assert len(postings(whole)) == len({(part.text, part.codes) for part in list_subtrees(whole)})


def test_hashes_are_the_same_in_every_process() -> None:
    assert draw_outline(parse("ts_mean(close, 20)").core).digest.hex() == DIGEST


DIGEST = "e6ca6291d0a20009"


def test_a_selection_hides_the_rest() -> None:
    names = {each.name for each, _ in known()[::3]}
    chosen = Selection(MemoryIndex(known()), names)
    apart = MemoryIndex(pair for pair in known() if pair[0].name in names)
    for one in asked():
        whole = draw_outline(one.core)
        assert told(search_indexes(whole, [chosen], 5)) == told(search_indexes(whole, [apart], 5))


def row(place: int) -> LibraryRow:
    name, expression, _ = factors()[place]
    return LibraryRow(name, expression.text, expression.canonical_text, "h", "run", {})


def test_a_run_sees_the_rows_that_it_is_shown(tmp_path: Path) -> None:
    first, second = (
        KnownLibrary(tmp_path, lambda one: parse(one.text)),
        KnownLibrary(tmp_path, lambda one: parse(one.text)),
    )
    first.show([])
    assert not list(tmp_path.iterdir())
    first.show([row(0), row(1)])
    second.show([row(1)])
    mine = factors()[0][1]
    assert Catalogue(first.shelves).nearest(mine)[0].known.name == row(0).factor_id
    assert row(0).factor_id not in {like.known.name for like in Catalogue(second.shelves).nearest(mine, 5)}


def test_published_factors_that_are_kept_are_those_that_are_read(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "published.json"
    fresh, again = read_published_file(file), read_published_file(file)
    assert list(fresh) == list(again) == [draw_formula(*expression)[0] for expression in published_expressions()]
    file.write_bytes(file.read_bytes()[:-10])
    assert list(read_published_file(file)) == list(fresh)
    one = parse(formulas("alpha158")["KLEN"], dialect="qlib")
    assert told(Catalogue((again,)).nearest(one, 5)) == told(Catalogue((fresh,)).nearest(one, 5))


def test_a_run_opens_without_reading_its_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SubtreeIndex(tmp_path) as index:
        index.add(known())
        index.settle()
    monkeypatch.setattr(SortedRun, "record", lambda *_: pytest.fail("read a formula"))
    with SubtreeIndex(tmp_path) as again:
        assert len(again) == COUNT
