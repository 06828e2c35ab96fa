"""Time the factor engine beside others, on the same sixty formulas, in the same run.

python -m bench.engine setup                 an environment for each rival, once
python -m bench.engine                       2520 days x 1000 names, everything; about half an hour
python -m bench.engine --quick               a small panel, two repeats, under a minute
python -m bench.engine --size large --rivals KunQuant

Ratios are of CPU seconds of one core, so that a busy machine matters little; engines take turns.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from alphaloom.factors import parse

from ..rivals.wire import Tree, operators as operators_of
from .environments import OWN, REFERENCE, RIVALS, SKIPPED, STREAMED, Contender, default_folder, missing, set_up
from .measure import GROUPS, RANKED, Agreement, Formulas, Lab, agree, peak, race, save, threads, unable
from .own import tree_of
from .picture import draw as picture
from .prices import draw, store
from .report import lines
from .result import Result, pair_of
from .search import broods, search_cost
from .workload import FIELDS, GROUPINGS, RANK_SHARE, SINGLE, Workload, count, workload

SIZES = {"quick": (400, 200), "small": (1260, 500), "medium": (2520, 1000), "large": (2520, 3000)}
COMPARED, NARROW = 300, 100
"""Days on which values are compared, and the width of a second panel: sorting goes other ways on narrow ones."""
PARTS = ("race", "peak", "agreement", "operators", "search", "threads")


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", choices=("measure", "setup"), default="measure")
    parser.add_argument(
        "--environments", type=Path, default=default_folder(), help="folder of the rivals' environments"
    )
    parser.add_argument("--size", choices=tuple(SIZES), default="medium")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a small panel, two repeats, without operators")
    parser.add_argument("--rivals", default="", help="names, or beginnings of names, separated by commas")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"what to measure: {', '.join(PARTS)}")
    parser.add_argument("--children", type=int, default=40, help="children of each kind in the search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write everything that was measured")
    parser.add_argument("--svg", type=Path, help="write the picture of the ratios")
    return parser.parse_args(given)


def chosen(options: argparse.Namespace) -> tuple[list[Contender], dict[str, str]]:
    """Return the rivals that run, and why the others do not."""
    wanted = [rival.strip() for rival in options.rivals.split(",") if rival.strip()]
    rivals = [
        rival for rival in RIVALS if not wanted or any(rival.name.lower().startswith(name.lower()) for name in wanted)
    ]
    skipped = {rival.name: why for rival in rivals if (why := missing(rival, options.environments))}
    return [rival for rival in rivals if rival.name not in skipped], skipped


def nodes_of(work: Workload) -> dict[str, dict[str, object]]:
    """Count operator nodes, and refuse a workload with too many ranks."""
    found: dict[str, dict[str, object]] = {}
    for form, trees in (
        ("as written", [expression.root for expression in work.expressions]),
        ("in canonical form", [expression.canonical for expression in work.expressions]),
    ):
        nodes = count(trees)
        share = nodes.ranks / nodes.distinct
        if share > RANK_SHARE:
            raise SystemExit(
                f"{100 * share:.1f} % of the nodes {form} are ranks; at most {100 * RANK_SHARE:.0f} % may be"
            )
        found[form] = {**asdict(nodes), "share": share}
    return found


def measure_race(lab: Lab, rivals: Sequence[Contender], formulas: Formulas, result: Result) -> None:
    """Time every rival beside alphaloom, on the formulas that both can compute."""
    lacks = {rival.name: unable(lab, rival, formulas) for rival in rivals}
    sets: dict[str, dict[str, list[Tree]]] = {OWN.name: {group: formulas.group(group) for group in GROUPS}}
    for each in rivals:
        without, suffix = frozenset(lacks[each.name]), f"_{each.slug}" if lacks[each.name] else ""
        common = {f"{group}{suffix}": formulas.group(group, without) for group in GROUPS}
        sets[each.name] = {key: trees for key, trees in common.items() if each.shares or not key.startswith("all")}
        sets[OWN.name] |= common
    for each_set in sets.values():
        each_set["ranks"] = [["rank", {}, ["field", field]] for field in RANKED]
    timings = race(lab, (OWN, *rivals), sets, result.repeats)
    for each in rivals:
        without = frozenset(lacks[each.name])
        counts = {group: len(formulas.group(group, without)) for group in GROUPS}
        result.pairs.append(pair_of(each, timings, counts, lacks[each.name]))
    result.ranks = {name: found["ranks"].median / len(RANKED) for name, found in timings.items()}


def measure_peaks(lab: Lab, rivals: Sequence[Contender], formulas: Formulas, result: Result) -> None:
    """Measure the memory of each engine on what it can compute."""
    for each in (OWN, STREAMED, *rivals):
        without = frozenset(unable(lab, each, formulas))
        result.peaks[each.name] = peak(lab, each, formulas.group("all", without))


def measure_agreement(labs: Sequence[Lab], rivals: Sequence[Contender], formulas: Formulas, result: Result) -> None:
    """Compare everybody's values with the reference's on panels of several widths; the worst of them is told."""
    reference = next((rival for rival in rivals if rival.name == REFERENCE), None)
    if reference is None:
        return
    for each in (OWN, *(rival for rival in rivals if rival is not reference)):
        without = frozenset(unable(labs[0], each, formulas))
        names = [name for name in formulas.names if name not in without]
        trees = formulas.group("all", without)
        panels = [agree(save(lab, each, trees), save(lab, reference, trees)) for lab in labs]
        worst = [functools.reduce(Agreement.worst, found) for found in zip(*panels, strict=True)]
        result.agreement[each.name] = dict(zip(names, worst, strict=True))


def measure_operators(lab: Lab, rivals: Sequence[Contender], result: Result) -> None:
    """Time single operators, each as a formula of its own."""
    cells = result.days * result.names
    trees = {text: tree_of(parse(text).root) for text in SINGLE}
    keys = {f"single{place}": text for place, text in enumerate(SINGLE)}
    able = Formulas(tuple(keys), tuple(trees.values()))
    sets = {}
    for each in (OWN, *rivals):
        lacks = unable(lab, each, able)
        sets[each.name] = {key: [trees[text]] for key, text in keys.items() if key not in lacks}
    for name, timings in race(lab, [OWN, *rivals], sets, result.repeats).items():
        for key, timing in timings.items():
            result.operators.setdefault(keys[key], {})[name] = 1e9 * timing.median / cells


def measure_search(
    lab: Lab, rivals: Sequence[Contender], work: Workload, options: argparse.Namespace, result: Result
) -> None:
    """Measure what a child of the sixty costs, beside the compiling engine."""
    compiling = next((rival for rival in rivals if rival.name.startswith("KunQuant")), None)
    for brood in broods(work.expressions, options.children, options.seed, FIELDS, GROUPINGS):
        result.search.append(search_cost(lab, brood, work.expressions, compiling))


def measure(options: argparse.Namespace, result: Result, rivals: Sequence[Contender], scratch: Path) -> None:
    """Measure the parts that were asked for; one that fails is named in the report and does not stop the others."""
    work = workload()
    formulas = Formulas(work.names, tuple(tree_of(expression.root) for expression in work.expressions))
    lab = _lab(options, scratch, result.days, result.names)
    widths = [_lab(options, scratch, min(COMPARED, result.days), names) for names in (result.names, NARROW)]
    parts: dict[str, Callable[[], object]] = {
        "race": lambda: measure_race(lab, rivals, formulas, result),
        "threads": lambda: result.threads.update(threads(lab, formulas.group("all"), result.repeats)),
        "peak": lambda: measure_peaks(lab, rivals, formulas, result),
        "search": lambda: measure_search(lab, rivals, work, options, result),
        "operators": lambda: measure_operators(lab, rivals, result),
        "agreement": lambda: measure_agreement(widths, rivals, formulas, result),
    }
    for name in options.parts.split(","):
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        try:
            parts[name]()
        except (RuntimeError, OSError) as error:
            print(error, file=sys.stderr)
            result.skipped[name] = f"failed: {str(error).strip().splitlines()[-1]}"


def _lab(options: argparse.Namespace, scratch: Path, days: int, names: int) -> Lab:
    """Draw the columns of a size and make its folders."""
    place = scratch / f"{days}x{names}"
    (place / "data").mkdir(parents=True, exist_ok=True)
    store(draw(days, names, options.seed), place / "data")
    return Lab(options.environments, place / "data", place)


def main(given: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = arguments(given)
    if options.task == "setup":
        set_up(options.environments)
        for name, why in SKIPPED.items():
            print(f"{name}: not run, it {why}")
        return 0
    if options.quick:
        options.size, options.repeats, options.children = "quick", 2, 20
        options.parts = ",".join(part for part in options.parts.split(",") if part not in ("operators", "threads"))
        options.rivals = options.rivals or "KunQuant 8,numpy,pandas"
    rivals, skipped = chosen(options)
    days, names = SIZES[options.size]
    work = workload()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    result = Result(days, names, options.repeats, machine, os.getloadavg(), nodes_of(work), skipped=skipped)
    with tempfile.TemporaryDirectory() as scratch:
        measure(options, result, rivals, Path(scratch))
    formulas = {name: each.text for name, each in zip(work.names, work.expressions, strict=True)}
    used = {name: operators_of(tree_of(each.root)) for name, each in zip(work.names, work.expressions, strict=True)}
    print("\n".join(lines(result, formulas, used)))
    if options.json:
        options.json.write_text(json.dumps(result.record, indent=1, sort_keys=True) + "\n")
    if options.svg:
        options.svg.write_text(picture(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
