"""Real processes share an index and a store of sketches, and one that is killed spoils nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from alphaloom.evidence.originality.catalogue import draw_formula
from alphaloom.evidence.originality.sketch import SketchStore
from alphaloom.evidence.originality.subtree_index import SubtreeIndex
from alphaloom.factors import parse
from alphaloom.factors.similarity.outline import draw_outline

ADDING = """
import sys
from pathlib import Path
import numpy as np
from alphaloom.evidence.originality import subtree_index
from alphaloom.evidence.originality.published import draw_formula
from alphaloom.evidence.originality.sketch import Sketch
from alphaloom.evidence.originality.sketch import SketchStore
from alphaloom.evidence.originality.subtree_index import SubtreeIndex
from alphaloom.factors import parse

folder, mark, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
subtree_index.MAX_TABLE_ROWS = 8
print("ready", flush=True)
sys.stdin.readline()
store = SketchStore(folder / "sketches")
with SubtreeIndex(folder / "index") as index:
    for at in range(count):
        name = f"{mark}{at:04}"
        index.add([draw_formula(name, parse(f"ts_mean(close, {at + 2}) / ts_std(close, {2 * at + 3})"), "test")])
        buckets, cells = np.full(8192, at % 127, np.int8), np.full(4096, ord(mark), np.int8)
        store.add({name: Sketch(buckets, cells, float(at))})
        print(name, flush=True)
"""


def adding(folder: Path, mark: str, count: int) -> subprocess.Popen[str]:
    """Start a process that adds formulas and sketches one by one, and tells of each."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ADDING, str(folder), mark, str(count)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def started(process: subprocess.Popen[str]) -> None:
    """Let a process go once it is there."""
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()


def test_two_processes_add_and_one_is_killed(tmp_path: Path) -> None:
    whole, killed = adding(tmp_path, "a", 40), adding(tmp_path, "b", 10_000)
    with whole, killed:
        for process in (whole, killed):
            started(process)
        assert killed.stdout is not None
        told = [killed.stdout.readline().strip() for _ in range(25)]
        time.sleep(0.011)  # somewhere in the middle of the next one
        killed.kill()
        told += killed.stdout.read().split()
        assert whole.communicate()[0].split()[-1] == "a0039"
    there = {*told, *(f"a{at:04}" for at in range(40))}
    with SubtreeIndex(tmp_path / "index") as index:
        assert all(name in index for name in there)
        assert len(index) - len(there) in (0, 1)  # the one that was there before it could be told of
        known, one = draw_formula("x", parse("ts_mean(close, 12) / ts_std(close, 23)"), "test")
        assert index.nearest(one)[0].ratio == 1.0
        assert index.add([(known, draw_outline(parse("ts_mean(close, 12) / ts_std(close, 23)").core))]) == 1
    store = SketchStore(tmp_path / "sketches")
    assert there <= set(store.names)
    for at, name in enumerate(store.names):
        assert (store.sketches.buckets[at] == int(name[1:]) % 127).all()
        assert (store.sketches.cells[at] == ord(name[0])).all()
    assert np.array_equal(store.sketches.shares, [float(name[1:]) for name in store.names])
