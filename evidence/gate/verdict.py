"""A case before the acceptance gate, and the verdict on it with every reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression
from ...ledger import VerdictRow
from ..errors import EvidenceError
from ..proposal import Claim

Values = NDArray[np.float32]

Word = Literal["accepted", "proven, not tradable alone", "watchlist", "rejected", "awaiting approval"]
"""The gate gives one of the first four; an accepted factor awaits approval if the campaign asks a person."""
UNTRADABLE: Word = "proven, not tradable alone"
"""A factor whose forecast is significant and does not pay the costs of trading it."""


@dataclass(frozen=True)
class Case:
    """A factor with its claim and search metrics, or a set of such factors as one, for the gate to judge.

    Attributes
    ----------
    values
        Factor values `[T, N]`, NaN outside the universe.
    rank_ic
        Mean RankIC on search; its sign is the direction in which the factor is held.
    members
        Empty for a single factor. A set is judged by its members on complexity, originality and words.
    weighing
        What a set holds of each member; None for a single factor.
    """

    expression: Expression
    claim: Claim
    values: Values
    rank_ic: float | None
    members: tuple[Case, ...] = ()
    weighing: Weighing | None = None

    @property
    def sign(self) -> int:
        """Return the direction in which it is held, fixed on search: 1 or -1."""
        return 1 if (self.rank_ic or 0.0) > 0 else -1

    @property
    def parts(self) -> tuple[Case, ...]:
        """Return the single factors: the members of a set, or the case itself."""
        return self.members or (self,)


EMA_SPANS, MAX_EMA_DAYS = 8, 250
"""Length of the window of the slowing mean, in spans (what is older has a weight below 1e-6), and at most in days."""


@dataclass(frozen=True)
class Weighing:
    """What a combination holds of each member, fixed on search days.

    Attributes
    ----------
    weights
        Share of each member's ranks, by id; above 0, and adding up to 1.
    rate
        Share of the way to the weighted ranks that is traded each day, in (0, 1].
    combiner, chosen
        What weighed them, and how it was chosen, in words.
    """

    weights: Mapping[str, float]
    rate: float = 1.0
    combiner: str = "equal"
    chosen: str = ""

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"weights": dict(self.weights), "rate": self.rate, "combiner": self.combiner, "chosen": self.chosen}


def write_combination_formula(members: Sequence[Case], weighing: Weighing) -> str:
    """Write a combination as one formula of the language, so that what is tested is what would be traded.

    Each member is held with the sign that search gave it. A trading rate below 1 is an exponentially weighted mean of
    span 2 / rate - 1.

    Raises
    ------
    EvidenceError
        A member is a Python factor, which no formula can contain.
    """
    code = [member.expression.id for member in members if member.expression.code]
    if code:
        raise EvidenceError(
            "A Python factor cannot be a member of a combination, which is a formula.",
            field="members",
            got=code,
            allowed="formulas",
            hint="Submit it alone.",
        )
    weights = [weighing.weights[member.expression.id] for member in members]
    shares = ["" if len(set(weights)) == 1 else f"{weight!r} * " for weight in weights]
    signs = ["-" if (member.rank_ic or 0.0) < 0 else "+" for member in members]
    parts = [
        f"{sign} {share}rank({member.expression.canonical_text})"
        for sign, share, member in zip(signs, shares, members, strict=True)
    ]
    total = " ".join(parts).removeprefix("+ ")
    if weighing.rate == 1.0:
        return total
    span = float(f"{2.0 / weighing.rate - 1.0:.4g}")
    window = min(math.ceil(EMA_SPANS * span), MAX_EMA_DAYS)
    return f"ema({total}, {window}, span={span:g}, min_periods=1)"


COSTS_STEP = "costs"
"""The step after statistics: whether a significant factor pays its costs."""


@dataclass(frozen=True)
class Reason:
    """The outcome of one step of the gate.

    `message` may carry numbers and is for people. Of a step that reads the selection window, an agent sees only `step`
    and `passed`.
    """

    step: str
    passed: bool
    message: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"step": self.step, "passed": self.passed, "message": self.message, "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Verdict:
    """The gate's verdict on one factor or set."""

    factor_id: str
    word: Word
    reasons: tuple[Reason, ...]
    trial: int | None = None
    selection: Mapping[str, Any] | None = None

    @classmethod
    def restored(cls, row: VerdictRow) -> Verdict:
        """Return a verdict from its row in the ledger."""
        reasons = tuple(
            Reason(reason["step"], reason["passed"], reason["message"], reason["numbers"]) for reason in row.reasons
        )
        trial, selection = row.metrics["trial"], row.metrics["selection"]
        return cls(row.factor_id, cast("Word", row.verdict), reasons, trial, selection)

    def row(self, run: str) -> VerdictRow:
        """Return the row that the ledger keeps."""
        reasons = [reason.record() for reason in self.reasons]
        return VerdictRow(run, self.factor_id, self.word, reasons, {"trial": self.trial, "selection": self.selection})

    def for_agents(self) -> dict[str, Any]:
        """Return the verdict without any number from the selection window: steps and words only."""
        reasons = dict.fromkeys(_reason_for_agents(reason) for reason in self.reasons if not reason.passed)
        return {"id": self.factor_id, "verdict": self.word, "reasons": list(reasons)}


def _reason_for_agents(reason: Reason) -> str:
    """Write a reason without selection numbers; a fault there reads as "not proven", or code could probe by failing."""
    if reason.step == "statistics" or "fault" in reason.numbers:
        return "statistics: not proven on the selection window after all looks that were taken at it"
    if reason.step == COSTS_STEP:
        return "costs: its forecast is proven, but does not pay for trading it alone"
    return f"{reason.step}: {reason.message}"
