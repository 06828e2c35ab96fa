"""The risk gate: `decide`, a pure function on integers that evaluates every rule, also after a failure.

A signal that only reduces an exposure passes every limit, but not the kill switch, a stale price, or a malformed or
duplicate signal. An increase must respect every limit, alone and together with the others: if the batch would exceed
gross, net or turnover, the largest changes are refused one by one until the rest fits; nothing is scaled. For a signal
that is refused alone, the totals take the worse of traded and not traded, so a tighter limit never lets a new signal
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date
from typing import Final, NoReturn

from ..ledger import JSON, compute_digest
from .policy import Policy, RuleCheck, SignalChange, Totals, book_checks, has_refusal, own_checks
from .signal import RiskError, Signal, find_mistake
from .standing import Standings, standing_checks
from .state import BookState

SEAL: Final = object()
"""Token of the gate: any other use is a deliberate forgery, which a reviewer can find by grep."""


@dataclass(frozen=True)
class Approved:
    """A signal that the gate approved; only such a signal may become an order.

    Only `decide` creates it, and it cannot be copied with changes or pickled. To pass it on, pass on the record of the
    decision and decide again.

    Attributes
    ----------
    signal
        The signal as it was requested.
    decision
        Id of the decision.

    Raises
    ------
    RiskError
        Created outside the gate.
    """

    signal: Signal
    decision: str
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        """Refuse creation outside the gate."""
        if seal is not SEAL:
            raise RiskError(
                "An Approved is made by the risk gate alone.",
                field="seal",
                hint="Call risk.decide and use what it approves.",
                code="not_approved",
                exit_code=1,
            )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise RiskError(
            "An Approved cannot be copied or pickled.",
            hint="Decide again from the stored decision.",
            code="not_approved",
            exit_code=1,
        )


@dataclass(frozen=True)
class Ruling:
    """The decision on one signal.

    Attributes
    ----------
    asset, signal
        The signal as a JSON-able record; a malformed one as far as it can be read.
    approved
        Whether the signal may be traded.
    checks
        Every rule, in fixed order.
    """

    asset: str
    signal: dict[str, JSON]
    approved: bool
    checks: tuple[RuleCheck, ...]

    @property
    def refusals(self) -> tuple[str, ...]:
        """Return the rules that refused the signal."""
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
    """The decision on a batch of signals.

    Attributes
    ----------
    id
        Digest of the input: signals, state, policy, day and what the record says of the evidence.
    approved
        Signals that may be traded, by asset.
    rulings
        One for each signal, by asset.
    book
        The rules of the whole book after all approved signals are traded.
    policy
        Digest of the policy.
    day
        ISO date of the decision.
    standings
        What the record said of the evidence, by id.
    """

    id: str
    approved: tuple[Approved, ...]
    rulings: tuple[Ruling, ...]
    book: tuple[RuleCheck, ...]
    policy: str
    day: str
    standings: Mapping[str, JSON]

    def record(self) -> dict[str, JSON]:
        """Return the decision as a JSON-able object, byte-identical for equal input."""
        return {
            "id": self.id,
            "day": self.day,
            "policy": self.policy,
            "standings": dict(self.standings),
            "rulings": [ruling.record() for ruling in self.rulings],
            "book": [check.record() for check in self.book],
        }


def decide(signals: Sequence[Signal], state: BookState, policy: Policy, now: date, standings: Standings) -> Decision:
    """Decide which signals may be traded.

    Parameters
    ----------
    signals
        In any order; the result does not depend on it. Two signals for one asset are both refused.
    state
        Positions, equity, price ages.
    policy
        The limits.
    now
        The day of the decision.
    standings
        What the record says of each id that a signal names as evidence (`read_standings`). A signal whose evidence it
        does not hold is refused, unless it only reduces.

    Returns
    -------
    Decision
        Byte-identical for equal input, on any machine.
    """
    ordered = sorted(signals, key=_sort_key)
    doubled = {asset for asset, count in Counter(_name_asset(signal) for signal in ordered).items() if count > 1}
    forms = [_check_form(signal, doubled) for signal in ordered]
    judge = _Judge(state, policy, now, standings)
    cases = [
        _Case(change, judge.check_alone(change))
        for signal, form in zip(ordered, forms, strict=True)
        if not has_refusal(form)
        for change in [SignalChange(signal, state.positions.get(signal.asset, 0))]
    ]
    together = {case.change.signal.asset: checks for case, checks in _check_totals(cases, state, policy)}
    own = {case.change.signal.asset: case.checks for case in cases}
    rulings = tuple(
        _make_ruling(signal, form if has_refusal(form) else (*form, *own[signal.asset], *together[signal.asset]))
        for signal, form in zip(ordered, forms, strict=True)
    )
    return _make_decision(ordered, rulings, state, policy, now, standings)


@dataclass(frozen=True)
class _Judge:
    """Judges signals alone; what many of them share, their evidence and the book, is judged once."""

    state: BookState
    policy: Policy
    now: date
    standings: Standings
    _evidence: dict[tuple[str, bool], tuple[RuleCheck, ...]] = field(default_factory=dict)
    _book: dict[bool, tuple[RuleCheck, ...]] = field(default_factory=dict)

    def check_alone(self, change: SignalChange) -> tuple[RuleCheck, ...]:
        """Return the checks of one signal alone: its evidence, its exposure, the state of the book."""
        binds = not change.reduces
        evidence = self._evidence.get((change.signal.evidence, binds))
        if evidence is None:
            evidence = standing_checks(change.signal.evidence, self.standings, self.policy, self.now, binds)
            self._evidence[change.signal.evidence, binds] = evidence
        if binds not in self._book:
            self._book[binds] = book_checks(self.state, self.policy, binds)
        return (*evidence, *own_checks(change, self.state, self.policy, self.now), *self._book[binds])


@dataclass(frozen=True)
class _Case:
    """A well-formed signal with the rules that judge it alone."""

    change: SignalChange
    checks: tuple[RuleCheck, ...]

    @property
    def stands(self) -> bool:
        """True if it passed the rules that judge it alone."""
        return not has_refusal(self.checks)


def _check_totals(
    cases: Sequence[_Case], state: BookState, policy: Policy
) -> list[tuple[_Case, tuple[RuleCheck, ...]]]:
    """Return each case with the checks of its totals: of the largest batch that fits, else of the batch up to it."""
    reducing = [case for case in cases if case.change.reduces]
    rising = sorted((case for case in cases if not case.change.reduces), key=_size_key)
    totals = _sum_running_totals(reducing, rising, state)
    fitting = [count for count, total in enumerate(totals) if not has_refusal(total.checks(policy))]
    most = max(fitting, default=0)
    weighed = [(case, totals[most].checks(policy, binds=False)) for case in reducing]
    for place, case in enumerate(rising, start=1):
        weighed.append((case, totals[max(place, most)].checks(policy)))
    return weighed


def _sum_running_totals(reducing: Sequence[_Case], rising: Sequence[_Case], state: BookState) -> list[Totals]:
    """Return the totals with all reductions and the first 0, 1, 2 ... increases traded.

    A case that is refused alone counts as the worse of traded and not traded: an upper bound on the outcome.
    """
    gross = sum(abs(value) for value in state.positions.values())
    net, uncertain_net, turnover = sum(state.positions.values()), 0, state.traded_e8
    totals = []
    for case in (*reducing, None, *rising):
        if case is not None:
            held_e8, change = abs(case.change.held_e8), case.change.change_e8
            target = abs(case.change.signal.target_e8)
            gross += (target if case.stands else max(target, held_e8)) - held_e8
            net += change
            uncertain_net += 0 if case.stands else abs(change)
            turnover += abs(change)
        totals.append(Totals(gross, abs(net) + uncertain_net, turnover))
    return totals[len(reducing) :]


def _make_ruling(signal: Signal, checks: tuple[RuleCheck, ...]) -> Ruling:
    names = ("asset", "target_e8", "lo_e8", "hi_e8", "horizon_days", "reason", "evidence")
    values = {name: getattr(signal, name, None) for name in names}
    record: dict[str, JSON] = {
        name: value if type(value) in (int, str) else repr(value) for name, value in values.items()
    }
    return Ruling(_name_asset(signal), record, not has_refusal(checks), checks)


def _make_decision(
    signals: Sequence[Signal],
    rulings: tuple[Ruling, ...],
    state: BookState,
    policy: Policy,
    now: date,
    standings: Standings,
) -> Decision:
    limits = policy.model_dump(mode="json")
    signal_records = [ruling.signal for ruling in rulings]
    known = {name: standings[name].record() for name in sorted(standings)}
    name = compute_digest(
        {
            "signals": signal_records,
            "state": state.record(),
            "policy": limits,
            "day": now.isoformat(),
            "standings": known,
        }
    )
    approved = tuple(
        Approved(signal, name, SEAL) for signal, ruling in zip(signals, rulings, strict=True) if ruling.approved
    )
    after = state.after(approved)
    exposures = after.positions.values()
    totals = Totals(sum(abs(value) for value in exposures), abs(sum(exposures)), after.traded_e8)
    book = (*book_checks(state, policy), *totals.checks(policy))
    return Decision(name, approved, rulings, book, compute_digest(limits), now.isoformat(), known)


def _check_form(signal: Signal, doubled: set[str]) -> tuple[RuleCheck, ...]:
    """Return the checks of form; only a signal that passes them has numbers to compare."""
    return (
        RuleCheck("schema", None, None, find_mistake(signal) is None),
        RuleCheck("duplicate", None, None, _name_asset(signal) not in doubled),
    )


def _name_asset(signal: Signal) -> str:
    """Return the asset, or its representation if it is not a text."""
    asset = getattr(signal, "asset", None)
    return asset if type(asset) is str else repr(asset)


def _sort_key(signal: Signal) -> tuple[str, str]:
    return _name_asset(signal), repr(signal)


def _size_key(case: _Case) -> tuple[int, str]:
    return abs(case.change.change_e8), case.change.signal.asset
