"""Which members of an accepted combination are proven alone, and what the combination loses without each.

A combination is one trial, and claims nothing about its members. By closed testing a member is proven as well if
every subset of the members that holds it, itself alone included, is significant at the level of that trial. Subsets
keep the weights of search. With at most ten members there are at most 512 of them for each, so all are tested. No level
is spent: as far as the test of each subset holds its size, the chance of any false claim among the combination and its
members is at most the level of the trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scoring.metrics import round_significant

Values = NDArray[np.float32]


@dataclass(frozen=True)
class ScoredTerms:
    """The weighted ranks of a combination's members, and how a sum of them is tested.

    Attributes
    ----------
    terms
        What each member adds to the combination's score, `[T, N]`, by id.
    find_p_value
        Returns the one-sided p-value of values `[T, N]` on selection, as the trial does.
    """

    terms: Mapping[str, Values]
    find_p_value: Callable[[Values], float]
    _p_values: dict[tuple[str, ...], float] = field(default_factory=dict, repr=False)

    def p_value(self, names: Sequence[str]) -> float:
        """Return the one-sided p-value of the sum of some members; each subset is tested once."""
        key = tuple(sorted(names))
        if key not in self._p_values:
            self._p_values[key] = self.find_p_value(self._sum(key))
        return self._p_values[key]

    def prove(self, level: float) -> list[dict[str, Any]]:
        """Return for each member its p-values and whether it is proven alone, as JSON.

        `p_value` is that of the member alone, `weakest_p_value` the largest among the subsets that hold it, and
        `weakest` that subset. Where the member alone is not significant no other subset is tested.
        """
        return [self._prove_member(name, level) for name in sorted(self.terms)]

    def _prove_member(self, name: str, level: float) -> dict[str, Any]:
        alone = self.p_value([name])
        weakest, subset = alone, tuple[str, ...]([name])
        if alone <= level:
            for names in self._list_subsets(name):
                p_value = self.p_value(names)
                if p_value > weakest:
                    weakest, subset = p_value, names
        return {
            "id": name,
            "p_value": float(f"{alone:.6g}"),
            "weakest_p_value": float(f"{weakest:.6g}"),
            "weakest": list(subset),
            "proven": weakest <= level,
        }

    def _list_subsets(self, name: str) -> Iterator[tuple[str, ...]]:
        """Yield every subset of at least two members that holds one."""
        others = sorted(set(self.terms) - {name})
        for count in range(1, len(others) + 1):
            for chosen in combinations(others, count):
                yield tuple(sorted((name, *chosen)))

    def _sum(self, names: Sequence[str]) -> Values:
        total: Values = np.sum([self.terms[name] for name in names], axis=0, dtype=np.float32)
        return total

    def measure_loss(self, score: Callable[[Values], float], whole: float) -> dict[str, float | None]:
        """Return by member how much a figure of the combination falls without that member.

        Parameters
        ----------
        score
            Returns the figure for values `[T, N]`.
        whole
            The figure of all members together.
        """
        names = sorted(self.terms)
        rest = {name: [other for other in names if other != name] for name in names}
        return {name: round_significant(whole - score(self._sum(rest[name]))) for name in names}
