"""May it be traded? One pure function, on whole numbers; every rule is evaluated, none stops at the first failure.

What only reduces an exposure is let pass by every limit; the kill switch, a stale price and a malformed or doubled
signal stop it all the same. What increases must hold every limit, alone and together: if the batch would exceed gross,
net or turnover, the largest changes are refused, one by one, until the rest fits; nothing is scaled. The totals take the
worst of both outcomes for a signal that is refused on its own account, so a tighter limit never lets anything new pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ..ledger import JSON, compute_digest
from .decision import SEAL, Approved, Decision, Ruling
from .policy import Policy
from .rules import RuleCheck, SignalChange, Totals, book_checks, has_refusal, own_checks
from .signal import Signal, find_mistake
from .state import BookState


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
