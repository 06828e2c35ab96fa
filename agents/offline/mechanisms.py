"""Market mechanisms that the offline researcher knows, and the drawing of formulas from their skeletons."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ...factors import OPERATORS
from ...factors.space import ACTIVITY, DRAWN_PRICES
from ..errors import AgentError

SLOT_WINDOWS = {
    "lag": (1, 2, 3, 5),
    "short": (3, 5, 8, 10),
    "mid": (15, 20, 30, 40),
    "long": (60, 90, 120, 180),
    "any": (5, 10, 20, 30, 40, 60),
}

OPERATOR_SLOTS = ("shape", "level", "pair")

WORDS = ("id", "statement", "other_side", "persists", "regime")
EVIDENCE_KEYS = ("source", "refuter")
"""Keys of the file that hold words, and those that a survey lacks, since it states no mechanism."""

SLOT = re.compile(r"\{(lag|short|mid|long|any|price|activity|shape|level|pair)(\d?)\}")


@dataclass(frozen=True)
class Mechanism:
    """One documented effect in words, with skeleton formulas.

    Attributes
    ----------
    needs
        Fields or groups that it cannot do without.
    source
        The publication that documents it.
    refuter
        A rival formula. The mechanism is refuted where a candidate's ranks say nothing beside the rival's on search
        days (`evaluation.state_mechanism`).
    survey
        It states no mechanism, and has neither source nor refuter: it explores which building blocks order stocks by
        return.
    open
        A survey without skeletons of its own: its formulas are drawn from the grammar and from all skeletons.
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
    source: str = ""
    refuter: str = ""
    needs: tuple[str, ...] = ()
    survey: bool = False
    open: bool = False

    def usable(self, names: Collection[str]) -> bool:
        """Return whether a market with these fields and groups can express the mechanism."""
        return set(self.needs) <= set(names) and bool(set(self.fields) & set(names))


@cache
def load_mechanisms() -> tuple[Mechanism, ...]:
    """Return all mechanisms, in the order of their file."""
    return parse_mechanisms((Path(__file__).parent / "mechanisms.yaml").read_text(encoding="utf-8"))


def parse_mechanisms(text: str) -> tuple[Mechanism, ...]:
    """Return the mechanisms of a file's text.

    Raises
    ------
    AgentError
        An id occurs twice, or a mechanism has a missing, empty or unknown key.
    """
    rows: list[dict[str, Any]] = yaml.safe_load(text)
    ids = Counter(str(row.get("id")) for row in rows)
    for place, row in enumerate(rows, 1):
        _check_row(row, str(row.get("id") or f"number {place}"))
        if ids[row["id"]] > 1:
            raise _make_file_error(row["id"], "id", row["id"], "a name that no other mechanism has")
    return tuple(_make_mechanism(row) for row in rows)


def _check_row(row: Mapping[str, Any], name: str) -> None:
    required = WORDS if row.get("survey") else (*WORDS, *EVIDENCE_KEYS)
    for key in required:
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise _make_file_error(name, key, row.get(key), "a text")
    if row.get("direction") not in (1, -1):
        raise _make_file_error(name, "direction", row.get("direction"), "1 or -1")
    if not isinstance(row.get("horizon"), int) or row["horizon"] < 1:
        raise _make_file_error(name, "horizon", row.get("horizon"), "a whole number of trading days, at least 1")
    for key in ("fields", "skeletons"):
        may_be_empty = key == "skeletons" and row.get("open")
        if not isinstance(row.get(key), list) or not (row[key] or may_be_empty):
            raise _make_file_error(name, key, row.get(key), "a list of texts")
    if strange := sorted({*row} - {*(part.name for part in fields(Mechanism))}):
        raise _make_file_error(name, strange[0], row[strange[0]], "no such key")


def _make_file_error(name: str, key: str, got: Any, allowed: str) -> AgentError:
    return AgentError(
        f"mechanism {name!r}: {key} must be {allowed}",
        field=f"mechanisms.yaml: {name}.{key}",
        got=got,
        allowed=allowed,
        hint="Mend the entry; the head of the file says what each key means.",
        code="mechanisms",
    )


def _make_mechanism(row: Mapping[str, Any]) -> Mechanism:
    lists: dict[str, Any] = {name: tuple(row[name]) for name in ("fields", "skeletons", "needs") if name in row}
    facts: dict[str, Any] = {**row, **lists}
    return Mechanism(**facts)


def find_mechanism(name: str) -> Mechanism | None:
    """Return a mechanism by its id, or None."""
    return next((mechanism for mechanism in load_mechanisms() if mechanism.id == name), None)


def fill_skeleton(skeleton: str, names: Collection[str], rng: np.random.Generator) -> str:
    """Return a formula: a skeleton with every slot drawn from windows and from the given fields.

    The same slot has the same value throughout; slots of one kind that differ by a digit differ in value if possible.
    """
    draws: dict[str, str] = {}

    def fill(match: re.Match[str]) -> str:
        slot, kind = match.group(0), match.group(1)
        if slot not in draws:
            used = {value for name, value in draws.items() if name.startswith("{" + kind)}
            values = list_slot_values(kind, names)
            draws[slot] = str(rng.choice([value for value in values if value not in used] or values))
        return draws[slot]

    return SLOT.sub(fill, skeleton)


@cache
def list_slot_operators(kind: str) -> tuple[str, ...]:
    """Return the time-series operators of a kind, from the language's table.

    shape: of one series, whatever its scale; level: of one series, in its units; pair: of two series.
    """
    operators = [
        o
        for o in OPERATORS.values()
        if o.family == "time series" and all(a.keyword or a.name == "window" for a in o.numbers)
    ]
    if kind == "pair":
        return tuple(o.name for o in operators if [a.kind for a in o.nodes] == ["panel", "panel"])
    scalings = {"shape": ("even", "odd", "order"), "level": ("linear", "absolute", "mirror")}[kind]
    return tuple(o.name for o in operators if len(o.nodes) == 1 and o.scaling and o.scaling[0] in scalings)


def list_slot_values(kind: str, names: Collection[str]) -> list[str]:
    """Return the values that a slot of a kind may take: windows, operators, or fields of the market."""
    if kind in OPERATOR_SLOTS:
        return list(list_slot_operators(kind))
    if kind in SLOT_WINDOWS:
        return [str(window) for window in SLOT_WINDOWS[kind]]
    fields = DRAWN_PRICES if kind == "price" else ACTIVITY
    return [name for name in fields if name in names] or [fields[0]]


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
def _load_codes() -> tuple[Code, ...]:
    rows: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "codes.yaml").read_text(encoding="utf-8"))
    return tuple(Code(**{**row, "of": tuple(row["of"])}) for row in rows)


def find_codes(mechanism: str) -> list[Code]:
    """Return the Python factors that serve a mechanism, in the order of their file."""
    return [code for code in _load_codes() if mechanism in code.of]
