"""Hold a formula that was read, typed and proven causal."""

from __future__ import annotations

from dataclasses import dataclass

from .interval import Interval
from .node import Node


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula that may run.

    Attributes
    ----------
    text : str
        The formula as it was given.
    root : Node
        Its tree as written.
    canonical : Node
        Its canonical tree: equal for formulas that are equal by algebra (see `canonical`).
    canonical_text : str
        The canonical tree as a formula; it parses back to the same id.
    id : str
        ``f`` and 16 hexadecimal digits of the hash of `canonical_text`.
    unsigned : Node
        The canonical tree without the overall sign.
    core : Node
        `unsigned` without factor, added constant, and outermost rank, z-score, scale or demean: the common part of
        monotone wrappers of one formula.
    lookback : Interval
        The days that it reads, today being 0; `hi` is never above 0.
    warmup : int
        Rows before the first value: ``-lookback.lo``.
    unit : str
        Its unit: ``price``, ``ratio``, ``rank``, ...
    size, depth : int
        Nodes and levels of `root`.
    constants : int
        Number of its free constants: literals, windows and keywords.
    fields : frozenset of str
        The columns and groupings that it reads.
    warnings : tuple of str
        Changes and doubts, for a person.
    code : str
        Source of a Python factor, which only the sandbox computes; its trees are its equivalent in the language, for
        comparison. Empty for a formula.
    reads_members : bool
        Whether the code reads the membership of the universe.
    """

    text: str
    root: Node
    canonical: Node
    canonical_text: str
    id: str
    unsigned: Node
    core: Node
    lookback: Interval
    warmup: int
    unit: str
    size: int
    depth: int
    constants: int
    fields: frozenset[str]
    warnings: tuple[str, ...] = ()
    code: str = ""
    reads_members: bool = False

    @property
    def shown(self) -> str:
        """Return the text to display: a formula in its canonical form, code as it was written."""
        return self.code or self.canonical_text
