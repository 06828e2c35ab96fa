"""From the last step of a book to the orders of its next session.

The step is decided again from its stored inputs, since only the risk gate makes an `Approved`. What people ordered of
the book, money that comes in, renamed symbols and prices that were adjusted anew are taken in as the step of the
session will take them in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime
from functools import cached_property
from typing import Any, Final

import numpy as np

from ...execution import (
    PRICE_UNITS,
    SHARE_PARTS,
    ChildOrder,
    ExecutionError,
    HeldShares,
    LeftOut,
    OrderTerms,
    ParentOrder,
    ScheduleSettings,
    read_execution_policy,
    size_orders,
)
from ...execution.schedule import Algorithm, CostModel
from ...ledger import Ledger, canonical_json
from ...market import Panel
from ...portfolio import DayPrices, PaperAccount, carry_over
from ...risk import Approved, Decision, Mode, Policy, read_policy
from ..book import BookData, list_kept_days, refuse_data
from ..book_record import (
    STEP_EVENT,
    BookSettings,
    find_book,
    find_unpaid,
    list_flows,
    list_orders,
    list_steps,
    list_waiting_flows,
    list_waiting_orders,
)
from ..facts import SYMBOL_LISTS, bind_policy, read_prices, trace_holdings
from .cutting import (
    NamePast,
    ParentCut,
    SessionHours,
    cut_parents,
    list_children,
    make_schedule_rules,
    measure_volatility,
)
from .step import choose_targets, decide_again, is_current, obey, sum_flows

PRICE_PLACES: Final = ("close", "day", "before", "before_day")
"""The last two closes before a session with their days, as a plan keeps them."""
EXPECTED_PLACES: Final = ("expected_e4", "sd_e4", "value_e4")


@dataclass(frozen=True)
class PlanRequest:
    """What a person asks for when a session is executed.

    Attributes
    ----------
    venue
        Where the orders go.
    lot_shares
        Shares of a lot.
    located
        Shares of each symbol that a lender has promised; None where there is no list.
    schedule
        How orders are cut: "market" sends each as one order at the opening.
    """

    venue: str
    lot_shares: int = 1
    located: Mapping[str, int] | None = None
    schedule: Algorithm = "market"


@dataclass(frozen=True)
class BookClose:
    """A book after its last step, in the units of a panel's prices.

    Attributes
    ----------
    book, settings
        Its id and settings.
    step, inputs
        The record of its last step, and what that had read.
    session, row
        The next session, and the row of it in the panel; None where the panel ends before it.
    decision
        The decision of the step, made again.
    policy
        The policy of the workspace, for the panel's symbols.
    mode
        What may pass, after what people ordered.
    targets
        Share of equity in 1e-8 of each symbol that is to be traded.
    held, prices
        Shares and last closes of each symbol, as it was called at the step.
    equity
        At these closes, with the money that comes in before the session.
    renamed
        The panel's symbol of each one that it calls otherwise.
    pasts
        Usual volume and volatility of each symbol.
    terms
        How a schedule cuts orders, as the workspace has it.
    """

    book: str
    settings: BookSettings
    step: Mapping[str, Any]
    inputs: Mapping[str, Any]
    session: date
    row: int | None
    decision: Decision
    policy: Policy
    mode: Mode
    targets: Mapping[str, int]
    held: Mapping[str, float]
    prices: Mapping[str, tuple[float, str, float, str]]
    equity: float
    renamed: Mapping[str, str]
    pasts: Mapping[str, NamePast]
    terms: ScheduleSettings

    @property
    def approved(self) -> list[Approved]:
        """Return what the gate approved and may still be traded."""
        return [one for one in self.decision.approved if one.signal.asset in self.targets]


@dataclass(frozen=True)
class SessionPlan:
    """The orders of one session.

    Attributes
    ----------
    close
        The book before it.
    request
        What was asked for.
    spans
        Opening and closing of each part of the session, microseconds since 1970 in UTC.
    settings
        How orders were cut.
    parents, left_out
        The orders, and what became none.
    cuts
        What each parent was cut into, by its id.
    """

    close: BookClose
    request: PlanRequest
    spans: tuple[tuple[int, int], ...]
    settings: ScheduleSettings
    parents: tuple[ParentOrder, ...]
    left_out: tuple[LeftOut, ...]
    cuts: Mapping[str, ParentCut]

    @property
    def opens_us(self) -> int:
        """Return the opening, microseconds since 1970 in UTC."""
        return self.spans[0][0]

    @property
    def closes_us(self) -> int:
        """Return the close, microseconds since 1970 in UTC."""
        return self.spans[-1][1]

    @cached_property
    def children(self) -> tuple[ChildOrder, ...]:
        """Return what is sent to the venue, by time, sales first."""
        return list_children(self.parents, self.cuts)

    @property
    def expected_cost_e4(self) -> int:
        """Return what trading costs at the arrival prices under the book's terms, in 1e-4 of the currency."""
        return sum(find_cost_e4(parent, self.close.settings.bps_per_side) for parent in self.parents)

    @property
    def expected_slippage(self) -> tuple[int, int, int]:
        """Return expected spread and impact, its standard deviation, and the value that it is of, in 1e-4.

        The names' prices count as independent. Names without an estimate are left out of all three.
        """
        known = [cut.expected for cut in self.cuts.values() if cut.expected is not None]
        deviation = round(math.sqrt(sum(one.sd_e4**2 for one in known)))
        return sum(one.expected_e4 for one in known), deviation, sum(one.value_e4 for one in known)

    def record(self) -> dict[str, Any]:
        """Return the plan as a JSON-able object."""
        close = self.close
        return {
            "decided_on": close.step["day"],
            "decision": close.decision.id,
            "venue": self.request.venue,
            "lot_shares": self.request.lot_shares,
            "located": None if self.request.located is None else dict(self.request.located),
            "mode": close.mode,
            "equity_e4": round(close.equity * PRICE_UNITS),
            "opens_us": self.opens_us,
            "closes_us": self.closes_us,
            "spans": [list(span) for span in self.spans],
            "schedule": self.request.schedule,
            "schedule_settings": self.settings.model_dump(mode="json"),
            "cost_model": {one.name: one.default for one in fields(CostModel) if one.default is not MISSING},
            "expected_cost_e4": self.expected_cost_e4,
            "expected_slippage": dict(zip(EXPECTED_PLACES, self.expected_slippage, strict=True)),
            "parents": [self._record_parent(parent) for parent in self.parents],
            "left_out": [one.record() for one in self.left_out],
        }

    def _record_parent(self, parent: ParentOrder) -> dict[str, Any]:
        asset = parent.asset
        return {
            "id": parent.id,
            "asset": asset,
            "shares": parent.shares,
            "arrival_e4": parent.arrival_e4,
            "target_e8": parent.approved.signal.target_e8,
            "held_e6": round(self.close.held.get(asset, 0.0) * SHARE_PARTS),
            **dict(zip(PRICE_PLACES, self.close.prices[asset], strict=True)),
            **self.cuts[parent.id].record(),
        }


