"""A step of a paper book as a pure function of its stored inputs: fills, value at the close, targets for tomorrow."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from ...execution import DecisionInputs
from ...portfolio import (
    DayPrices,
    Fill,
    PaperAccount,
    TradingTerms,
    book_fills,
    find_corrections,
    rename_keys,
    trade_day,
)
from ...risk import (
    BP,
    DAYS_OF_TURNOVER,
    UNITS_PER_EQUITY,
    BookState,
    Decision,
    Mode,
    Policy,
    SignalChange,
    SizedBook,
    Sizing,
    Standing,
    decide,
    size_book,
)
from ..book_record import BookSettings, find_unpaid, is_laxer
from ..facts import SymbolFacts, make_state
from ..targets import add_weights
from ..trade import HOLIDAY_DAYS
from .fills import list_executed

MOST_NEW_MONEY: Final = 0.5
"""Money that comes in, as a share of equity, beyond which approvals are too small a question for the new book."""


@dataclass(frozen=True)
class _Session:
    """A session of a book: what was there before it, what was filled, and the book at its close."""

    start: PaperAccount
    account: PaperAccount
    ungated: PaperAccount
    fills: tuple[Fill, ...]
    flows: list[Any]
    unpaid: list[str]
    held_back: list[str]
    mode: Mode
    recent: list[int]


def take_step(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a step from its inputs alone, as a JSON-able object: the same bytes for the same inputs."""
    prices, session = DayPrices(**inputs["prices"]), _trade_session(inputs)
    decision, sized, state = _ask_gate(inputs, session)
    executed = inputs.get("executed")
    return {
        "day": prices.day,
        "decided_for": inputs["decided_for"],
        "account": session.account.record(),
        "ungated": session.ungated.record(),
        "fills": [[fill.symbol, fill.shares, fill.price, fill.cost, fill.short_of] for fill in session.fills],
        "decision": decision.record(),
        "approved": {one.signal.asset: one.signal.target_e8 for one in decision.approved},
        "reducing": _list_reducing(decision, state),
        "asked": {signal.asset: signal.target_e8 for signal in sized.signals},
        "flows": session.flows,
        **({"unpaid": session.unpaid} if session.unpaid else {}),
        **({"executed": executed["digest"]} if executed else {}),
        "orders": inputs["orders"],
        "revised": inputs["revised"],
        "renamed": dict(prices.renamed),
        "corrections": [list(row) for row in find_corrections(session.start, prices)],
        "held_back": session.held_back,
        "mode": session.mode,
        "recent_e8": session.recent,
        "library": inputs["library"],
    }


def decide_again(inputs: Mapping[str, Any]) -> Decision:
    """Return the decision of a step, computed from its stored inputs: its `Approved`s may become orders."""
    return _ask_gate(inputs, _trade_session(inputs))[0]


def read_decision_inputs(inputs: Mapping[str, Any]) -> DecisionInputs:
    """Return what the decision of a step was made from, for another process that decides again."""
    decision, sized, state = _ask_gate(inputs, _trade_session(inputs))
    day = date.fromisoformat(decision.day)
    return DecisionInputs(sized.signals, state, read_limits(inputs), day, _standings(inputs))


def _trade_session(inputs: Mapping[str, Any]) -> _Session:
    """Take in money and orders of people, fill what was approved, and value both accounts at the close.

    Where the session was executed, its fills are those of the record.
    """
    settings = BookSettings.model_validate(inputs["settings"])
    prices = DayPrices(**inputs["prices"])
    policy = read_limits(inputs)
    start, plain = (PaperAccount.restore(inputs[part]) for part in ("account", "ungated"))
    unpaid = find_unpaid(start, inputs["flows"], policy, obey(start, inputs["mode"], inputs["orders"])[1])
    flows = [row for row in inputs["flows"] if row[0] not in unpaid]
    flow = sum_flows(flows)
    before, mode = obey(start.with_flow(flow), inputs["mode"], inputs["orders"])
    approved, held_back = choose_targets(inputs, policy, mode, flow / start.equity if start.equity > 0 else 0.0)
    if executed := inputs.get("executed"):
        account, traded = book_fills(before, list_executed(executed), prices, settings.trading)
    else:
        reducing = {prices.renamed.get(name, name) for name in inputs["reducing"]}
        account, traded = _trade(before, rename_keys(approved, prices.renamed), prices, settings.trading, reducing)
    ungated, _ = _trade(plain.with_flow(flow), rename_keys(inputs["asked"], prices.renamed), prices, settings.trading)
    recent = [*inputs["recent_e8"], _measure_turnover(traded, account)][1 - DAYS_OF_TURNOVER :]
    return _Session(start, account, ungated, traded, flows, unpaid, held_back, _halt(mode, account, policy), recent)


