"""One method on one panel: searched once and kept, examined whenever it is asked for."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alphaloom.factors import Engine, warm_up
from alphaloom.ledger import JSON, compute_digest

from .choice import centred_ranks, chosen, combination, ridge
from .features import formula
from .market import say
from .methods.method import Allowance, Answer, Factor, Method, cpu_seconds
from .rooms import state_of
from .scoring import Truth, examined, judged
from .world import World

__all__ = ["Cell", "Cells"]

Values = NDArray[np.float32]
ROOMS, DECIDING = ("factors", "market", "evidence"), ("choice", "features", "pursuit", "textbook", "world")
"""Rooms, and modules beside this one, that decide what any method finds."""


@dataclass(frozen=True)
class Cell:
    """What one method found on one panel: its ten, what it spent, and its own score where it has one."""

    factors: tuple[Factor, ...]
    evaluations: int
    cpu_s: float
    combined: Values | None
    more: dict[str, Any]


@dataclass(frozen=True)
class Cells:
    """A folder of cells, each under a digest of the panel, the method's code, what it may spend, and its seed."""

    folder: Path

    def row(self, world: World, truth: Truth, method: Method, allowance: Allowance, seed: int) -> dict[str, Any]:
        """Return one row of a table: what was found, held against the sealed days."""
        cell = self.cell(world, method, allowance, seed)
        values = on_all_days(world, cell.factors)
        combined = combined_of(world, values) if cell.combined is None else cell.combined
        spent = {"evaluations": cell.evaluations, "cpu_s": round(cell.cpu_s, 1)}
        ten = [{"text": factor.text, "t": round(factor.t, 2)} for factor in cell.factors]
        return {
            "method": method.name,
            "panel": world.name,
            "seed": seed,
            **spent,
            "chosen": ten,
            **examined(world, values, combined, truth),
            "more": cell.more,
            **(judged(world, cell.more["accepted"]) if "accepted" in cell.more else {}),
        }

    def cell(self, world: World, method: Method, allowance: Allowance, seed: int) -> Cell:
        """Return what a method found, searching once."""
        place = self.place(world, method, allowance, seed)
        if not place.with_suffix(".json").is_file():
            say(f"{world.name}: {method.name}, {allowance}")
            warm_up()
            ground = world.ground()
            ground.order  # noqa: B018 - the label is sorted before the clock starts: everybody shares it
            began = cpu_seconds()
            answer = method.search(ground, allowance, seed)
            spent = cpu_seconds() - began
            write(place, Cell(ten_of(world, answer), answer.evaluations, spent, answer.combined, answer.more))
        return read(place)

    def place(self, world: World, method: Method, allowance: Allowance, seed: int) -> Path:
        """Return where a cell is kept, without a suffix: its name changes with all that decides what is found."""
        slug = "".join(letter if letter.isalnum() else "-" for letter in method.name)
        days = world.windows.search
        asked: JSON = [
            world.panel.digest,
            world.label_digest,
            allowance.evaluations,
            allowance.cpu_s,
            seed,
            days.start,
            days.stop,
        ]
        place = self.folder / "cells" / world.name / f"{slug}-{compute_digest([asked, code_of(method)])[:12]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


def code_of(method: Method) -> str:
    """Return the digest of the code that decides what a method finds, and of what else it says decides it.

    Whoever searches reads formulas, computes them, and is scored, by the same rooms; so all are asked again when one
    changes.
    """
    own = Path(__file__).parent
    module = Path(str(sys.modules[type(method).__module__].__file__))
    files = [*(own / f"{name}.py" for name in DECIDING), own / "methods" / "method.py", module]
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in files))
    return state.hexdigest()[:16] + state_of(*ROOMS) + method.state()


def ten_of(world: World, answer: Answer) -> tuple[Factor, ...]:
    """Choose at most ten factors of an answer on search days."""
    ground = world.ground()

    def values(factor: Factor) -> Values:
        if factor.values is not None:
            return np.ascontiguousarray(world.windows.search.cut(factor.values))
        return ground.engine.evaluate([formula(factor.text)])[0]

    return tuple(chosen(answer.factors, values))


def on_all_days(world: World, factors: Sequence[Factor]) -> list[Values]:
    """Return each factor's values on all days of the panel, `[T, N]`."""
    formulas = [formula(factor.text) for factor in factors if factor.values is None]
    computed = iter(Engine(world.panel, cache_bytes=0, threads=1).evaluate(formulas))
    return [next(computed) if factor.values is None else factor.values for factor in factors]


def combined_of(world: World, values: Sequence[Values]) -> Values:
    """Return the common combination: ranks weighted by a ridge fitted on search days."""
    ranks = [centred_ranks(value) for value in values]
    search = world.windows.search
    weights = ridge([search.cut(rank) for rank in ranks], search.cut(world.label))
    return combination(ranks, weights, world.panel.universe)


def write(place: Path, cell: Cell) -> None:
    """Keep a cell: figures as text, arrays beside them in half precision of their ranks."""
    arrays = {f"factor{index}": factor.values for index, factor in enumerate(cell.factors) if factor.values is not None}
    arrays |= {"combined": cell.combined} if cell.combined is not None else {}
    if arrays:
        np.savez(
            place.with_suffix(".npz"), allow_pickle=False, **{key: shortened(each) for key, each in arrays.items()}
        )
    kept = {"evaluations": cell.evaluations, "cpu_s": cell.cpu_s, "more": cell.more}
    kept["factors"] = [[factor.text, factor.t] for factor in cell.factors]
    unfinished = place.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(kept))
    unfinished.replace(place.with_suffix(".json"))


def read(place: Path) -> Cell:
    """Return a cell that was kept."""
    kept = json.loads(place.with_suffix(".json").read_text())
    arrays: dict[str, Values] = {}
    if place.with_suffix(".npz").is_file():
        with np.load(place.with_suffix(".npz")) as held:
            arrays = {name: held[name].astype(np.float32) for name in held.files}
    factors = [Factor(text, t, arrays.get(f"factor{index}")) for index, (text, t) in enumerate(kept["factors"])]
    return Cell(tuple(factors), kept["evaluations"], kept["cpu_s"], arrays.get("combined"), kept["more"])


def shortened(values: Values) -> NDArray[np.float16]:
    """Return centred ranks, NaN kept: all that is read of values is their order."""
    return np.where(np.isnan(values), np.nan, centred_ranks(values)).astype(np.float16)