def find_cost_e4(parent: ParentOrder, cost_bp: float) -> int:
    """Return what a parent costs at its arrival price, in 1e-4 of the currency."""
    return round(abs(parent.shares) * parent.arrival_e4 * cost_bp / 1e4)


def read_close(ledger: Ledger, name: str, data: BookData, now: datetime) -> BookClose:
    """Return a book after its last step, with its decision made again.

    Raises
    ------
    ExecutionError
        The book has no step, the decision comes out otherwise than it is on record, or the panel has later days.
    RiskError
        There is no such book, or the panel is not the book's.
    """
    book, settings = find_book(ledger, name)
    last = ledger.events.last(book, STEP_EVENT)
    if last is None:
        raise ExecutionError(
            "The book has made no step, so nothing is approved.",
            field="NAME",
            got=name,
            hint=f"alphaloom book step {name} --panel FILE",
            code="no_steps",
        )
    step, inputs = dict(last.body), json.loads(ledger.objects.get(last.body["inputs"]))
    decision = decide_again(inputs)
    if canonical_json(decision.record()) != canonical_json(step["decision"]):
        raise ExecutionError(
            "The decision of the last step comes out otherwise than it is on record.",
            field="decision",
            got=decision.id,
            allowed=step["decision"]["id"],
            hint=f"Nothing was ordered. alphaloom book replay {name} says what differs.",
            code="decision_differs",
            exit_code=1,
        )
    return _measure_close(ledger, (book, settings), (step, inputs, decision), data, now)


