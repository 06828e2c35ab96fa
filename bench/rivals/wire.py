"""How the benchmark talks to an engine in another process: one JSON object a line, asked on stdin, answered on stdout.

A formula is a tree of lists: ``["ts_mean", {"window": 20}, ["field", "close"]]``, ``["number", 0.5]``,
``["group", "sector"]``; the names of the operators and of their numbers are those of alphaloom.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Tree = list[Any]
Array = NDArray[np.floating[Any]]


class Rival(Protocol):
    """What an engine must be able to do."""

    def prepare(self, key: str, trees: Sequence[Tree]) -> Any:
        """Do once what must be done before the formulas can run: generate code, compile."""

    def run(self, key: str) -> list[Array]:
        """Compute the formulas of a key; the arrays may be overwritten by the next run."""

    def unable(self, tree: Tree) -> str:
        """Say why a formula cannot be computed, or nothing."""


def load(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Return the columns."""
    return {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}


def operators(tree: Tree) -> set[str]:
    """Return the operators of a tree."""
    if tree[0] in ("field", "number", "group"):
        return set()
    return {tree[0]}.union(*(operators(child) for child in tree[2:]))


def key_of(tree: Tree) -> str:
    """Return one text for equal trees."""
    return json.dumps(tree, sort_keys=True)


def spent() -> tuple[float, float]:
    """Return CPU seconds, those of compilers that were started included, and the time of the clock."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime, time.perf_counter()


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Do something and return its result, CPU seconds and wall seconds."""
    cpu, wall = spent()
    result = work()
    cpu_after, wall_after = spent()
    return result, {"cpu": cpu_after - cpu, "wall": wall_after - wall}


def peak_bytes() -> int:
    """Return the most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def answer(rival: Rival, question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question."""
    task, key = question["do"], question.get("key", "")
    if task == "unable":
        return {"why": [rival.unable(tree) for tree in question["trees"]]}
    if task == "prepare":
        note, spent_on_it = timed(lambda: rival.prepare(key, question["trees"]))
        return {**spent_on_it, "note": note}
    if task == "run":
        return timed(lambda: rival.run(key))[1]
    if task == "save":
        for place, values in enumerate(rival.run(key)):
            np.save(Path(question["folder"]) / f"{place:03d}.npy", np.asarray(values))
        return {}
    if task == "peak":
        return {"bytes": peak_bytes()}
    raise ValueError(f"unknown question {task!r}")


def serve(make: Callable[[Path, dict[str, Any]], Rival]) -> None:
    """Answer questions until there are none; what libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    rival = make(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
    print(json.dumps({"ready": True}), file=out)
    for line in sys.stdin:
        print(json.dumps(answer(rival, json.loads(line))), file=out)
