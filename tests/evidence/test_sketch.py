"""Sketched rank correlations are true within their slack; their answers equal those of a full comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from alphaloom.evidence.originality import redundancy
from alphaloom.evidence.originality.redundancy import (
    CORRELATION_FLOOR,
    LibraryValues,
    Overlap,
    find_closest,
    rank_correlation,
)
from alphaloom.evidence.originality.sketch import (
    MISSING_CELL,
    Sketch,
    Sketcher,
    Sketches,
    SketchStore,
    estimate_correlations,
)
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, parse, sample
from alphaloom.ledger import LibraryRow
from alphaloom.market import Panel

from .lab import market

Values = NDArray[np.float32]
WINDOW = Window("search", 3, 253, "a", "b")
DAYS, NAMES = 260, 80
SEEDS = st.integers(0, 100_000)


def universe(seed: int) -> NDArray[np.bool_]:
    """Return a universe that names join and leave, and that is nearly empty at first."""
    rng = np.random.default_rng(seed)
    first, last = np.sort(rng.integers(-150, DAYS + 150, (2, NAMES)), axis=0)
    days = np.arange(DAYS)[:, None]
    return np.asarray((days >= first) & (days <= last))


def gaps(rng: np.random.Generator, values: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
    """Take values away: by chance, the low ones, the middle ones, the first days, or none."""
    level = np.argsort(np.argsort(values, axis=1), axis=1) / values.shape[1]
    cut = rng.uniform(0.0, 0.6)
    gone = [rng.random(values.shape) < cut, level < cut, np.abs(level - 0.5) < cut / 2, np.zeros_like(level) > 0][
        kind % 4
    ]
    if kind == 4:
        gone[: int(cut * len(values))] = True
    return np.where(gone, np.nan, values)


def draw(rng: np.random.Generator, common: NDArray[np.float64], member: NDArray[np.bool_]) -> Values:
    """Return a factor: some of what all have in common, ties perhaps, gaps perhaps, days on which it says nothing."""
    weight = rng.choice([0.0, 0.3, 0.8, 3.0]) * rng.choice([-1, 1])
    values = weight * common + rng.normal(size=common.shape)
    if rng.random() < 0.3:
        values = np.round(values * rng.choice([0.3, 1.0, 3.0]))
    values = gaps(rng, values, int(rng.integers(8)))
    values[rng.random(len(values)) < 0.05] = 1.0
    return np.where(member, values, np.nan).astype(np.float32)


def drawn(seed: int, count: int) -> tuple[NDArray[np.bool_], list[Values]]:
    rng = np.random.default_rng(seed)
    member = universe(seed)
    common = rng.normal(size=(DAYS, NAMES))
    return member, [draw(rng, common, member) for _ in range(count)]


@given(SEEDS)
def test_a_correlation_is_within_the_slack_of_its_guess(seed: int) -> None:
    member, values = drawn(seed, 8)
    sketcher = Sketcher(member, WINDOW)
    sketches = [sketcher.sketch(value) for value in values]
    for one, mine in zip(values, sketches, strict=True):
        correlations = estimate_correlations(mine, Sketches.of(sketches))
        exact = np.array([rank_correlation(one, other, WINDOW) for other in values])
        assert (np.abs(correlations.rank_correlation - exact) <= correlations.slack).all()


def test_without_gaps_the_slack_is_the_chance_in_the_buckets() -> None:
    rng = np.random.default_rng(1)
    one = rng.normal(size=(DAYS, NAMES)).astype(np.float32)
    other = (one + rng.normal(size=one.shape)).astype(np.float32)
    sketcher = Sketcher(np.ones(one.shape, np.bool_), WINDOW)
    correlations = estimate_correlations(
        sketcher.sketch(one), Sketches.of([sketcher.sketch(values) for values in (one, other, -one)])
    )
    exact = rank_correlation(one, other, WINDOW)
    assert correlations.slack[1] == pytest.approx(
        5 * (1 - correlations.rank_correlation[1] ** 2) / np.sqrt(8192) + 0.002
    )
    assert correlations.rank_correlation == pytest.approx([1, exact, -1], abs=0.03)


def test_a_sketch_is_the_same_in_every_process() -> None:
    values = np.arange(DAYS * NAMES, dtype=np.float32).reshape(DAYS, NAMES) ** 2 % 101
    made = Sketcher(np.ones(values.shape, np.bool_), WINDOW).sketch(values)
    assert (made.share, int(made.buckets.astype(int) @ np.arange(8192)), int(made.cells.astype(int).sum())) == SUMS


SUMS = (1.0, -4266391, 42)


# Answers from sketches.


class Shelf:
    """An engine that has the values and counts who asks for them."""

    def __init__(self, panel: Panel, values: Mapping[str, Values]) -> None:
        self.panel, self._values, self.asked = panel, values, list[str]()

    def evaluate(self, names: Sequence[str]) -> list[Values]:
        self.asked += names
        return [self._values[name] for name in names]

    def stream(self, names: Iterable[str]) -> Iterator[Values]:
        return (self.evaluate([name])[0] for name in names)


def row(name: str, **sheet: Any) -> LibraryRow:
    return LibraryRow(name, name, name, "h", "run", {"fields": ["close"], **sheet})


def panel(member: NDArray[np.bool_]) -> Panel:
    prices = np.where(member, 10.0, np.nan)
    days = np.datetime64("2020-01-01") + np.arange(len(member))
    fields = dict.fromkeys(("open", "high", "low", "close", "volume"), prices)
    return Panel.build(days, [f"n{at:03}" for at in range(member.shape[1])], fields)


def shown(folder: Path, member: NDArray[np.bool_], values: Mapping[str, Values]) -> tuple[LibraryValues, Shelf]:
    shelf = Shelf(panel(member), values)
    read = cast("Callable[[LibraryRow], Any]", lambda row: row.text)
    return LibraryValues(cast("Engine", shelf), WINDOW, folder, read, map(row, values)), shelf


@settings(max_examples=25)
@given(SEEDS)
def test_the_closest_is_that_of_comparing_all(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    member, values = drawn(seed, 16)
    library = {f"f{at * 7 % 12:02}": each for at, each in enumerate(values[:12])}
    library["twin"], library["turned"] = values[12], -values[12]
    told, _ = shown(tmp_path_factory.mktemp("library"), member, library)
    for candidate in values[11:]:
        assert told.closest(candidate, floor=0.0) == find_closest(candidate, library, WINDOW)
        exact = [Overlap(name, rank_correlation(candidate, each, WINDOW)) for name, each in library.items()]
        exact.sort(key=lambda one: (-abs(one.rank_correlation), one.factor_id))
        assert told.nearest(candidate, 4, floor=0.0) == exact[:4]


def test_random_formulas_on_a_market_are_told_as_by_comparing_all(tmp_path: Path) -> None:
    engine, rng = Engine(market()), np.random.default_rng(5)
    expressions = {one.id: one for one in (sample(rng, fields=sorted(market().fields)) for _ in range(150))}
    names = sorted(expressions)
    rows = [LibraryRow(name, expressions[name].text, "", "h", "run", {}) for name in names[:110]]
    window = Window("search", 0, 250, "a", "b")
    told = LibraryValues(engine, window, tmp_path, lambda one: parse(one.text), rows)
    library = {name: told.values(name) for name in told}
    for name in names:
        candidate = engine.evaluate([expressions[name]])[0]
        assert told.closest(candidate) == find_closest(candidate, library, window)


def test_in_a_long_library_what_reaches_the_floor_is_told_as_by_comparing_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redundancy, "SMALL_LIBRARY_FACTORS", 0)
    member, values = drawn(8, 40)
    library = {f"f{at:02}": each for at, each in enumerate(values[:30])}
    told, _ = shown(tmp_path, member, library)
    reached = 0
    for candidate in values[30:]:
        right, found = find_closest(candidate, library, WINDOW), told.closest(candidate)
        assert right is not None
        assert found is not None
        assert found.rank_correlation == rank_correlation(candidate, library[found.factor_id], WINDOW)
        if abs(right.rank_correlation) >= CORRELATION_FLOOR:
            reached += 1
            assert found == right
    assert reached >= 2


def test_a_clone_is_caught_upside_down_and_with_half_its_cells_hidden(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    values = {f"f{at:03}": rng.normal(size=(DAYS, NAMES)).astype(np.float32) for at in range(60)}
    told, _ = shown(tmp_path, np.ones((DAYS, NAMES), np.bool_), values)
    mine = np.where(values["f007"] > 0, -np.exp(values["f007"]), np.nan).astype(np.float32)
    found = told.closest(mine)
    assert found is not None
    assert found.factor_id == "f007"
    assert found.rank_correlation == pytest.approx(-1)


def test_few_are_compared_in_full_and_none_is_sketched_twice(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = {f"f{at:03}": rng.normal(size=(DAYS, NAMES)).astype(np.float32) for at in range(200)}
    told, shelf = shown(tmp_path, np.ones((DAYS, NAMES), np.bool_), values)
    told.closest((values["f100"] + 0.5 * rng.normal(size=(DAYS, NAMES))).astype(np.float32))
    assert sorted(shelf.asked) == sorted([*values, "f100"])
    again, shelf = shown(tmp_path, np.ones((DAYS, NAMES), np.bool_), values)
    again.closest(values["f100"])
    assert shelf.asked == ["f100"]


def test_one_is_left_out_and_nothing_is_like_an_empty_library(tmp_path: Path) -> None:
    member, values = drawn(4, 3)
    told, _ = shown(tmp_path, member, {"a": values[0], "b": values[1]})
    assert [one.factor_id for one in told.nearest(values[0], 5, but="a")] == ["b"]
    assert shown(tmp_path, member, {})[0].closest(values[0]) is None
    assert shown(tmp_path, member, {"a": values[0]})[0].closest(values[0], but="a") is None


def test_what_says_nothing_is_like_nothing_without_asking(tmp_path: Path) -> None:
    member, values = drawn(5, 2)
    told, shelf = shown(tmp_path, member, {"b": values[0], "a": values[1]})
    assert told.closest(np.ones((DAYS, NAMES), np.float32)) == Overlap("a", 0.0)
    assert shelf.asked == []


def test_a_row_whose_columns_the_panel_lacks_is_left_out(tmp_path: Path) -> None:
    member, values = drawn(6, 2)
    told, _ = shown(tmp_path, member, {"a": values[0]})
    told.show([row("b", fields=["close", "sentiment"])])
    assert list(told) == ["a"]


def test_a_factor_by_group_is_compared_with_too(tmp_path: Path) -> None:
    text = "group_zscore(volume, sector)"
    kept = LibraryRow("a", text, "", "h", "run", {"fields": sorted(parse(text).fields)})
    told = LibraryValues(
        Engine(market()), Window("search", 0, 250, "a", "b"), tmp_path, lambda one: parse(one.text), [kept]
    )
    found = told.closest(-told.values("a"))
    assert found is not None
    assert found.rank_correlation == pytest.approx(-1)


def test_a_later_day_makes_nothing_anew_and_another_window_does(tmp_path: Path) -> None:
    engine, short = Engine(market()), Engine(market().rows(0, 400))
    rows = [LibraryRow("a", "rank(close)", "", "h", "run", {})]
    window, other = Window("search", 0, 250, "a", "b"), Window("search", 0, 255, "a", "b")
    folders = [
        LibraryValues(each, span, tmp_path, lambda one: parse(one.text), rows).folder
        for each, span in ((engine, window), (short, window), (engine, other))
    ]
    assert folders[0] == folders[1] != folders[2]


# The store.


def sketches(count: int, seed: int = 0) -> dict[str, Sketch]:
    rng = np.random.default_rng(seed)
    return {
        f"f{seed}-{at}": Sketch(
            rng.integers(-127, 128, 8192).astype(np.int8),
            rng.integers(MISSING_CELL, 128, 4096).astype(np.int8),
            float(rng.random()),
        )
        for at in range(count)
    }


def same(store: SketchStore, made: Mapping[str, Sketch]) -> bool:
    """Tell whether a store holds these and nothing else."""
    held = store.sketches
    return set(store.names) == set(made) and all(
        (held.buckets[at] == made[name].buckets).all()
        and (held.cells[at] == made[name].cells).all()
        and (held.shares[at], held.lengths[at]) == (made[name].share, made[name].length)
        for at, name in enumerate(store.names)
    )


def test_what_was_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    made = sketches(5)
    assert SketchStore(tmp_path).add(made) == 5
    again = SketchStore(tmp_path)
    assert again.add(made) == 0
    assert same(again, made)


class Crash(Exception):
    """A process that dies."""


@pytest.mark.parametrize("step", ["first file", "both files"])
def test_a_crash_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    store, made = SketchStore(tmp_path), sketches(3)
    store.add(made)
    calls: list[int] = []

    def dies(handle: int) -> None:
        calls.append(handle)
        if len(calls) == (1 if step == "first file" else 2):
            raise Crash

    monkeypatch.setattr("os.fsync", dies)
    with pytest.raises(Crash):
        store.add(sketches(4, 1))
    monkeypatch.undo()
    assert (tmp_path / "buckets.bin").stat().st_size > 3 * 8192
    again = SketchStore(tmp_path)
    assert same(again, made)
    assert again.add(sketches(2, 2)) == 2
    assert same(SketchStore(tmp_path), made | sketches(2, 2))


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    one, other = SketchStore(tmp_path), SketchStore(tmp_path)
    for turn in range(6):
        (one if turn % 2 else other).add(sketches(2, turn))
    one.read()
    everything: dict[str, Sketch] = {}
    for turn in range(6):
        everything |= sketches(2, turn)
    assert same(one, everything)


def test_other_code_makes_other_sketches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    member, values = drawn(7, 1)
    before = shown(tmp_path, member, {"a": values[0]})[0].folder
    monkeypatch.setattr(redundancy, "sketch_code_digest", lambda: "another")
    assert shown(tmp_path, member, {"a": values[0]})[0].folder != before
