"""Hold the leaves of expressions as the engine computes on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import FactorError, PanelLacksField, nearest_name
from ..kernels.cells import Array, Codes
from ..kernels.moves import Flat
from ..language.node import Node
from .tiles import ROWS_TOGETHER, Layout

if TYPE_CHECKING:
    from ...market import Panel

MAX_PANEL_NAMES = 1 << 16
DERIVATION_RULES = {"vwap": "typical", "amount": "close*volume"}
"""How the loader can make a column out of others: the line to write under `derive`."""


class LeafStore:
    """The leaves of expressions as the kernels take them: tile after tile, writeable, float32."""

    def __init__(self, panel: Panel, threads: int) -> None:
        if len(panel.symbols) > MAX_PANEL_NAMES:
            raise FactorError(
                "The panel has too many names.", got=len(panel.symbols), allowed=f"up to {MAX_PANEL_NAMES}"
            )
        self._panel = panel
        self.member = np.array(panel.universe, np.bool_, order="C")
        self.layout = Layout.of(len(panel.dates), len(panel.symbols), threads)
        self._columns: dict[str, Flat] = {}
        self._codes: dict[str, Codes] = {}

    def number(self, node: Node) -> Array:
        """Return a number as a row that serves every day: as wide as the panel, or as some rows of a tile."""
        width = max(ROWS_TOGETHER * self.layout.width, self.layout.names)
        return _to_float32(np.full((1, width), node.value, np.float64))

    def flat(self, node: Node) -> Flat:
        """Return a column of the panel, tile after tile."""
        if node.name not in self._columns:
            if node.name not in self._panel.fields:
                raise _missing_error("column", node.name, tuple(self._panel.fields))
            self._columns[node.name] = self.layout.cut(_to_float32(self._panel.fields[node.name]))
        return self._columns[node.name]

    def codes(self, node: Node) -> Codes:
        """Return the group of each name, -1 where it is unknown."""
        if node.name not in self._codes:
            if node.name not in self._panel.groups:
                raise _missing_error("grouping", node.name, tuple(self._panel.groups))
            self._codes[node.name] = np.array(self._panel.groups[node.name], np.int16, order="C")
        return self._codes[node.name]


def _to_float32(values: NDArray[np.float64]) -> Array:
    """Return values as float32; what is not finite there is missing."""
    with np.errstate(over="ignore"):
        narrow = np.array(values, np.float32, order="C")
    narrow[~np.isfinite(narrow)] = np.nan
    return narrow


def _missing_error(kind: str, name: str, there: tuple[str, ...]) -> PanelLacksField:
    """Name what is missing, what there is, and how to get it."""
    near = nearest_name(name, there)
    hints = [f"Did you mean {near}?"] if near else []
    if kind == "grouping":
        hints.append(f"Give the {name} of each symbol in a file (--sectors FILE).")
    else:
        hints.append(f"Add a column {name} to the prices.")
    if name in DERIVATION_RULES:
        hints.append(f"Or let it be derived: `derive: {{{name}: {DERIVATION_RULES[name]}}}` in the campaign file.")
    return PanelLacksField(
        f"The panel has no {kind} {name}.", field=name, allowed=there or "none", hint=" ".join(hints)
    )
