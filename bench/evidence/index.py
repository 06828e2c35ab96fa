"""Time the index of known formulas, beside comparing pair by pair and beside one SQLite table.

Formulas are drawn with `alphaloom.factors.sample`. Since to parse a million takes half an hour, each drawn one stands
for several: its tree with other windows, and with other columns of the same unit. CPU time of one core; what is
compared pair by pair is measured on few pairs and extrapolated, which is said.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from alphaloom.evidence.originality.catalogue import InvertedIndex, draw_formula, postings, search_indexes
from alphaloom.evidence.originality.subtree_index import SubtreeIndex
from alphaloom.factors import Expression, Node, parse, render, sample
from alphaloom.factors.describe.render import _render
from alphaloom.factors.language.canonical import _linearise_tree
from alphaloom.factors.language.parse import _parse
from alphaloom.factors.similarity import outline as outlines, rewrites as spelling
from alphaloom.factors.similarity.compare import KnownFormula, compare_formulas
from alphaloom.factors.similarity.outline import NumberCodes, Outline, draw_outline, is_near

TOP, CHUNK, LARGEST = 10, 50_000, 16
COLUMNS = (("open", "high", "low", "close", "vwap"), ("amount", "cap"))
"""Columns that may stand for each other."""
WINDOWS = (2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 90, 120, 250)
TABLE = 100_000
"""The largest number of formulas that are put into one SQLite table."""

Formula = tuple[KnownFormula, Outline]


@dataclass(frozen=True)
class Row:
    """What was measured with one number of formulas; microseconds of CPU unless the name says otherwise."""

    formulas: int
    nodes: float
    subtrees: float
    draw_us: float
    add_us: float
    add_us_per_node: float
    settle_s: float
    open_ms: float
    bytes_each: float
    p50_us: float
    p99_us: float
    most_us: float
    search_p50_us: float
    search_p99_us: float
    unsettled_p50_us: float
    unsettled_p99_us: float
    table_p50_us: float
    table_p99_us: float
    table_add_us: float
    table_bytes_each: float
    peak_mb: float


def main(given: Sequence[str]) -> int:
    """Measure and print."""
    options = arguments(given)
    sizes = sorted(int(size) for size in options.sizes.split(","))
    rng = np.random.default_rng(options.seed)
    asked = [sample(rng, max_size=LARGEST) for _ in range(options.queries + 100)]
    pairs = against_pairs(asked[:20], list(islice(formulas(options.seed + 2, 2000, 1), 2000)))
    rows = []
    for size in sizes:
        print(f"measuring {size:,} formulas", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(Path(folder), size, asked, options))
    reading = timed([expression.text for expression in asked[100:]], read_anew)
    print("\n".join(lines(rows, pairs, reading, options)))
    if options.json:
        record = {"rows": [asdict(row) for row in rows], "pair_us": pairs, "parse_us": percentiles(reading)}
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.evidence index", description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--variants", type=int, default=20, help="formulas that each drawn one stands for")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(given)


# Formulas.


def formulas(seed: int, count: int, variants: int) -> Iterator[Formula]:
    """Yield formulas, each drawn one followed by its variants."""
    rng = np.random.default_rng(seed)
    place = 0
    while True:
        tree = sample(rng, max_size=LARGEST).core
        for turn in range(variants):
            own = varied(tree, rng) if turn else tree
            whole = draw_outline(own)
            name = f"f{int(rng.integers(1 << 62)):016x}"
            yield KnownFormula(name, "the library", render(own), whole.text, whole.numbers, whole.size), whole
            place += 1
            if place == count:
                return


def varied(tree: Node, rng: np.random.Generator) -> Node:
    """Return a tree with other windows, and other columns of the same unit."""
    if tree.op == "field":
        for names in COLUMNS:
            if tree.name in names:
                return Node("field", name=names[int(rng.integers(len(names)))])
        return tree
    params = tuple(
        (name, float(WINDOWS[int(rng.integers(len(WINDOWS)))]) if name == "window" else value)
        for name, value in tree.params
    )
    return Node(tree.op, tuple(varied(arg, rng) for arg in tree.args), params, tree.value, tree.name)


# Measuring.


def clock() -> float:
    """Return the CPU seconds of this thread."""
    return time.thread_time()


def timed(asked: Sequence[object], answer: Callable[..., object]) -> list[float]:
    """Return the CPU microseconds of each answer."""
    found = []
    for each in asked:
        start = clock()
        answer(each)
        found.append(1e6 * (clock() - start))
    return found


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Return median and 99th percentile."""
    return float(np.percentile(values, 50)), float(np.percentile(values, 99))


