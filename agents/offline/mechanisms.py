"""Market mechanisms that the offline researcher knows, and the drawing of formulas from their skeletons."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...factors import OPERATORS
from ...factors.space import ACTIVITY, DRAWN_PRICES

SLOT_WINDOWS = {
    "lag": (1, 2, 3, 5),
    "short": (3, 5, 8, 10),
    "mid": (15, 20, 30, 40),
    "long": (60, 90, 120, 180),
    "any": (5, 10, 20, 30, 40, 60),
}

OPERATOR_SLOTS = ("shape", "level", "pair")

SLOT = re.compile(r"\{(lag|short|mid|long|any|price|activity|shape|level|pair)(\d?)\}")


@dataclass(frozen=True)
class Mechanism:
    """One mechanism in words, with skeleton formulas; `needs` names fields or groups without which it is idle.

    A survey claims little: it maps which building blocks order stocks by return at all. An open one has no skeletons of its
    own: its formulas are drawn from the grammar and from the skeletons of all mechanisms.
    """

    id: str
    statement: str
    other_side: str
    persists: str
    regime: str
    direction: int
    horizon: int
    fields: tuple[str, ...]
    skeletons: tuple[str, ...]
    needs: tuple[str, ...] = ()
    survey: bool = False
    open: bool = False

    def usable(self, names: Collection[str]) -> bool:
        """Tell whether a market with these fields and groups can express the mechanism."""
        return set(self.needs) <= set(names) and bool(set(self.fields) & set(names))


@cache
def load_mechanisms() -> tuple[Mechanism, ...]:
    """Return all mechanisms, in the order of their file."""
    rows: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "mechanisms.yaml").read_text(encoding="utf-8"))
    return tuple(_mechanism(row) for row in rows)


def _mechanism(row: dict[str, Any]) -> Mechanism:
    lists: dict[str, Any] = {name: tuple(row[name]) for name in ("fields", "skeletons", "needs") if name in row}
    facts: dict[str, Any] = {**row, **lists}
    return Mechanism(**facts)


def find_mechanism(name: str) -> Mechanism | None:
    """Return a mechanism by its id, None where no such mechanism is known."""
    return next((mechanism for mechanism in load_mechanisms() if mechanism.id == name), None)


def fill_skeleton(skeleton: str, names: Collection[str], rng: np.random.Generator) -> str:
    """Return a formula: a skeleton with every slot drawn from windows and from the fields given.

    The same slot is the same draw throughout; slots of one kind that differ by a digit differ in value where they can.
    """
    drawn: dict[str, str] = {}

    def fill(match: re.Match[str]) -> str:
        slot, kind = match.group(0), match.group(1)
        if slot not in drawn:
            used = {value for other, value in drawn.items() if other.startswith("{" + kind)}
            known = list_slot_values(kind, names)
            drawn[slot] = str(rng.choice([value for value in known if value not in used] or known))
        return drawn[slot]

    return SLOT.sub(fill, skeleton)


@cache
def list_slot_operators(kind: str) -> tuple[str, ...]:
    """Return the time-series operators of a kind, from the language's own table.

    shape: of one series, whatever its scale; level: of one series, in its units; pair: of two series.
    """
    known = [
        o
        for o in OPERATORS.values()
        if o.family == "time series" and all(a.keyword or a.name == "window" for a in o.numbers)
    ]
    if kind == "pair":
        return tuple(o.name for o in known if [a.kind for a in o.nodes] == ["panel", "panel"])
    wanted = {"shape": ("even", "odd", "order"), "level": ("linear", "absolute", "mirror")}[kind]
    return tuple(o.name for o in known if len(o.nodes) == 1 and o.scaling and o.scaling[0] in wanted)


def list_slot_values(kind: str, names: Collection[str]) -> list[str]:
    """Return what a slot of a kind may become: windows, operators, or fields that there are."""
    if kind in OPERATOR_SLOTS:
        return list(list_slot_operators(kind))
    if kind in SLOT_WINDOWS:
        return [str(window) for window in SLOT_WINDOWS[kind]]
    listed = DRAWN_PRICES if kind == "price" else ACTIVITY
    return [name for name in listed if name in names] or [listed[0]]


@dataclass(frozen=True)
class Code:
    """One Python factor: the mechanisms that it serves, what it measures, and its code with slots."""

    id: str
    of: tuple[str, ...]
    said: str
    code: str

    def draw(self, rng: np.random.Generator) -> str:
        """Return the code with every slot drawn."""
        return fill_skeleton(self.code, (), rng)


@cache
def _codes() -> tuple[Code, ...]:
    rows: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "codes.yaml").read_text(encoding="utf-8"))
    return tuple(Code(**{**row, "of": tuple(row["of"])}) for row in rows)


def find_codes(mechanism: str) -> list[Code]:
    """Return the Python factors that serve a mechanism, in the order of their file."""
    return [code for code in _codes() if mechanism in code.of]
