"""What a factor is put through, by group, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FILL_WORDS", "PERTURBATION_WORDS", "REGIMES_IN_WORDS", "SCENARIO_GROUPS", "Scenario", "scenario"]

SCENARIO_GROUPS: Final = {
    "history": "historical stretches",
    "regime": "synthetic regimes",
    "data": "spoiled data",
    "fill": "fills and costs",
}
REGIMES_IN_WORDS: Final = {
    "crash": "crash, -20 % in 10 days",
    "grind": "grind, -20 % a year",
    "low_volatility": "low volatility, x 0.6",
    "sector_rotation": "sector rotation",
    "liquidity_drought": "liquidity drought, volume x 0.1",
}
PERTURBATION_WORDS: Final = {
    "tick_noise": "noise of a tick",
    "cents": "prices rounded to cents",
    "bad_ticks": "bad ticks, 1 in 10,000",
    "missing_1": "1 % of cells missing",
    "missing_5": "5 % of cells missing",
    "missing_day": "1 day in 50 missing",
    "wrong_split": "missed splits, 1 name in 10",
    "frozen_feed": "frozen feed, 5 % of cells",
}
FILL_WORDS: Final = {
    "late_1": "fills 1 day late",
    "late_2": "fills 2 days late",
    "next_close": "fills at the next close",
    "half_late": "half of each fill 1 day late",
    "costs_doubled": "costs doubled",
    "borrow_doubled": "borrow doubled",
}


@dataclass(frozen=True)
class Scenario:
    """One stress: its code, its group, what it is in words; a historical one has days."""

    code: str
    group: str
    words: str
    first: str = ""
    last: str = ""


def scenario(code: str) -> Scenario:
    """Return a scenario that is not historical."""
    for group, known in (("regime", REGIMES_IN_WORDS), ("data", PERTURBATION_WORDS), ("fill", FILL_WORDS)):
        if code in known:
            return Scenario(code, group, known[code])
    raise KeyError(code)
