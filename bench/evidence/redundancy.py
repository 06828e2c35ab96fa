"""Time the comparison with a library by sketches, beside correlating ranks with every factor.

Formulas are drawn with `alphaloom.factors.sample` on a synthetic market, and join the library as the gate would let
them: only where none that is there has an absolute rank correlation above 0.7. Their sketches are repeated up to the
number that is asked for, which the product does not notice; how many are compared in full is counted in the library as
it is. What compares every pair is measured on few pairs and extrapolated, which is said. CPU time of one core.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alphaloom.evidence.originality.redundancy import CORRELATION_FLOOR, LibraryValues, Overlap, find_closest
from alphaloom.evidence.originality.sketch import (
    SKETCH_FILES,
    SKETCH_STEP_DAYS,
    Sketch,
    Sketcher,
    Sketches,
    estimate_correlations,
)
from alphaloom.evidence.windows import Window
from alphaloom.factors import Engine, Expression, order_rows, parse, row_rank_correlation, sample
from alphaloom.ledger import LibraryRow
from alphaloom.market import Panel, SyntheticConfig, simulate

Values = NDArray[np.float32]
LIMIT, SIZE, LEAST_COVERAGE = 0.7, 14, 0.5
PAIRS = 60


@dataclass(frozen=True)
class Row:
    """What was measured; CPU milliseconds unless the name says otherwise."""

    library: int
    sketches: int
    make_ms: float
    product_ms: float
    in_full: float
    most_in_full: int
    answer_ms: float
    exact_pair_ms: float
    pandas_pair_ms: float
    compute_ms: float
    agree: int
    above: int
    candidates: int
    bytes_each: int


def main(given: Sequence[str]) -> int:
    """Measure and print."""
    options = arguments(given)
    row = measured(options)
    print("\n".join(lines(row, options)))
    if options.json:
        options.json.write_text(json.dumps(asdict(row), indent=1) + "\n")
    return 0


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.evidence redundancy", description=__doc__)
    parser.add_argument("--library", type=int, default=500, help="formulas that are computed")
    parser.add_argument("--sketches", type=int, default=10_000)
    parser.add_argument("--candidates", type=int, default=40)
    parser.add_argument("--days", type=int, default=1250)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(given)


def clock() -> float:
    """Return the CPU seconds of this process: the engine has threads."""
    return time.process_time()


def spent(calls: Sequence[Callable[[], object]]) -> float:
    """Return the median CPU milliseconds of some calls."""
    found = []
    for call in calls:
        start = clock()
        call()
        found.append(1e3 * (clock() - start))
    return float(np.median(found))


# The library.


def drawn(engine: Engine, rng: np.random.Generator, covered: NDArray[np.bool_]) -> Iterator[tuple[Expression, Values]]:
    """Yield new formulas that have a value for half of the cells, and not the same one for all names."""
    seen: set[str] = set()
    while True:
        one = sample(rng, fields=sorted(engine.panel.fields), max_size=SIZE)
        if one.id in seen:
            continue
        seen.add(one.id)
        values = engine.evaluate([one])[0]
        last = values[-1][~np.isnan(values[-1])]
        if np.mean(~np.isnan(values[covered])) > LEAST_COVERAGE and len(np.unique(last)) > 1:
            yield one, values


def filled(
    source: Iterator[tuple[Expression, Values]], sketcher: Sketcher, count: int
) -> tuple[dict[str, Expression], dict[str, Values], list[Sketch]]:
    """Take formulas until the library has as many; one that it says already is left out."""
    texts: dict[str, Expression] = {}
    held: dict[str, Values] = {}
    sketches: list[Sketch] = []
    together = Sketches.of([])
    for one, values in source:
        mine = sketcher.sketch(values)
        if len(sketches) % 25 == 0:
            together = Sketches.of(sketches)
        late = Sketches.of(sketches[len(together) :])
        if all(
            (np.abs(estimate_correlations(mine, some).rank_correlation) <= LIMIT).all() for some in (together, late)
        ):
            texts[one.id], held[one.id] = one, values
            sketches.append(mine)
        if len(sketches) == count:
            break
    return texts, held, sketches


class Counting(LibraryValues):
    """A library that counts what is compared in full."""

    asked = 0

    def values(self, name: str) -> Values:
        """Compute a factor."""
        self.asked += 1
        return super().values(name)


# Measuring.


def measured(options: argparse.Namespace) -> Row:
    """Build a library and ask it."""
    panel = simulate(SyntheticConfig(seed=options.seed, days=options.days, names=options.names)).panel
    window = Window("search", 0, int(0.6 * panel.days), str(panel.dates[0]), str(panel.dates[-1]))
    engine, rng = Engine(panel), np.random.default_rng(options.seed)
    source, sketcher = drawn(engine, rng, panel.universe), Sketcher(panel.universe, window)
    print(f"drawing {options.library} formulas that the gate would keep", file=sys.stderr, flush=True)
    texts, held, sketches = filled(source, sketcher, options.library)
    candidates = [values for _, (_, values) in zip(range(options.candidates), source, strict=False)]
    many = Sketches.of([sketches[at % len(sketches)] for at in range(options.sketches)])
    estimate_correlations(sketches[0], many)
    product = spent([partial(estimate_correlations, one, many) for one in sketches[: options.candidates]])
    make = spent([partial(sketcher.sketch, one) for one in candidates])
    with tempfile.TemporaryDirectory() as folder:
        answers, in_full, answer = asked(engine, window, Path(folder), texts, candidates)
    print("comparing with every factor", file=sys.stderr, flush=True)
    right = [find_closest(one, held, window) for one in candidates]
    return Row(
        len(held), options.sketches, make, product, float(np.mean(in_full)), max(in_full), answer,
        *pairs(list(held.values()), candidates, window, panel), compute(engine, texts),
        *agreed(answers, right), len(candidates), sum(SKETCH_FILES.values()),
    )  # fmt: skip  # a table


def agreed(answers: Sequence[Overlap | None], right: Sequence[Overlap | None]) -> tuple[int, int]:
    """Count candidates with a correlation that somebody asks for, and those of them that are answered right."""
    pairs = [
        (mine, exact)
        for mine, exact in zip(answers, right, strict=True)
        if exact and abs(exact.rank_correlation) >= CORRELATION_FLOOR
    ]
    return sum(mine == exact for mine, exact in pairs), len(pairs)


def asked(
    engine: Engine, window: Window, folder: Path, texts: Mapping[str, Expression], candidates: Sequence[Values]
) -> tuple[list[Overlap | None], list[int], float]:
    """Return answers, how many factors were compared in full for each, and the median milliseconds."""
    rows = [LibraryRow(name, one.text, "", "h", "r", {"fields": sorted(one.fields)}) for name, one in texts.items()]
    library = Counting(engine, window, folder, lambda row: parse(row.text), rows)
    library.sketched()
    answers, in_full, taken = [], [], []
    for one in candidates:
        before, start = library.asked, clock()
        answers.append(library.closest(one))
        taken.append(1e3 * (clock() - start))
        in_full.append(library.asked - before)
    return answers, in_full, float(np.median(taken))


def pairs(held: Sequence[Values], candidates: Sequence[Values], window: Window, panel: Panel) -> tuple[float, float]:
    """Return what one pair costs in full: by our kernel from values in order, and by pandas from ranks."""
    some = [(candidates[at % len(candidates)], held[at % len(held)]) for at in range(PAIRS)]
    thin = [[np.ascontiguousarray(window.cut(values)[::SKETCH_STEP_DAYS]) for values in pair] for pair in some]
    orders = [[order_rows(values) for values in pair] for pair in thin]
    own = spent([partial(row_rank_correlation, *pair) for pair in orders])
    ranks = [[pd.DataFrame(values).rank(axis=1) for values in pair] for pair in thin[:10]]
    return own, spent([partial(_with_pandas, *pair) for pair in ranks])


def _with_pandas(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return the mean correlation of the days of two frames of ranks."""
    return float(one.corrwith(other, axis=1).mean())


