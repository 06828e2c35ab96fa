"""What is put before the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression
from ..errors import EvidenceError
from .alignment import Claim

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """What is put before the gate: a factor with its claim and search facts, or a set of such factors as one.

    Attributes
    ----------
    values
        `[T, N]`, NaN outside the universe.
    rank_ic
        Mean RankIC on search; its sign is the direction in which the factor is held.
    members
        Empty for a single factor. A set is judged by its members on complexity, originality and words.
    """

    expression: Expression
    claim: Claim
    values: Values
    rank_ic: float | None
    members: tuple[Case, ...] = ()

    @property
    def sign(self) -> int:
        """Return the direction in which it is held, fixed on search: 1 or -1."""
        return 1 if (self.rank_ic or 0.0) > 0 else -1

    @property
    def parts(self) -> tuple[Case, ...]:
        """Return the single factors: the members of a set, or the case itself."""
        return self.members or (self,)


def sum_of_ranks(members: Sequence[Case]) -> str:
    """Write a set as one formula: ranks added with the sign that search gave each.

    Raises
    ------
    EvidenceError
        A member is a Python factor, which stands in no formula.
    """
    code = [member.expression.id for member in members if member.expression.code]
    if code:
        raise EvidenceError(
            "A Python factor cannot be a member of a set, which is a formula.", field="members", got=code,
            allowed="formulas", hint="Submit it alone.",
        )  # fmt: skip
    signs = ["-" if (member.rank_ic or 0.0) < 0 else "+" for member in members]
    parts = [f"{sign} rank({member.expression.canonical_text})" for sign, member in zip(signs, members, strict=True)]
    return " ".join(parts).removeprefix("+ ")
