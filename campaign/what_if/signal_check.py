"""Signals of a file asked of the risk gate: each rule's worst value, and what each refused signal would need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...ledger import Ledger
from ...market import Panel
from ...risk import (
    RULE_UNITS,
    Decision,
    Policy,
    RuleCheck,
    Signal,
    Standing,
    decide,
    list_ids,
    read_standings,
)
from ..facts import read_facts
from ..trade import next_trading_day
from .held_book import HeldBook
from .remedies import GateQuestion, can_shrink, describe_need, find_passing_share

MOST_SHARES: Final = 100
"""Refused signals for which the share that passes is computed at most, the largest changes first."""
MOST_JUDGED: Final = 200_000
"""Signals that the gate judges for these shares: each share asks for the whole file about ten times."""
QUESTIONS_A_SHARE: Final = 10


@dataclass(frozen=True)
class RuleRefusal:
    """A rule that refused a signal, with what it needs."""

    check: RuleCheck
    needs: str


@dataclass(frozen=True)
class RefusedSignal:
    """A signal that the gate refused.

    Attributes
    ----------
    signal
        The signal.
    held_e8
        The position, in 1e-8 of equity.
    refusals
        The rules that refused it.
    share
        The largest share of the change that would pass with everything else as asked, in per mille; None where no
        smaller change would pass, or it was not computed.
    """

    signal: Signal
    held_e8: int
    refusals: tuple[RuleRefusal, ...]
    share: int | None


@dataclass(frozen=True)
class RuleWorst:
    """The worst value of a rule over all signals that it binds.

    Attributes
    ----------
    rule
        The rule.
    check
        The comparison; None where the rule bound no signal.
    asset
        The symbol.
    refused
        How many signals it refused.
    """

    rule: str
    check: RuleCheck | None
    asset: str
    refused: int


@dataclass(frozen=True)
class SignalCheck:
    """The gate's answer to signals, rule by rule and refusal by refusal.

    Attributes
    ----------
    decision
        The decision.
    rules
        One for each rule, in the order of the decision.
    refused
        The refused signals, by symbol.
    uncomputed
        How many of them might pass in part, without a computed share.
    """

    decision: Decision
    rules: tuple[RuleWorst, ...]
    refused: tuple[RefusedSignal, ...]
    uncomputed: int


def check_signals(
    ledger: Ledger, panel: Panel, signals: Sequence[Signal], policy: Policy, book: HeldBook | None = None
) -> SignalCheck:
    """Ask the gate for signals beside a book, for the trading day after the panel's last; nothing is recorded.

    Parameters
    ----------
    panel
        Up to the close that is known. What stands behind the signals is read from the ledger.
    book
        What is held; an empty book by default.
    """
    book = book or HeldBook.empty()
    names = {signal.asset for signal in signals} | {*book.account.holdings}
    facts = read_facts(panel, names, with_styles=policy.style_cap_bp is not None) if names else {}
    state, now = book.state(facts, panel), next_trading_day(panel.dates, panel.calendar)
    standings: dict[str, Standing] = {}
    for evidence in sorted({signal.evidence for signal in signals}):
        if not standings.keys() >= {*list_ids(evidence)}:
            standings |= read_standings(ledger, evidence)
    question = GateQuestion(tuple(signals), state, policy, now, standings)
    decision = decide(signals, state, policy, now, standings)
    refused, uncomputed = _describe_refused(question, decision)
    return SignalCheck(decision, tuple(_find_worst(decision)), refused, uncomputed)


def _find_worst(decision: Decision) -> Iterator[RuleWorst]:
    """Yield the worst value of each rule: one that is not known, else the largest over its limit."""
    rows = [(check, ruling.asset) for ruling in decision.rulings for check in ruling.checks if check.binds]
    for rule in decision.rules:
        own = [(check, asset) for check, asset in rows if check.rule == rule]
        check, asset = max(own, key=lambda row: _rank(row[0]), default=(None, ""))
        yield RuleWorst(rule, check, asset, sum(not one.passed for one, _ in own))


def _rank(check: RuleCheck) -> tuple[bool, bool, int]:
    return not check.passed, check.actual is None, abs(check.actual or 0)


def _describe_refused(question: GateQuestion, decision: Decision) -> tuple[tuple[RefusedSignal, ...], int]:
    """Return the refused signals, and how many that might pass in part have no share computed."""
    held = question.state.positions
    places: dict[str, list[int]] = {}
    for place, signal in enumerate(question.signals):
        places.setdefault(signal.asset, []).append(place)
    refused = [ruling for ruling in decision.rulings if not ruling.approved]
    single = (ruling for ruling in refused if len(places[ruling.asset]) == 1)
    able = [one for one in single if can_shrink(one.refusals, one.asked, held.get(one.asset, 0))]
    able.sort(key=lambda one: (-abs(one.asked.target_e8 - held.get(one.asset, 0)), one.asset))
    most = min(MOST_SHARES, max(MOST_JUDGED // (QUESTIONS_A_SHARE * len(question.signals)), 1)) if able else 0
    shares = {one.asset: find_passing_share(question, places[one.asset][0]) for one in able[:most]}
    rows = tuple(
        RefusedSignal(one.asked, held.get(one.asset, 0), _list_refusals(one.checks, question), shares.get(one.asset))
        for one in refused
    )
    return rows, len(able) - len(shares)


def _list_refusals(checks: Iterable[RuleCheck], question: GateQuestion) -> tuple[RuleRefusal, ...]:
    return tuple(
        RuleRefusal(check, describe_need(check, question)) for check in checks if check.binds and not check.passed
    )


def tell_check(check: RuleCheck) -> dict[str, Any]:
    """Return a comparison for a person, with its unit."""
    told = check.told()
    values = {"actual": told["actual"], "limit": told["limit"]}
    return {"rule": check.rule, **values, "unit": RULE_UNITS[check.rule], "about": check.about}