def forget() -> None:
    """Empty what is remembered of trees, so that each is drawn anew."""
    for cached in (outlines.draw_outline, outlines._draw_tree, spelling.rewrite_tree):
        cached.cache_clear()


def read_anew(text: object) -> Expression:
    """Parse a formula of which nothing is remembered."""
    _parse.cache_clear()
    _linearise_tree.cache_clear()
    _render.cache_clear()
    return parse(str(text))


def asked_of(shelves: Sequence[InvertedIndex], asked: Sequence[Expression]) -> list[float]:
    """Return what queries cost, from the parsed formula on, after a hundred others."""
    timed(asked[:100], lambda one: search_indexes(draw_outline(one.core), shelves, TOP))
    forget()
    return timed(asked[100:], lambda one: search_indexes(draw_outline(one.core), shelves, TOP))


def measured(folder: Path, size: int, asked: Sequence[Expression], options: argparse.Namespace) -> Row:
    """Build an index of a size and ask it."""
    source = formulas(options.seed + 1, size, options.variants)
    nodes = parts = 0
    added = drawing = 0.0
    table = Table(folder / "table.sqlite") if size <= TABLE else None
    index = SubtreeIndex(folder / "index")
    while batch := list(islice(source, CHUNK)):
        nodes += sum(whole.size for _, whole in batch)
        parts += sum(len(postings(whole)) for _, whole in batch[:1000]) * len(batch) // min(len(batch), 1000)
        forget()
        start = clock()
        index.add(batch)
        added += clock() - start
        if table:
            table.add(batch)
    drawing = drawn_anew(batch_of(options, 2000))
    loose = asked_of(index.shelves, asked)
    start = clock()
    index.settle()
    settled = clock() - start
    index.close()
    start = clock()
    index = SubtreeIndex(folder / "index")
    opened = clock() - start
    whole = asked_of(index.shelves, asked)
    outlined = [draw_outline(one.core) for one in asked[100:]]
    alone = timed(outlined, lambda one: search_indexes(one, index.shelves, TOP))
    beside = asked_of([table], asked) if table else [float("nan")]
    bytes_each = sum(run.path.stat().st_size for run in index._runs) / size
    index.close()
    stored = (1e6 * table.seconds / size, table.size() / size) if table else (float("nan"), float("nan"))
    if table:
        table.connection.close()
    return Row(
        size, nodes / size, parts / size, drawing, 1e6 * added / size, 1e6 * added / nodes, settled, 1e3 * opened,
        bytes_each, *percentiles(whole), max(whole), *percentiles(alone), *percentiles(loose), *percentiles(beside),
        *stored, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )  # fmt: skip  # a table


def batch_of(options: argparse.Namespace, count: int) -> list[Node]:
    """Return trees that were drawn for the index, to be drawn anew."""
    return [whole.node for _, whole in islice(formulas(options.seed + 1, count, options.variants), count)]


def drawn_anew(trees: Sequence[Node]) -> float:
    """Return what an outline costs."""
    forget()
    return float(np.mean(timed(trees, draw_outline)))


def against_pairs(asked: Sequence[Expression], known: Sequence[Formula]) -> dict[str, float]:
    """Return what one pair costs: compared by our definition, and with both texts parsed again for every pair."""
    plain = [each for each, _ in known]
    start = clock()
    for one in asked:
        for each in plain:
            compare_formulas(one, each)
    pair = 1e6 * (clock() - start) / (len(asked) * len(plain))
    own = list(islice((sample(np.random.default_rng(seed), max_size=LARGEST) for seed in range(60)), 60))

    def both(place: object) -> object:
        one, other = read_anew(asked[int(str(place)) % len(asked)].text), read_anew(own[int(str(place))].text)
        forget()
        return compare_formulas(one, draw_formula("x", other, "")[0])

    return {"pair": pair, "parsed": float(np.mean(timed(range(60), both)))}


