"""Measure engines side by side: in turns, in one run, CPU seconds of one core."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..rivals.wire import Tree
from .environments import OWN, Contender, interpreter
from .process import Process

GROUPS = ("ts", "cs", "all")
RANKED = ("open", "high", "low", "close", "volume", "returns")
CLOSE_ENOUGH = 1e-3
"""Share of a day's standard deviation within which two cells are called equal."""
ROUNDING = 1e-5
"""Share of the value itself that float32 may lose on the way."""


@dataclass(frozen=True)
class Lab:
    """Where things are.

    Attributes
    ----------
    environments : Path
        The folder of the rivals' environments.
    data : Path
        The folder of the columns.
    scratch : Path
        A folder for compiled libraries and results.
    """

    environments: Path
    data: Path
    scratch: Path

    def open(self, contender: Contender, **settings: object) -> Process:
        """Start a contender."""
        libraries = self.scratch / "libraries" / contender.slug
        libraries.mkdir(parents=True, exist_ok=True)
        given = {**contender.settings, "libraries": str(libraries), **settings}
        return Process(interpreter(contender, self.environments), contender.module, self.data, given)


@dataclass
class Timing:
    """CPU seconds of every repeat, and of what came before the first."""

    prepared: float = 0.0
    runs: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the median of the repeats."""
        return statistics.median(self.runs)


@dataclass(frozen=True)
class Formulas:
    """A set of formulas by name.

    Attributes
    ----------
    names : tuple of str
        ``ts01`` ...
    trees : tuple of Tree
        As written.
    """

    names: tuple[str, ...]
    trees: tuple[Tree, ...]

    def group(self, group: str, without: frozenset[str] = frozenset()) -> list[Tree]:
        """Return the trees of ``ts``, ``cs`` or ``all``, but for some."""
        pairs = zip(self.names, self.trees, strict=True)
        return [tree for name, tree in pairs if (group == "all" or name.startswith(group)) and name not in without]


@contextmanager
def started(lab: Lab, contenders: Sequence[Contender]) -> Iterator[dict[str, Process]]:
    """Start several contenders and end them together."""
    with ExitStack() as stack:
        yield {contender.name: stack.enter_context(lab.open(contender)) for contender in contenders}


def unable(lab: Lab, contender: Contender, formulas: Formulas) -> dict[str, str]:
    """Return the formulas that a contender cannot compute, with its reasons."""
    with lab.open(contender) as process:
        why = process.ask("unable", trees=formulas.trees)["why"]
    return {name: reason for name, reason in zip(formulas.names, why, strict=True) if reason}


def race(
    lab: Lab, contenders: Sequence[Contender], sets: Mapping[str, Mapping[str, Sequence[Tree]]], repeats: int
) -> dict[str, dict[str, Timing]]:
    """Time sets of formulas, engines in turns.

    Parameters
    ----------
    lab : Lab
        Where things are.
    contenders : sequence of Contender
        Who runs.
    sets : mapping
        For each contender's name the sets that it computes, by key.
    repeats : int
        How often; one more run before them warms kernels and pages.

    Returns
    -------
    dict
        For each contender and key the CPU seconds.
    """
    with started(lab, contenders) as processes:
        timings = {name: {key: Timing() for key in sets[name]} for name in processes}
        for name, process in processes.items():
            for key, trees in sets[name].items():
                timings[name][key].prepared = process.prepare(key, trees)["cpu"]
                process.run(key)
        for key in dict.fromkeys(key for keys in sets.values() for key in keys):
            runners = [name for name in processes if key in sets[name]]
            for name in runners * repeats:
                timings[name][key].runs.append(processes[name].run(key)["cpu"])
    return timings


def peak(lab: Lab, contender: Contender, trees: Sequence[Tree]) -> int:
    """Return the peak memory in bytes of a fresh process that only computes: another one has compiled."""
    with lab.open(contender) as process:
        process.prepare("all", trees)
    with lab.open(contender) as process:
        process.prepare("all", trees)
        process.run("all")
        return int(process.ask("peak")["bytes"])


@dataclass(frozen=True)
class Agreement:
    """How far an engine's values of one factor are those of the reference.

    Attributes
    ----------
    values : float
        The share of cells, present in both, that differ by no more than `CLOSE_ENOUGH` of the day's standard deviation.
    gaps : float
        The share of all cells that both have or both lack.
    """

    values: float
    gaps: float

    def worst(self, other: Agreement) -> Agreement:
        """Return the lower shares of two comparisons."""
        return Agreement(min(self.values, other.values), min(self.gaps, other.gaps))

    @property
    def full(self) -> bool:
        """Tell whether all but one cell in ten thousand agree."""
        return self.values > 0.9999 and self.gaps > 0.9999


def save(lab: Lab, contender: Contender, trees: Sequence[Tree]) -> Path:
    """Let a contender write its values of every formula."""
    folder = lab.scratch / "values" / contender.slug
    shutil.rmtree(folder, ignore_errors=True)  # of another set of formulas
    folder.mkdir(parents=True)
    with lab.open(contender) as process:
        process.prepare("all", trees)
        process.ask("save", key="all", folder=str(folder))
    return folder


def agree(values: Path, reference: Path) -> list[Agreement]:
    """Compare what two engines wrote; infinite counts as missing."""
    return [
        _agree(np.load(values / path.name).astype(np.float64), np.load(path)) for path in sorted(reference.glob("*"))
    ]


def _agree(values: np.ndarray, exact: np.ndarray) -> Agreement:
    there, wanted = np.isfinite(values), np.isfinite(exact)
    both = there & wanted
    if not both.any():
        return Agreement(0.0, float(np.mean(there == wanted)))
    apart, room = np.abs(values - exact), CLOSE_ENOUGH * _spread(exact, wanted) + ROUNDING * np.abs(exact)
    return Agreement(
        float(np.mean(apart[both] <= np.broadcast_to(room, exact.shape)[both])), float(np.mean(there == wanted))
    )


def _spread(exact: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the standard deviation over the names of each day, so that a large name does not excuse a small one."""
    count = np.maximum(wanted.sum(axis=1, keepdims=True), 1)
    mean = np.where(wanted, exact, 0.0).sum(axis=1, keepdims=True) / count
    squares = (np.where(wanted, exact - mean, 0.0) ** 2).sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt(squares / count))


def threads(lab: Lab, trees: Sequence[Tree], repeats: int) -> dict[int, float]:
    """Return the median wall seconds of alphaloom on one and on two threads, in turns."""
    walls: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        processes = {count: stack.enter_context(lab.open(OWN, threads=count)) for count in walls}
        for process in processes.values():
            process.prepare("all", trees)
            process.run("all")
        for _ in range(repeats):
            for count, process in processes.items():
                walls[count].append(process.run("all")["wall"])
    return {count: statistics.median(each) for count, each in walls.items()}
