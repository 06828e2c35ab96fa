"""The gate's answer, with every rule that was looked at."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Final, NoReturn

from ..ledger import JSON
from .errors import NotApproved
from .rules import RuleCheck
from .signal import Signal

SEAL: Final = object()
"""Known to the gate; whoever else uses it forges on purpose, and a reviewer can grep for it."""


@dataclass(frozen=True)
class Approved:
    """A signal that the gate let pass: the only thing that may become an order.

    It is made by `decide` alone, and cannot be copied with changes or pickled; to hand one on, hand on the decision's
    record and decide again.

    Attributes
    ----------
    signal
        As it was asked.
    decision
        Id of the decision.

    Raises
    ------
    NotApproved
        When made by anything but the gate.
    """

    signal: Signal
    decision: str
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        """Refuse any maker but the gate."""
        if seal is not SEAL:
            raise NotApproved(
                "An Approved is made by the risk gate alone.",
                field="seal",
                hint="Call risk.decide and use what it approves.",
            )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise NotApproved("An Approved cannot be copied or pickled.", hint="Decide again from the stored decision.")


@dataclass(frozen=True)
class Ruling:
    """What was decided about one signal.

    Attributes
    ----------
    asset, signal
        The signal as a JSON-able record; a malformed one as far as it could be read.
    approved
        Whether it may be traded.
    checks
        Every rule, in fixed order.
    """

    asset: str
    signal: dict[str, JSON]
    approved: bool
    checks: tuple[RuleCheck, ...]

    @property
    def refusals(self) -> tuple[str, ...]:
        """Return the rules that refused it."""
        return tuple(check.rule for check in self.checks if check.binds and not check.passed)

    def record(self) -> dict[str, JSON]:
        """Return the ruling as a JSON-able object."""
        return {
            "asset": self.asset,
            "signal": self.signal,
            "approved": self.approved,
            "refusals": list(self.refusals),
            "checks": [check.record() for check in self.checks],
        }


@dataclass(frozen=True)
class Decision:
    """What was decided about a batch of signals.

    Attributes
    ----------
    id
        Digest of everything that went in: signals, state, policy and day.
    approved
        What may be traded, by asset.
    rulings
        One for each signal, by asset.
    book
        The rules of the whole book once everything approved has been traded.
    policy
        Digest of the policy.
    day
        ISO date that it was decided for.
    """

    id: str
    approved: tuple[Approved, ...]
    rulings: tuple[Ruling, ...]
    book: tuple[RuleCheck, ...]
    policy: str
    day: str

    @property
    def refused(self) -> tuple[Ruling, ...]:
        """Return the rulings that refuse."""
        return tuple(ruling for ruling in self.rulings if not ruling.approved)

    def record(self) -> dict[str, JSON]:
        """Return the decision as a JSON-able object, equal to the byte for equal input."""
        return {
            "id": self.id,
            "day": self.day,
            "policy": self.policy,
            "rulings": [ruling.record() for ruling in self.rulings],
            "book": [check.record() for check in self.book],
        }
