"""Families of discoveries: nested discoveries count once, and raise no level for a trial of their family.

A discovery raises the significance level of later trials, so one effect must not be counted twice. A discovery is
nested in an earlier one if it is a member of it, has it as a member, or shares a member with it; or if their rank
correlation on search days is above the redundancy limit. A factor that the panel cannot compute counts as nested. All
discoveries that are tied to each other are a family and count once, and a family raises no level for a trial that is
tied to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import FactorError, parse
from ...ledger import Ledger, Trial
from ..errors import EvidenceError
from ..originality.redundancy import rank_correlation
from ..scoring.metrics import round_significant
from ..values.computing import Computing
from ..windows import Window

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Tie:
    """Why a trial is nested in an earlier discovery, both by id.

    `rank_correlation` is None where they share a member, or where it could not be computed.
    """

    later: int
    earlier: int
    members: bool
    rank_correlation: float | None

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def select_family_heads(discoveries: Sequence[int], ties: Sequence[Tie], trial: int) -> list[int]:
    """Return the first discovery of each family to which a trial is not tied: these raise its level.

    Parameters
    ----------
    discoveries
        Ids of the discoveries before the trial.
    ties
        All ties among them and with the trial.
    trial
        Id of the trial.
    """
    head = {number: number for number in sorted({*discoveries, trial})}
    for tie in ties:
        if tie.later in head and tie.earlier in head:
            first_head, second_head = head[tie.later], head[tie.earlier]
            head = {
                number: min(first_head, second_head) if first in (first_head, second_head) else first
                for number, first in head.items()
            }
    return sorted({first for number, first in head.items() if number != trial and first != head[trial]})


def list_parts(ledger: Ledger, trial: Trial) -> frozenset[str]:
    """Return the id of a trial's factor, and of its members if it is a set."""
    sets = {event.key: event.body for event in ledger.events.of(trial.run, "set")}
    return frozenset({trial.subject, *sets.get(trial.subject, ())})


@dataclass(frozen=True)
class Families:
    """Finds ties among the discoveries of a stream, from recorded members and from the ranks of search days."""

    ledger: Ledger
    computing: Computing | None
    window: Window
    limit: float
    _values: dict[int, Values | None] = field(default_factory=dict, repr=False)
    _ties: dict[tuple[int, int], Tie | None] = field(default_factory=dict, repr=False)

    def ties(self, trials: Sequence[Trial]) -> list[Tie]:
        """Return every tie among some trials, in the order of their ids."""
        ordered = sorted(trials, key=lambda trial: trial.id)
        pairs = [(later, earlier) for place, later in enumerate(ordered) for earlier in ordered[:place]]
        return [tie for pair in pairs if (tie := self._get_tie(*pair))]

    def _get_tie(self, later: Trial, earlier: Trial) -> Tie | None:
        key = later.id, earlier.id
        if key not in self._ties:
            self._ties[key] = self._find_tie(later, earlier)
        return self._ties[key]

    def _find_tie(self, later: Trial, earlier: Trial) -> Tie | None:
        if not list_parts(self.ledger, later).isdisjoint(list_parts(self.ledger, earlier)):
            return Tie(later.id, earlier.id, members=True, rank_correlation=None)
        if any(self.ledger.evaluations.get(trial.run, trial.subject) is None for trial in (later, earlier)):
            return None  # no formula is on record
        later_values, earlier_values = self._get_search_values(later), self._get_search_values(earlier)
        if later_values is None or earlier_values is None:
            return Tie(later.id, earlier.id, members=False, rank_correlation=None)
        correlation = rank_correlation(later_values, earlier_values, self.window)
        return (
            Tie(later.id, earlier.id, members=False, rank_correlation=round_significant(correlation))
            if abs(correlation) > self.limit
            else None
        )

    def _get_search_values(self, trial: Trial) -> Values | None:
        """Return the values of a trial's factor on this panel `[T, N]`; None where they cannot be computed."""
        if trial.id not in self._values:
            self._values[trial.id] = self._compute_search_values(trial)
        return self._values[trial.id]

    def _compute_search_values(self, trial: Trial) -> Values | None:
        row = self.ledger.evaluations.get(trial.run, trial.subject)
        if row is None or self.computing is None:
            return None
        try:
            expression = parse(row.text, fields=tuple(row.sheet["fields"]))
            return self.computing.until(self.window.stop).evaluate([expression])[0]
        except (FactorError, EvidenceError):
            return None
