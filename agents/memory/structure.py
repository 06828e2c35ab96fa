"""How much two formulas share in structure, windows aside."""

from __future__ import annotations

from functools import lru_cache

from ...factors import Node, bucket_windows, parse, walk


@lru_cache(maxsize=4096)
def subtrees(text: str, fields: tuple[str, ...], groups: tuple[str, ...]) -> dict[Node, int]:
    """Return each distinct subtree of a formula, windows bucketed, with its size; sign and last wrapper set aside."""
    return {node: node.size for _, node in walk(bucket_windows(parse(text, fields=fields, groups=groups).core))}


def overlap(one: str, other: str, fields: tuple[str, ...], groups: tuple[str, ...]) -> float:
    """Return `2 s / (a + b)` for the largest common subtree s of formulas of sizes a and b: 1 for the same structure."""
    mine, theirs = subtrees(one, fields, groups), subtrees(other, fields, groups)
    shared = max((size for node, size in mine.items() if node in theirs), default=0)
    return 2.0 * shared / (max(mine.values()) + max(theirs.values()))
