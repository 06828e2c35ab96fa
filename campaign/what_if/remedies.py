"""What would make a refused signal pass: a smaller change, found by asking the gate again, or what the rule needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from ...risk import (
    AUDIT_RULES,
    PER_ONE,
    PER_SD,
    STANDING_RULES,
    TOTAL_RULES,
    BookState,
    Policy,
    RuleCheck,
    Signal,
    Standing,
    decide,
    list_failing,
)

PER_MILLE: Final = 1000
SIZE_RULES: Final = frozenset({"single_name", "interval_width", "liquidity", *TOTAL_RULES})
"""Rules that a smaller change may pass."""
LEAST_CHANGE: Final = 0
"""A change of nothing only reduces, so it passes every rule that does not bind reductions."""


@dataclass(frozen=True)
class GateQuestion:
    """What the gate was asked: signals of different symbols, book, policy, day, and what the record says."""

    signals: tuple[Signal, ...]
    state: BookState
    policy: Policy
    now: date
    standings: Mapping[str, Standing]

    def passes(self, place: int, per_mille: int) -> bool:
        """Return whether the gate approves a share of one signal's change, with everything else as asked."""
        asked = list(self.signals)
        held = self.state.positions.get(asked[place].asset, 0)
        asked[place] = scale_change(asked[place], held, per_mille)
        decision = decide(asked, self.state, self.policy, self.now, self.standings)
        return any(one.signal.asset == asked[place].asset for one in decision.approved)


def scale_change(signal: Signal, held_e8: int, per_mille: int) -> Signal:
    """Return a signal that asks for a share of the change, bounds included; 0 keeps the position, 1000 is the signal.

    Values are rounded down to the gate's units.
    """
    parts = {
        name: held_e8 + (getattr(signal, name) - held_e8) * per_mille // PER_MILLE
        for name in ("target_e8", "lo_e8", "hi_e8")
    }
    return replace(signal, **parts)


def find_passing_share(question: GateQuestion, place: int) -> int | None:
    """Return the share of a refused signal's change that the gate approves, in whole per mille; one more is refused.

    Everything else stays as asked. It is the largest share, or the end of one range where the gate approves several.
    None where even a change of nothing is refused.
    """
    if not question.passes(place, LEAST_CHANGE):
        return None
    passes, fails = LEAST_CHANGE, PER_MILLE
    while fails - passes > 1:
        middle = (passes + fails) // 2
        if question.passes(place, middle):
            passes = middle
        else:
            fails = middle
    return passes


def can_shrink(refusals: Sequence[str], signal: Signal, held_e8: int) -> bool:
    """Return whether a part of a change may pass: only its size was refused, or it crosses from one side to another."""
    return SIZE_RULES.issuperset(refusals) or held_e8 * signal.target_e8 < 0


def describe_need(check: RuleCheck, question: GateQuestion) -> str:
    """Return what a rule that refused a signal needs, in words."""
    if check.rule in AUDIT_RULES:
        return _describe_exposure(check, question)
    if check.rule in STANDING_RULES:
        return _describe_evidence(check, question)
    if check.rule in SIZE_RULES:
        return _describe_size(check)
    if check.rule == "stale_data":
        return _describe_age(check)
    policy, state = question.policy, question.state
    resumed = "two people resume the book: alphaloom book resume"
    needs = {
        "duplicate": "one row for the symbol",
        "valid": f"valid_until {question.now} or later: compute the targets again",
        "price_jump": "two prices of the symbol in the panel"
        if check.actual is None
        else "a look at the last price: a mistake of the data, or a split; then the next day's price",
        "restricted": "the symbol is restricted in the policy: only a reduction passes",
        "borrow": "nobody lends the symbol (not_shortable in the policy): a short may not grow",
        "name_fall": "the position has fallen too far from its best price: only a reduction passes",
        "kill_switch": "kill_switch: false in the policy",
        "trading_state": f"the book is {state.mode}: {resumed}",
        "trailing_drawdown": f"equity within {policy.trailing_drawdown_cap_bp} bp of its highest, or {resumed}",
        "max_drawdown": f"{resumed}; it counts falls from then on",
        "daily_loss": "the next session: reductions pass today",
        "rejects": "the next session: reductions pass today",
    }
    return needs.get(check.rule, "another value")


def _describe_size(check: RuleCheck) -> str:
    if check.actual is None:
        return "the volume of the symbol in the panel" if check.rule == "liquidity" else "a value that is known"
    if check.rule == "positions":
        return "a position that is closed first"
    largest = f" ({check.about or 'names without a sector'})" if check.rule in ("sector", "style") else ""
    return f"a smaller change{largest}"


def _describe_age(check: RuleCheck) -> str:
    if check.actual is None:
        return "a price of the symbol in the panel"
    if check.actual < 0:
        return "a panel that ends before the day of the decision"
    return "a newer price of the symbol in the panel"


def _describe_exposure(check: RuleCheck, question: GateQuestion) -> str:
    """Return what a factor that carries audited attributes needs, with what its audits found."""
    standing = question.standings.get(check.about)
    if standing is None:
        return f"evidence that this workspace holds: {check.about} is not in the ledger, so no exception can help"
    rows = {row.attribute: row for row in standing.exposures}
    said = []
    for name in list_failing(rows, check.about, question.policy, question.now):
        row = rows.get(name)
        if row is None:
            said.append(f"an audit of {name} (alphaloom risk audit)")
        elif not row.audited:
            said.append(f"two groups of {name} in the panel, so that it can be audited")
        else:
            figures = f"p {row.p_e9 / PER_ONE:.2g} (threshold {row.level_e9 / PER_ONE:.2g})"
            gap = f"mean of {row.group} {row.gap_e4 / PER_SD:+.2f} deviations from the rest"
            said.append(f"a score without {name}: {row.statistic}, {figures}, {gap}")
    owned = f"evidence: {check.about}, rule: {check.rule}, attribute: NAME, reason: WHY, owner: NAME, until: DAY"
    return f"{'; '.join(said)}; or an exception in policy.yaml: {{{owned}}}"


def _describe_evidence(check: RuleCheck, question: GateQuestion) -> str:
    if check.about not in question.standings:
        return f"evidence that this workspace holds: {check.about} is not in the ledger, so no exception can help"
    policy = question.policy
    needs = {
        "proven": f"a verdict of {', '.join(policy.admitted) or 'a kind that the policy admits'}",
        "original": "a comparison with the known factors"
        if check.actual is None
        else f"a formula of which a known factor has at most {policy.similarity_cap_bp} bp",
        "reviewed": "a person's approval: alphaloom review",
        "alive": f"the status {' or '.join(policy.admitted_statuses) or 'that the policy admits'} in the library",
        "contained": "a run of its code in a sandbox",
        "unalarmed": "a person who acknowledges it (alphaloom evidence acknowledge)",
    }
    exception = f"{{evidence: {check.about}, rule: {check.rule}, reason: WHY, owner: NAME, until: DAY}}"
    return f"{needs[check.rule]}; or an exception in policy.yaml: {exception}"