def read_limits(inputs: Mapping[str, Any]) -> Policy:
    """Return the policy of a step."""
    return Policy.model_validate_json(json.dumps(inputs["policy"]))


def _ask_gate(inputs: Mapping[str, Any], session: _Session) -> tuple[Decision, SizedBook, BookState]:
    """Return the gate's answer for the next session, what was asked, and the state of the book."""
    account, policy = session.account, read_limits(inputs)
    horizon, doubt, reason, evidence = inputs["sizing"]
    weights = add_weights(inputs["parts"]) if account.equity > 0 else {}  # a ruined book is closed
    day = date.fromisoformat(inputs["decided_for"])
    facts = {name: SymbolFacts(*row) for name, row in inputs["facts"].items()}
    sessions = tuple(date.fromisoformat(one) for one in inputs["sessions"])
    state = replace(make_state(account, facts, sessions), mode=session.mode, recent_e8=tuple(session.recent))
    until = day + timedelta(days=HOLIDAY_DAYS)
    sized = size_book(weights, Sizing(horizon, doubt, reason, evidence), policy, until, state.positions)
    return decide(sized.signals, state, policy, day, _standings(inputs)), sized, state


def _list_reducing(decision: Decision, state: BookState) -> list[str]:
    """Return the symbols that were approved only because they reduce."""
    return sorted(
        one.signal.asset
        for one in decision.approved
        if SignalChange(one.signal, state.positions.get(one.signal.asset, 0)).reduces
    )


def obey(account: PaperAccount, mode: Mode, orders: Iterable[Sequence[Any]]) -> tuple[PaperAccount, Mode]:
    """Return the account and the state of trading after people's orders.

    A resumed book counts its falls from where it stands, also one that only its trailing drawdown held to reductions.
    An order of one person lets no more pass than before: the book may have halted itself after it was given.
    """
    for _, order, is_signed_twice, _ in orders:
        if order == "active":
            account = replace(account, high_water=account.equity)
        mode = order if is_signed_twice or not is_laxer(order, mode) else mode
    return account, mode


def choose_targets(
    inputs: Mapping[str, Any], policy: Policy, mode: Mode, new_money: float
) -> tuple[Mapping[str, int], list[str]]:
    """Return the approved targets that are still to be filled, and the increases that new money holds back.

    Targets are shares of equity, and the gate asked how long selling them takes at the equity of that time. Where no
    limit on volume follows and much money comes in, the answer no longer holds for increases.
    """
    if policy.kill_switch or mode == "halted" or not is_current(inputs["approved_for"], inputs["prices"]["day"]):
        return {}, []
    approved: Mapping[str, int] = inputs["approved"]
    reductions = {name: approved[name] for name in inputs["reducing"]}
    if mode == "active" and new_money > MOST_NEW_MONEY and not inputs["settings"]["max_volume_share"]:
        return reductions, sorted(approved.keys() - reductions.keys())
    return (approved if mode == "active" else reductions), []


def _halt(mode: Mode, account: PaperAccount, policy: Policy) -> Mode:
    """Return the state of trading at a close: a book that has fallen too far is halted until people resume it."""
    fall = account.high_water - account.equity
    return "halted" if fall * BP > policy.max_drawdown_cap_bp * account.high_water else mode


def _measure_turnover(fills: Sequence[Fill], account: PaperAccount) -> int:
    """Return what was bought and sold, in 1e-8 of equity."""
    traded = math.fsum(abs(fill.shares * fill.price) for fill in fills)
    return round(traded / account.equity * UNITS_PER_EQUITY) if account.equity > 0 else 0


def sum_flows(flows: Iterable[Sequence[Any]]) -> float:
    """Return the money of a step's flows."""
    return math.fsum(flow[1] for flow in flows)


def is_current(decided_for: str, day: str) -> bool:
    """Return whether an approval still holds: its session may have been moved by a holiday, and by no more."""
    return not decided_for or (date.fromisoformat(day) - date.fromisoformat(decided_for)).days <= HOLIDAY_DAYS


def _trade(
    account: PaperAccount,
    targets: Mapping[str, int],
    prices: DayPrices,
    trading: TradingTerms,
    reducing: Collection[str] = (),
) -> tuple[PaperAccount, tuple[Fill, ...]]:
    shares = {name: target / UNITS_PER_EQUITY for name, target in targets.items()}
    return trade_day(account, shares, prices, trading, reducing)


def _standings(inputs: Mapping[str, Any]) -> dict[str, Standing]:
    return {name: Standing.restore(record) for name, record in inputs["standings"].items()}
