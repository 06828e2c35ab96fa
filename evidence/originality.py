"""Is it new? The largest subtree that a formula shares with a known one, as a ratio of both sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import yaml

from ..factors import Expression, Node, bucketed, parse, render, walk


@dataclass(frozen=True)
class Known:
    """A formula that is already somebody's: in the library, in print, or earlier in the same batch."""

    name: str
    expression: Expression
    where: str


@dataclass(frozen=True)
class Likeness:
    """How much of a formula stands in a known one."""

    known: Known
    ratio: float
    exact: bool
    shared: str


@lru_cache(maxsize=8192)
def _subtrees(core: Node) -> dict[Node, int]:
    """Return the size of each distinct subtree, windows as they are."""
    return {node: node.size for _, node in walk(core)}


@lru_cache(maxsize=8192)
def _loose(core: Node) -> dict[Node, int]:
    """Return the same with windows bucketed."""
    return _subtrees(bucketed(core))


def _shared(a: dict[Node, int], b: dict[Node, int]) -> tuple[int, Node | None]:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    best: tuple[int, Node | None] = (0, None)
    for node, size in small.items():
        if size > best[0] and node in large:
            best = size, node
    return best


def compare(expression: Expression, known: Known) -> Likeness:
    """Return the likeness of two formulas: `2 s / (a + b)` for the largest common subtree s, sign and the last step's
    monotone wrapper (rank, zscore, scale) set aside; exact, or with windows bucketed where that is larger.
    """  # noqa: D205
    best = Likeness(known, 0.0, True, "")
    for exact, trees in ((True, _subtrees), (False, _loose)):
        mine, theirs = trees(expression.core), trees(known.expression.core)
        size, node = _shared(mine, theirs)
        ratio = 2.0 * size / (max(mine.values()) + max(theirs.values()))
        if node is not None and ratio > best.ratio:
            best = Likeness(known, ratio, exact, render(node))
    return best


def nearest(expression: Expression, against: Iterable[Known], top: int = 1) -> list[Likeness]:
    """Return the most alike known formulas, most alike first, ties by name."""
    found = [compare(expression, known) for known in against]
    return sorted(found, key=lambda one: (-one.ratio, one.known.name))[:top]


@lru_cache(maxsize=1)
def published() -> Sequence[Known]:
    """Return the published factors that ship with Alphaloom, each with its source."""
    rows = yaml.safe_load(files("alphaloom.evidence").joinpath("published.yaml").read_text(encoding="utf-8"))
    return tuple(Known(row["name"], parse(row["text"]), row["source"]) for row in rows)
