"""From the weights of a campaign's book on the last day to a decision of the risk gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import Closing
from ..evaluation.checks import AuditRequest, ExposureAudit, audit_factors
from ..evidence.values import Computing
from ..ledger import Ledger
from ..market import Panel, find_next_session
from ..risk import (
    AUDIT_RULES,
    SEPARATOR,
    STANDING_RULES,
    UNITS_PER_BP,
    BookState,
    Decision,
    Policy,
    RiskLimits,
    SizedBook,
    Sizing,
    decide,
    measure_doubt,
    read_policy,
    read_standings,
    size_book,
)
from .facts import CENTS, SYMBOL_LISTS, bind_policy, list_sessions, read_facts

START_CENTS = 1_000_000_00
"""Equity of a campaign's paper book, in cents; exposures are shares of it."""
HOLIDAY_DAYS = 5
"""Calendar days after the session of a decision up to which its signals may be acted on: holidays are not known."""
RECENT_DAYS, MIN_WEEKDAY_SHARE = 250, 0.2
"""A weekday counts as a trading day if it has a fifth as many of the last 250 days as the most frequent weekday;
special sessions have fewer."""
BOUNDS_NOTE = (
    "one standard error of the combination's RankIC on the search days, on which its factors were chosen; "
    "on later windows the error is larger and the RankIC mostly lower, so they are too narrow to be a forecast"
)


@dataclass(frozen=True)
class Trade:
    """What the risk gate was asked, and its answer.

    Attributes
    ----------
    decision
        The answer.
    book
        The signals, and the share of the book that the policy has room for.
    weights
        What the backtest would hold, as shares of equity.
    doubt_e8
        Relative standard error of the forecast's search RankIC in 1e-8, which sets the bounds.
    notes
        Limits of the campaign file that are looser than the policy of the workspace, which holds; symbols of the policy
        that the panel does not have.
    """

    decision: Decision
    book: SizedBook
    weights: Mapping[str, float]
    doubt_e8: int
    notes: tuple[str, ...] = ()


def trade(
    closing: Closing, panel: Panel, asked: RiskLimits, ledger: Ledger, computing: Computing | None = None
) -> Trade | None:
    """Ask the risk gate for the positions of the panel's last day, for an empty book; None without a combination.

    The weights are those that the backtest holds. The policy is the workspace's, which the campaign file may tighten.
    With `computing`, the attributes that it names are audited first.
    """
    if closing.targets is None or closing.search is None:
        return None
    sheet = closing.search
    error = abs(sheet.rank_ic / sheet.t) if sheet.t else float("nan")
    sizing = Sizing(
        sheet.horizon_days,
        measure_doubt(sheet.rank_ic, error),
        describe_combination([part.factor_id for part in closing.parts]),
        SEPARATOR.join(closing.evidence),
    )
    policy, notes = read_policy(ledger.workspace).tightened(asked)
    if computing is not None:
        audit_evidence(ledger, computing, policy, closing.evidence)
    weights = {name: float(weight) for name, weight in zip(panel.symbols, closing.targets, strict=True) if weight}
    asked_gate = ask_gate(weights, sizing, policy, panel, ledger)
    return replace(asked_gate, notes=(*notes, *asked_gate.notes))


def audit_evidence(
    ledger: Ledger, computing: Computing, policy: Policy, evidence: Sequence[str], run: str = "", *, again: bool = False
) -> list[ExposureAudit]:
    """Audit the evidence for the attributes of a policy, once; return the new audits. None are named, none are made.

    Factors without a run are recorded under `run`.
    """
    bound, _ = bind_policy(policy, computing.panel)
    lists = {name: getattr(bound, name) for name in SYMBOL_LISTS}
    return audit_factors(ledger, computing, AuditRequest(tuple(evidence), policy.audited, lists, run, again))


def describe_combination(names: Sequence[str]) -> str:
    """Return the reason of a signal, from the ids of what is combined."""
    return f"combination of {', '.join(names)}"