class Table:
    """The same postings in one SQLite table, the other way that was considered."""

    def __init__(self, path: Path) -> None:
        self.path, self.seconds, self.known_ = path, 0.0, list[KnownFormula]()
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(
            "CREATE TABLE postings (key INTEGER, size INTEGER, name TEXT, place INTEGER, codes TEXT, "
            "PRIMARY KEY (key, size, name, codes)) WITHOUT ROWID"
        )

    def add(self, formulas: Sequence[Formula]) -> None:
        """Add formulas in one transaction."""
        start = clock()
        self.connection.execute("BEGIN")
        for known, whole in formulas:
            rows = [
                (key - (1 << 63), known.size, known.name, len(self.known_), json.dumps(codes))
                for key, codes in postings(whole)
            ]
            self.connection.executemany("INSERT INTO postings VALUES (?, ?, ?, ?, ?)", rows)
            self.known_.append(known)
        self.connection.execute("COMMIT")
        self.seconds += clock() - start

    def size(self) -> int:
        """Return the bytes of the postings."""
        return self.path.stat().st_size

    def find(self, key: int, codes: NumberCodes) -> Iterator[tuple[int, int]]:
        """Yield size and place of each formula that seems to hold a subtree, smallest first, then by name."""
        query = "SELECT size, place, codes FROM postings WHERE key = ? ORDER BY size, name"
        for size, place, own in self.connection.execute(query, (key - (1 << 63),)):
            if is_near(json.loads(own), codes):
                yield size, place

    def name(self, place: int) -> str:
        """Return the name of a formula."""
        return self.known_[place].name

    def holds(self, place: int, part: Outline) -> bool:
        """Tell whether a subtree really stands in a formula, with numbers that are near."""
        return self.known_[place].holds(part)

    def known(self, place: int) -> KnownFormula:
        """Return a formula."""
        return self.known_[place]


# Telling.


def lines(
    rows: Sequence[Row], pairs: dict[str, float], reading: Sequence[float], options: argparse.Namespace
) -> Iterator[str]:
    """Yield the report."""
    yield f"Nearest {TOP} of known formulas; {options.queries} new queries each, CPU of one core, seed {options.seed}."
    yield f"Each drawn formula stands for {options.variants}: other windows, other columns of the same unit."
    yield ""
    yield (
        "| formulas | query p50 | p99 | longest | search alone p50 | p99 | before settling p50 | p99 | "
        "one SQLite table p50 | p99 |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        figures = (
            row.p50_us, row.p99_us, row.most_us, row.search_p50_us, row.search_p99_us, row.unsettled_p50_us,
            row.unsettled_p99_us, row.table_p50_us, row.table_p99_us,
        )  # fmt: skip  # a table
        yield f"| {row.formulas:,} | " + " | ".join("-" if np.isnan(one) else f"{one:.0f} us" for one in figures) + " |"
    yield ""
    yield (
        "| formulas | nodes | subtrees | outline | add | add, a node | settle | open | bytes each | SQLite add | "
        "bytes each | peak memory |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        sql = "- | -" if np.isnan(row.table_add_us) else f"{row.table_add_us:.0f} us | {row.table_bytes_each:.0f}"
        yield (
            f"| {row.formulas:,} | {row.nodes:.1f} | {row.subtrees:.1f} | {row.draw_us:.0f} us | {row.add_us:.0f} us | "
            f"{row.add_us_per_node:.1f} us | {row.settle_s:.1f} s | {row.open_ms:.1f} ms | {row.bytes_each:.0f} | "
            f"{sql} | {row.peak_mb:.0f} MB |"
        )
    yield ""
    yield (
        f"Parse and canonical form of a query: p50 {percentiles(reading)[0]:.0f} us, "
        f"p99 {percentiles(reading)[1]:.0f} us."
    )
    for name, what in (("pair", "comparing every pair"), ("parsed", "parsing both texts for every pair")):
        ratios = ", ".join(f"{pairs[name] * row.formulas / row.p50_us:,.0f}x at {row.formulas:,}" for row in rows)
        yield f"{what.capitalize()}: {pairs[name]:.1f} us a pair, measured on few and extrapolated: {ratios}."
