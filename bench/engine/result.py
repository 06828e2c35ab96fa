"""What was measured, as records that a table, a picture and a JSON file are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .environments import OWN, Contender
from .measure import GROUPS, Agreement, Timing
from .search import SearchCost

GROUP_WORDS = {"ts": "time series", "cs": "cross-section", "all": "all"}


@dataclass(frozen=True)
class Pair:
    """Alphaloom beside one rival, on the formulas that both can compute.

    Attributes
    ----------
    rival : str
        Its name.
    factors : dict
        Formulas in each group.
    own, other : dict
        CPU seconds in each group.
    compiled : dict
        CPU seconds that the rival spent before its first run.
    left_out : dict
        The formulas that it cannot compute, with the reason.
    read : float
        CPU seconds in which alphaloom reads the formulas before its first run.
    """

    rival: str
    factors: dict[str, int]
    own: dict[str, float]
    other: dict[str, float]
    compiled: dict[str, float]
    left_out: dict[str, str]
    read: float

    def ratio(self, group: str) -> float:
        """Return how many times the CPU seconds of alphaloom the rival takes."""
        return self.other[group] / self.own[group]


@dataclass
class Result:
    """Everything of one run of the benchmark."""

    days: int
    names: int
    repeats: int
    machine: str
    load: tuple[float, float, float]
    nodes: dict[str, Any]
    pairs: list[Pair] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)
    agreement: dict[str, dict[str, Agreement]] = field(default_factory=dict)
    operators: dict[str, dict[str, float]] = field(default_factory=dict)
    ranks: dict[str, float] = field(default_factory=dict)
    search: list[SearchCost] = field(default_factory=list)
    threads: dict[int, float] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        found = asdict(self)
        found["ratios"] = {pair.rival: {group: pair.ratio(group) for group in pair.own} for pair in self.pairs}
        return found

    def pair(self, start: str) -> Pair | None:
        """Return the pair with the fastest rival whose name begins so, by all formulas."""
        found = [pair for pair in self.pairs if pair.rival.startswith(start)]
        return min(found, key=lambda pair: pair.other["all"] / pair.factors["all"], default=None)

    def best(self, start: str, group: str) -> float:
        """Return the smallest ratio in a group over every way of running a rival."""
        return min(pair.ratio(group) for pair in self.pairs if pair.rival.startswith(start))


def pair_of(
    rival: Contender, timings: Mapping[str, Mapping[str, Timing]], counts: Mapping[str, int], left_out: dict[str, str]
) -> Pair:
    """Put the medians of alphaloom and a rival side by side; a set that was not run whole is the sum of its parts."""
    own, other = timings[OWN.name], timings[rival.name]
    suffix = f"_{rival.slug}" if left_out else ""
    keys = {group: f"{group}{suffix}" for group in GROUPS}
    seconds = {group: other[key].median for group, key in keys.items() if key in other}
    seconds.setdefault("all", sum(seconds.values()))
    return Pair(
        rival.name,
        dict(counts),
        {group: own[key].median for group, key in keys.items()},
        seconds,
        {group: other[key].prepared for group, key in keys.items() if key in other},
        left_out,
        own[keys["ts"]].prepared + own[keys["cs"]].prepared,
    )
