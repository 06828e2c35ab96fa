"""May it be traded? `decide`: one pure function, on whole numbers; every rule is evaluated, none stops at the first failure.

What only reduces an exposure is let pass by every limit; the kill switch, a stale price and a malformed or doubled signal
stop it all the same. What increases must hold every limit, alone and together: if the batch would exceed gross, net or
turnover, the largest changes are refused, one by one, until the rest fits; nothing is scaled. The totals take the worst of
both outcomes for a signal that is refused on its own account, so a tighter limit never lets anything new pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from datetime import date
from typing import Final, NoReturn

from ..ledger import JSON, compute_digest
from .policy import Policy, RuleCheck, SignalChange, Totals, book_checks, has_refusal, own_checks
from .signal import RiskError, Signal, find_mistake
from .state import BookState

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
    RiskError
        When made by anything but the gate.
    """

    signal: Signal
    decision: str
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        """Refuse any maker but the gate."""
        if seal is not SEAL:
            raise RiskError(
                "An Approved is made by the risk gate alone.", field="seal",
                hint="Call risk.decide and use what it approves.", code="not_approved", exit_code=1,
            )  # fmt: skip

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise RiskError(
            "An Approved cannot be copied or pickled.", hint="Decide again from the stored decision.",
            code="not_approved", exit_code=1,
        )  # fmt: skip


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


def decide(signals: Sequence[Signal], state: BookState, policy: Policy, now: date) -> Decision:
    """Decide which signals may be traded.

    Parameters
    ----------
    signals
        In any order; the answer does not depend on it. Two for one asset are both refused.
    state
        Positions, equity, price ages.
    policy
        The limits.
    now
        The day of the decision.

    Returns
    -------
    Decision
        Equal to the byte for equal input, on any machine.
    """
    ordered = sorted(signals, key=_order)
    doubled = {asset for asset, count in Counter(_asset(signal) for signal in ordered).items() if count > 1}
    forms = [_form_checks(signal, doubled) for signal in ordered]
    cases = [
        _Case(asked, own_checks(asked, state, policy, now))
        for signal, form in zip(ordered, forms, strict=True)
        if not has_refusal(form)
        for asked in [SignalChange(signal, state.positions.get(signal.asset, 0))]
    ]
    together = {case.asked.signal.asset: checks for case, checks in _weigh(cases, state, policy)}
    own = {case.asked.signal.asset: case.checks for case in cases}
    rulings = tuple(
        _rule(signal, form if has_refusal(form) else (*form, *own[signal.asset], *together[signal.asset]))
        for signal, form in zip(ordered, forms, strict=True)
    )
    return _decision(ordered, rulings, state, policy, now)


@dataclass(frozen=True)
class _Case:
    """A well-formed signal and the rules that look at it alone."""

    asked: SignalChange
    checks: tuple[RuleCheck, ...]

    @property
    def stands(self) -> bool:
        """Tell whether it passed on its own account."""
        return not has_refusal(self.checks)


def _weigh(cases: Sequence[_Case], state: BookState, policy: Policy) -> list[tuple[_Case, tuple[RuleCheck, ...]]]:
    """Return each case with the totals that decide about it: of the largest batch that fits, else of its own."""
    reducing = [case for case in cases if case.asked.reduces]
    rising = sorted((case for case in cases if not case.asked.reduces), key=_size)
    totals = _running_totals(reducing, rising, state)
    fitting = [count for count, total in enumerate(totals) if not has_refusal(total.checks(policy))]
    most = max(fitting, default=0)
    weighed = [(case, totals[most].checks(policy, binds=False)) for case in reducing]
    for place, case in enumerate(rising, start=1):
        weighed.append((case, totals[max(place, most)].checks(policy)))
    return weighed


def _running_totals(reducing: Sequence[_Case], rising: Sequence[_Case], state: BookState) -> list[Totals]:
    """Return the totals with what reduces and the first 0, 1, 2 ... increases traded.

    A case that does not stand counts as the worse of traded and left: an upper bound on what can happen.
    """
    gross = sum(abs(value) for value in state.positions.values())
    net, unsure, turnover = sum(state.positions.values()), 0, state.traded_bp
    totals = []
    for case in (*reducing, None, *rising):
        if case is not None:
            held, change = abs(case.asked.held_bp), case.asked.change_bp
            target = abs(case.asked.signal.target_bp)
            gross += (target if case.stands else max(target, held)) - held
            net += change
            unsure += 0 if case.stands else abs(change)
            turnover += abs(change)
        totals.append(Totals(gross, abs(net) + unsure, turnover))
    return totals[len(reducing) :]


def _rule(signal: Signal, checks: tuple[RuleCheck, ...]) -> Ruling:
    names = ("asset", "target_bp", "lo_bp", "hi_bp", "horizon_days", "reason", "evidence")
    values = {name: getattr(signal, name, None) for name in names}
    record: dict[str, JSON] = {
        name: value if type(value) in (int, str) else repr(value) for name, value in values.items()
    }
    return Ruling(_asset(signal), record, not has_refusal(checks), checks)


def _decision(
    signals: Sequence[Signal], rulings: tuple[Ruling, ...], state: BookState, policy: Policy, now: date
) -> Decision:
    limits = policy.model_dump(mode="json")
    asked = [ruling.signal for ruling in rulings]
    name = compute_digest({"signals": asked, "state": state.record(), "policy": limits, "day": now.isoformat()})
    approved = tuple(
        Approved(signal, name, SEAL) for signal, ruling in zip(signals, rulings, strict=True) if ruling.approved
    )
    after = state.after(approved)
    held = after.positions.values()
    totals = Totals(sum(abs(value) for value in held), abs(sum(held)), after.traded_bp)
    book = (*book_checks(state, policy), *totals.checks(policy))
    return Decision(name, approved, rulings, book, compute_digest(limits), now.isoformat())


def _form_checks(signal: Signal, doubled: set[str]) -> tuple[RuleCheck, ...]:
    """Return the rules of form; only what passes them has numbers to compare."""
    return (
        RuleCheck("schema", None, None, find_mistake(signal) is None),
        RuleCheck("duplicate", None, None, _asset(signal) not in doubled),
    )


def _asset(signal: Signal) -> str:
    """Return the asset, or how it prints where it is no text."""
    asset = getattr(signal, "asset", None)
    return asset if type(asset) is str else repr(asset)


def _order(signal: Signal) -> tuple[str, str]:
    return _asset(signal), repr(signal)


def _size(case: _Case) -> tuple[int, str]:
    return abs(case.asked.change_bp), case.asked.signal.asset