def compute(engine: Engine, texts: Mapping[str, Expression]) -> float:
    """Return what it costs to compute one factor, when none is cached."""
    fresh = Engine(engine.panel, cache_bytes=0)
    return spent([partial(fresh.evaluate, [one]) for one in list(texts.values())[:40]])


# Telling.


def lines(row: Row, options: argparse.Namespace) -> Iterator[str]:
    """Yield the report."""
    many = row.sketches
    yield (
        f"{options.days:,} days x {options.names:,} names, every fifth day of the first 60 %; "
        f"{row.candidates} candidates; CPU, medians, seed {options.seed}."
    )
    yield ""
    yield "| what | CPU a candidate |"
    yield "|---|---|"
    yield f"| its sketch | {row.make_ms:.1f} ms |"
    yield f"| against {many:,} sketches of {row.bytes_each / 1024:.0f} kB | {row.product_ms:.1f} ms |"
    yield (
        f"| the whole answer in a library of {row.library:,}, {row.in_full:.1f} of them compared in full "
        f"(at most {row.most_in_full}) | {row.answer_ms:.1f} ms |"
    )
    for name, pair in (
        ("our kernel, all values kept in order", row.exact_pair_ms),
        ("pandas, all ranks kept", row.pandas_pair_ms),
        ("our kernel, each factor computed again", row.exact_pair_ms + row.compute_ms),
    ):
        yield f"| every pair: {name} ({pair:.2f} ms a pair, extrapolated to {many:,}) | {pair * many / 1e3:,.1f} s |"
    yield ""
    yield (
        "The same factor with the same correlation as comparing with every one: "
        f"{row.agree} of the {row.above} candidates whose largest is {CORRELATION_FLOOR} or more; "
        "below that any small one will do."
    )