def ask_gate(
    weights: Mapping[str, float],
    sizing: Sizing,
    policy: Policy,
    panel: Panel,
    ledger: Ledger,
    held: Mapping[str, int] = MappingProxyType({}),
) -> Trade:
    """Size a book for the trading day after the panel's last, and ask the risk gate for it.

    What stands behind the signals is read from the ledger. `held` are exposures in 1e-8 of equity; without any it is a
    new paper book.
    """
    day = next_trading_day(panel.dates, panel.calendar)
    policy, notes = bind_policy(policy, panel)
    book = size_book(weights, sizing, policy, day + timedelta(days=HOLIDAY_DAYS), held)
    facts = read_facts(panel, with_styles=policy.style_cap_bp is not None)
    equity = START_CENTS / CENTS
    state = BookState(
        held,
        {name: one.at(equity) for name, one in facts.items()},
        equity=START_CENTS,
        high_water=START_CENTS,
        sessions=list_sessions(panel),
    )
    known = read_standings(ledger, sizing.evidence)
    decision = decide(book.signals, state, policy, day, known)
    return Trade(decision, book, weights, sizing.doubt_e8, notes)


def next_trading_day(dates: NDArray[np.datetime64], calendar: str = "") -> date:
    """Return the first trading day after the last of `dates`: by weekday, or the next session of an exchange.

    Parameters
    ----------
    dates : array, shape (days,)
        Trading days, ascending; the last 250 decide which weekdays are traded. Holidays are unknown.
    calendar : str
        An exchange, as `Panel.calendar` names it; its sessions decide instead.
    """
    if calendar:
        return find_next_session(calendar, _to_date(dates[-1]))
    weekdays = [_to_date(day).weekday() for day in dates[-RECENT_DAYS:]]
    counts = np.bincount(weekdays, minlength=7)
    coming = [_to_date(dates[-1]) + timedelta(days=ahead) for ahead in range(1, 8)]
    return next(day for day in coming if counts[day.weekday()] >= MIN_WEEKDAY_SHARE * counts.max())


def summary(trade: Trade | None, last: np.datetime64) -> dict[str, Any] | None:
    """Return a report's summary of a decision; `last` is the panel's last day."""
    if trade is None:
        return None
    decision = trade.decision
    return {
        "id": decision.id,
        "day": decision.day,
        "after": _to_date(last).isoformat(),
        "bounds": BOUNDS_NOTE,
        "approved": len(decision.approved),
        "refused": len(decision.rulings) - len(decision.approved),
        "doubt_e8": trade.doubt_e8,
        "scale": round(float(trade.book.scale), 6),
        "rounding_bp": round(trade.book.rounding_e8(trade.weights) / UNITS_PER_BP, 8),
        "policy_notes": list(trade.notes),
        "book": [check.told() for check in decision.book],
        "evidence": _list_evidence_checks(decision),
        "standings": dict(decision.standings),
        "decisions": [_describe_ruling(ruling.record()) for ruling in decision.rulings],
    }


def _list_evidence_checks(decision: Decision) -> list[dict[str, Any]]:
    """Return the rules of evidence once: all signals name the same."""
    checks = decision.rulings[0].checks if decision.rulings else ()
    return [check.record() for check in checks if check.rule in (*STANDING_RULES, *AUDIT_RULES)]


def _describe_ruling(ruling: dict[str, Any]) -> dict[str, Any]:
    signal = ruling["signal"]
    bounds = {f"{name}_bp": signal[f"{name}_e8"] / UNITS_PER_BP for name in ("target", "lo", "hi")}
    return {"asset": ruling["asset"], **bounds, "approved": ruling["approved"], "refusals": ruling["refusals"]}


def _to_date(value: np.datetime64) -> date:
    day: date = value.astype("datetime64[D]").astype(object)
    return day