def _measure_close(
    ledger: Ledger,
    found: tuple[str, BookSettings],
    decided: tuple[Mapping[str, Any], Mapping[str, Any], Decision],
    data: BookData,
    now: datetime,
) -> BookClose:
    """Return the book in the units of a panel, with what people gave it before the session."""
    (book, settings), (step, inputs, decision), panel = found, decided, data.panel
    rows = data.list_new_rows(step["day"])
    row = rows[0] if rows else None
    if rows:
        refuse_data(data, rows[:1], step, now.date())
    session = date.fromisoformat(step["decided_for"] if row is None else str(panel.dates[row]))
    start = PaperAccount.restore(step["account"])
    days = {name: one.day for name, one in start.holdings.items()}
    days = {**dict.fromkeys(step["approved"], step["day"]), **days}
    renamed = trace_holdings(panel, days)
    policy = _bind_old(bind_policy(read_policy(ledger.workspace), panel)[0], renamed)
    flows, orders = _read_waiting(ledger, book, session.isoformat())
    unpaid = find_unpaid(start, flows, policy, obey(start, step["mode"], orders)[1])
    flow = sum_flows([one for one in flows if one[0] not in unpaid])
    mode = obey(start, step["mode"], orders)[1]
    asked = {
        "approved_for": step["decided_for"],
        "prices": {"day": session.isoformat()},
        "approved": step["approved"],
        "reducing": step["reducing"],
        "settings": settings.model_dump(mode="json"),
    }
    targets, _ = choose_targets(asked, policy, mode, flow / start.equity if start.equity > 0 else 0.0)
    last = _find_day(panel, step["day"])
    held, closes, equity = _price(panel, last, start, sorted(days), (step, renamed))
    volatilities = measure_volatility(panel, last, {name: renamed.get(name, name) for name in closes})
    return BookClose(
        book=book,
        settings=settings,
        step=step,
        inputs=inputs,
        session=session,
        row=row,
        decision=decision,
        policy=policy,
        mode=mode,
        targets=targets,
        held=held,
        prices=closes,
        equity=equity + flow,
        renamed=renamed,
        pasts={name: NamePast(_count_usual(inputs, name, closes), volatilities[name]) for name in closes},
        terms=read_execution_policy(ledger.workspace).schedule,
    )


def _count_usual(
    inputs: Mapping[str, Any], name: str, closes: Mapping[str, tuple[float, str, float, str]]
) -> int | None:
    """Return the shares that are traded of a symbol on a usual day; None where that is not known."""
    value = inputs["facts"][name][3] if name in inputs["facts"] else None
    return None if value is None else int(value / closes[name][0])


def _bind_old(policy: Policy, renamed: Mapping[str, str]) -> Policy:
    """Return a policy whose lists hold for symbols as they were called at the step, too."""
    changes = {}
    for name in SYMBOL_LISTS:
        listed: tuple[str, ...] = getattr(policy, name)
        added = {old for old, new in renamed.items() if new in listed} - {*listed}
        if added:
            changes[name] = tuple(sorted({*listed, *added}))
    return policy.model_copy(update=changes) if changes else policy


def _find_day(panel: Panel, day: str) -> int:
    """Return the row of the day of the last step."""
    row = int(np.searchsorted(panel.dates, np.datetime64(day, "D")))
    if row < panel.days and str(panel.dates[row]) == day:
        return row
    raise ExecutionError(
        "The panel lacks the day of the book's last step.",
        field="--panel",
        got=f"{panel.dates[0]} to {panel.dates[-1]}",
        allowed=f"a panel with {day}",
        hint="Nothing was ordered.",
        code="execute_panel",
    )


def _read_waiting(ledger: Ledger, book: str, session: str) -> tuple[list[Any], list[Any]]:
    """Return the money and the orders of people that the step of a session takes in, as its inputs have them."""
    flows, orders = list_flows(ledger, book), list_orders(ledger, book)
    if not flows and not orders:
        return [], []
    done = list_steps(ledger, book)
    return (
        [[one.key, one.amount, one.digest] for one in list_waiting_flows(flows, done) if one.precedes(session)],
        [
            [one.key, one.mode, one.is_signed_twice, one.digest]
            for one in list_waiting_orders(orders, done)
            if one.precedes(session)
        ],
    )


def _price(
    panel: Panel,
    row: int,
    account: PaperAccount,
    names: Sequence[str],
    last: tuple[Mapping[str, Any], Mapping[str, str]],
) -> tuple[dict[str, float], dict[str, tuple[float, str, float, str]], float]:
    """Return shares and last two closes by symbol, and the equity at them, in the units of a panel."""
    step, renamed = last
    known = sorted({renamed.get(name, name) for name in names})
    day = DayPrices(**read_prices(panel, row, known, list_kept_days(step), renamed))
    carried = carry_over(account, day)
    closes = {}
    for name in names:
        there = renamed.get(name, name)
        before, before_day = day.previous.get(there, (0.0, ""))
        if there in day.closes:
            closes[name] = (day.closes[there], day.day, before, before_day)
        elif before:
            closes[name] = (before, before_day, 0.0, "")
    worth = account.cash + sum(one.shares * one.price for one in carried.values())
    return {name: one.shares for name, one in carried.items()}, closes, worth


