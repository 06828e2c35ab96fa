"""Which discoveries are one: nested acceptances raise the level of no later trial.

A discovery raises the level that is asked of later trials, so one effect must not be counted twice. A discovery is nested in
an earlier one if it is a member of it, has it as a member, or shares one with it; or if both rank the names of search days
alike, beyond the redundancy limit. What the panel cannot compute counts as nested. All that is tied to each other is a
family, and counts once; and a family raises no level for a trial that is tied to it.
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
    """Why a trial is nested in an earlier discovery; both by their ids. `rank_correlation` None: it could not be computed."""

    later: int
    earlier: int
    members: bool
    rank_correlation: float | None

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def select_family_heads(found: Sequence[int], ties: Sequence[Tie], own: int) -> list[int]:
    """Return the first discovery of each family that raises the level of a trial: of those that it is not tied to.

    Parameters
    ----------
    found
        Ids of the discoveries before it.
    ties
        All that is known among them and with the trial.
    own
        The id of the trial.
    """
    head = {each: each for each in sorted({*found, own})}
    for tie in ties:
        if tie.later in head and tie.earlier in head:
            one, other = head[tie.later], head[tie.earlier]
            head = {each: min(one, other) if first in (one, other) else first for each, first in head.items()}
    return sorted({first for each, first in head.items() if each != own and first != head[own]})


def list_parts(ledger: Ledger, trial: Trial) -> frozenset[str]:
    """Return the id of a trial's factor, and of its members if it is a set."""
    sets = {event.key: event.body for event in ledger.events(trial.run, "set")}
    return frozenset({trial.subject, *sets.get(trial.subject, ())})


@dataclass(frozen=True)
class Families:
    """Ties the discoveries of a stream, by what is recorded and by the ranks of search days."""

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
        return [tie for pair in pairs if (tie := self._tie(*pair))]

    def _tie(self, later: Trial, earlier: Trial) -> Tie | None:
        key = later.id, earlier.id
        if key not in self._ties:
            self._ties[key] = self._find_tie(later, earlier)
        return self._ties[key]

    def _find_tie(self, later: Trial, earlier: Trial) -> Tie | None:
        if not list_parts(self.ledger, later).isdisjoint(list_parts(self.ledger, earlier)):
            return Tie(later.id, earlier.id, members=True, rank_correlation=None)
        if any(self.ledger.evaluation(each.run, each.subject) is None for each in (later, earlier)):
            return None  # no formula is on record
        one, other = self._search_values(later), self._search_values(earlier)
        if one is None or other is None:
            return Tie(later.id, earlier.id, members=False, rank_correlation=None)
        alike = rank_correlation(one, other, self.window)
        return (
            Tie(later.id, earlier.id, members=False, rank_correlation=round_significant(alike))
            if abs(alike) > self.limit
            else None
        )

    def _search_values(self, trial: Trial) -> Values | None:
        """Return the values of a trial's factor on this panel `[T, N]`; None where they cannot be computed."""
        if trial.id not in self._values:
            self._values[trial.id] = self._computed(trial)
        return self._values[trial.id]

    def _computed(self, trial: Trial) -> Values | None:
        row = self.ledger.evaluation(trial.run, trial.subject)
        if row is None or self.computing is None:
            return None
        try:
            expression = parse(row.text, fields=tuple(row.sheet["fields"]))
            return self.computing.until(self.window.stop).evaluate([expression])[0]
        except (FactorError, EvidenceError):
            return None
