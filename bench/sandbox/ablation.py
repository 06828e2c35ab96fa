"""What each wall stops: hostile code of every class, with walls left out.

python -m bench.sandbox ablation                       every class that may be run so; some minutes
python -m bench.sandbox ablation --classes tcp,udp

Limits, capabilities and the clean server stay in every column. Without any wall only what reads, connects and looks
around is run; what writes, starts and knocks needs one wall at least; bombs, signals and the like are never run with
one missing. A cell is escapes / snippets, by the witnesses or by what came back.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.sandbox.siege import besiege

WALLS = ("landlock", "namespaces", "seccomp", "clock")
LEFT = {
    "none": (),
    "namespaces": ("namespaces",),
    "Landlock": ("landlock",),
    "seccomp": ("seccomp",),
    "Landlock + namespaces": ("landlock", "namespaces"),
    "Landlock + seccomp": ("landlock", "seccomp"),
    "all": WALLS,
}
"""The walls that stand in each column."""
Cells = Mapping[str, Mapping[str, tuple[int, int]]]


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox ablation", description=__doc__)
    parser.add_argument("--classes", default="", help="names of classes, separated by commas")
    parser.add_argument("--json", type=Path, help="write every verdict")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> int:
    """Attack once a column, and print the table."""
    options = arguments(given)
    cells: dict[str, dict[str, tuple[int, int]]] = {}
    kept = {}
    for column, standing in LEFT.items():
        print(f"attacking: {column}", file=sys.stderr, flush=True)
        without = ",".join(wall for wall in WALLS if wall not in standing)
        records = list(besiege("--classes", options.classes, "--without", without, "--seed", f"without {without}"))
        kept[column] = records
        sent = Counter(record["group"] for record in records if "group" in record)
        escaped = Counter(record["group"] for record in records if record.get("escapes"))
        cells[column] = {group: (escaped[group], count) for group, count in sent.items()}
    print("\n".join(lines(cells)))
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return 1 if any(escapes for escapes, _ in cells["all"].values()) else 0


def lines(cells: Cells) -> list[str]:
    """Return the table: a row a class, a column a set of walls, and the sums over what every column has."""
    groups = sorted({group for column in cells.values() for group in column})
    common = [group for group in groups if all(group in column for column in cells.values())]
    found = [f"| walls that stand | {' | '.join(cells)} |", "|---|" + "---:|" * len(cells)]
    for group in (*common, *(other for other in groups if other not in common)):
        row = [_cell(column.get(group)) for column in cells.values()]
        found.append(f"| {group} | {' | '.join(row)} |")
    sums = [_cell((sum(column[g][0] for g in common), sum(column[g][1] for g in common))) for column in cells.values()]
    return [*found, f"| classes that every column has | {' | '.join(sums)} |"]


def _cell(found: tuple[int, int] | None) -> str:
    return "not run" if found is None else f"{found[0]} / {found[1]}"