def plan_session(close: BookClose, request: PlanRequest, hours: SessionHours) -> SessionPlan:
    """Return the orders that bring a book to its approved targets in its next session.

    Parameters
    ----------
    close
        The book before it.
    request
        What a person asks for.
    hours
        When the session is open, and from when on it is traded.
    """
    arrivals = {name: round(price[0] * PRICE_UNITS) for name, price in close.prices.items()}
    held = HeldShares(
        round(close.equity * PRICE_UNITS),
        {name: round(shares * SHARE_PARTS) for name, shares in close.held.items()},
        arrivals,
    )
    policy = close.policy
    terms = OrderTerms(
        request.lot_shares,
        [*close.step["reducing"]],
        policy.not_shortable,
        request.located,
        policy.margin_long_bp,
        policy.margin_short_bp,
        round(close.settings.bps_per_side),
    )
    parents, left_out = size_orders(close.approved, held, terms, close.session)
    rules = make_schedule_rules(request.schedule, request.lot_shares, close.terms)
    cuts, uncut = cut_parents(parents, close.pasts, hours, rules, close.terms)
    kept = tuple(one for one in parents if one.id in cuts)
    left_out = tuple(sorted((*left_out, *uncut), key=lambda row: (row.asset, row.rule)))
    return SessionPlan(close, request, hours.spans, close.terms, kept, left_out, cuts)


def restore_plan(close: BookClose, body: Mapping[str, Any], *, is_cancelled: bool = False) -> SessionPlan:
    """Return the plan that is on record, its orders made of the decision that was made again.

    Where a person cancelled all that is left of it, nothing more is sent, and the panel may have other closes.

    Raises
    ------
    ExecutionError
        The plan is of another decision, or the panel has other closes before the session than its orders were made on.
    """
    approved = {one.signal.asset: one for one in close.decision.approved}
    other = [row["asset"] for row in body["parents"] if [*close.prices.get(row["asset"], ())] != _list_prices(row)]
    if body["decision"] != close.decision.id or (other and not is_cancelled):
        raise ExecutionError(
            "The session was planned on other data.",
            field="--panel",
            got=", ".join(other[:3]) or close.decision.id,
            allowed="the panel with which the session was begun",
            hint="Nothing further was sent. Name the data with which you began; or end the rest with alphaloom orders "
            "--cancel all, and then this command again.",
            code="planned_otherwise",
            exit_code=1,
        )
    parents = tuple(
        ParentOrder(approved[row["asset"]], row["shares"], row["arrival_e4"], close.session) for row in body["parents"]
    )
    body = {**_plan_without_schedule(body), **body}
    return SessionPlan(
        close,
        PlanRequest(body["venue"], body["lot_shares"], body["located"], body["schedule"]),
        tuple((opens, closes) for opens, closes in body["spans"]),
        ScheduleSettings.model_validate_json(json.dumps(body["schedule_settings"])),
        parents,
        tuple(LeftOut(*row) for row in body["left_out"]),
        {
            one.id: ParentCut.restore({**_cut_without_schedule(body, row), **row})
            for one, row in zip(parents, body["parents"], strict=True)
        },
    )


def _plan_without_schedule(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plan lacks that was recorded before there were schedules."""
    return {"spans": [[body["opens_us"], body["closes_us"]]], "schedule": "market", "schedule_settings": {}}


def _cut_without_schedule(body: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a parent of such a plan lacks: it was one order at the opening, without an estimate."""
    past = {"day_shares": None, "volatility_bp": None}
    return {"past": past, "slices": [[body["opens_us"], abs(row["shares"])]], "expected": None}


def _list_prices(row: Mapping[str, Any]) -> list[Any]:
    return [row[place] for place in PRICE_PLACES]


def refuse_old(close: BookClose) -> None:
    """Refuse a session so late that the approvals no longer hold."""
    if not is_current(close.step["decided_for"], close.session.isoformat()):
        raise ExecutionError(
            "The approvals are too old for the panel's next day.",
            field="--panel",
            got=close.session.isoformat(),
            allowed=f"a day soon after {close.step['decided_for']}",
            hint="Step the book first: alphaloom book step.",
            code="approvals_old",
        )
