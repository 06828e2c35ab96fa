"""The engine benchmark: what is compared is what it says, and rivals read the same formulas."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import alphaloom
from alphaloom.factors import parse
from bench.engine.environments import OWN
from bench.engine.measure import agree
from bench.engine.own import Own, text_of, tree_of
from bench.engine.picture import draw as picture
from bench.engine.prices import draw, store
from bench.engine.report import lead, lines
from bench.engine.result import Pair, Result
from bench.engine.search import SearchCost, broods
from bench.engine.workload import FIELDS, GROUPINGS, RANK_SHARE, count, workload
from bench.rivals.pandas_reference import make

RIVALS = Path(alphaloom.__file__).resolve().parent / "bench" / "rivals"


def a_result() -> Result:
    nodes = {"as written": {"trees": 322, "distinct": 281, "ranks": 33, "share": 33 / 281}}
    groups = {"ts": 36, "cs": 24, "all": 60}
    pair = Pair(
        "KunQuant 8 wide",
        groups,
        {"ts": 0.25, "cs": 0.75, "all": 1.0},
        {"ts": 0.75, "cs": 7.0, "all": 8.0},
        {},
        {},
        0.1,
    )
    search = SearchCost("mutation", 0.4, {"single": 5.0, "batch": 4.0, "cached": 3.0}, {"batch": (127.0, 10.0)})
    return Result(
        2520, 1000, 5, "a machine", (0.5, 0.5, 0.5), nodes, pairs=[pair], search=[search],
        ranks={OWN.name: 0.01, "KunQuant 8 wide": 0.11}, threads={1: 1.0, 2: 0.55},
    )  # fmt: skip  # a table


def test_sixty_formulas_with_few_ranks() -> None:
    work = workload()
    assert [len(work.group(group)) for group in ("ts", "cs", "all")] == [36, 24, 60]
    assert len({expression.id for expression in work.expressions}) == 60
    for trees in (
        [expression.root for expression in work.expressions],
        [expression.canonical for expression in work.expressions],
    ):
        nodes = count(trees)
        assert 0 < nodes.ranks <= RANK_SHARE * nodes.distinct
        assert nodes.distinct < nodes.trees
    for place in work.group("ts"):
        assert not count([work.expressions[place].root]).by_operator.keys() & {"rank", "zscore", "scale", "demean"}


def test_trees_carry_the_formulas_whole() -> None:
    for expression in workload().expressions:
        tree = json.loads(json.dumps(tree_of(expression.root)))
        assert parse(text_of(tree)).root == expression.root


@pytest.mark.parametrize("path", sorted(RIVALS.glob("*.py")), ids=lambda path: path.stem)
def test_rivals_know_nothing_of_alphaloom(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.startswith("alphaloom") for name in names)


def test_the_panel_is_seeded_and_misses_about_one_per_cent() -> None:
    first, again = draw(300, 40, 3), draw(300, 40, 3)
    assert all(np.array_equal(first[name], again[name], equal_nan=True) for name in first)
    assert 0.003 < np.isnan(first["close"]).mean() < 0.02
    there = ~np.isnan(first["close"])
    assert (first["high"][there] > first["low"][there]).all()


@pytest.mark.filterwarnings("ignore")
def test_own_values_are_those_of_the_pandas_reference(tmp_path: Path) -> None:
    data, mine, theirs = (tmp_path / name for name in ("data", "mine", "theirs"))
    for folder in (data, mine, theirs):
        folder.mkdir()
    store(draw(160, 100, 0), data)
    trees = [tree_of(expression.root) for expression in workload().expressions]
    for engine, folder in ((Own(data, {}), mine), (make(data, {}), theirs)):
        engine.prepare("all", trees)
        for place, values in enumerate(engine.run("all")):
            np.save(folder / f"{place:03d}.npy", values)
    found = agree(mine, theirs)
    assert len(found) == 60
    assert sum(agreement.values > 0.999 for agreement in found) >= 55
    # ranks of sums of ranks tie, and float32 orders ties by chance
    assert min(agreement.values for agreement in found) > 0.9
    assert min(agreement.gaps for agreement in found) > 0.99


def test_a_wrong_value_and_a_filled_gap_are_seen(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    exact = np.arange(100.0).reshape(10, 10)
    wrong = exact.copy()
    exact[0, 0], wrong[5, 5] = np.nan, 3.0
    np.save(tmp_path / "theirs" / "000.npy", exact)
    np.save(tmp_path / "mine" / "000.npy", wrong)
    (found,) = agree(tmp_path / "mine", tmp_path / "theirs")
    assert found.values == pytest.approx(98 / 99)
    assert found.gaps == pytest.approx(0.99)
    assert not found.full


def test_children_are_new_seeded_and_of_operators_that_rivals_have() -> None:
    parents = workload().expressions
    first, again = (broods(parents, 8, 1, FIELDS, GROUPINGS) for _ in range(2))
    usable = count([parent.root for parent in parents]).by_operator.keys()
    for one, other in zip(first, again, strict=True):
        assert [child.id for child in one.children] == [child.id for child in other.children]
        assert len({expression.id for expression in (*parents, *one.children)}) == 68
        assert count([child.root for child in one.children]).by_operator.keys() <= usable
    mutation, crossover = first
    assert 0 < mutation.known < crossover.known < 1


def test_the_report_says_where_the_lead_comes_from() -> None:
    result = a_result()
    text = lead(result)
    assert "8.0 times" in text
    assert "3.0 times" in text
    assert f"{100 * 33 * 0.1 / 7:.0f} %" in text
    assert f"{100 * 127 / 137:.0f} %" in text
    assert text in "\n".join(lines(result, {}, {}))
    assert json.loads(json.dumps(result.record))["ratios"]["KunQuant 8 wide"]["ts"] == 3.0


def test_the_picture_is_xml_with_a_bar_for_each_ratio() -> None:
    drawn = ElementTree.fromstring(picture(a_result()))
    bars = [element for element in drawn.iter() if element.get("class") == "bar"]
    assert len(bars) == 4
    assert max(float(bar.get("width", "0")) for bar in bars) > 300
