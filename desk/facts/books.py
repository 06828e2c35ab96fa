"""The facts of a paper book and of its steps, for tables and programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..figures import count, currency, plural

if TYPE_CHECKING:
    from ...campaign import BookFlow, BookOrder, BookStep
    from ...ledger import Ledger
    from ...risk import Mode

STEP_COLUMNS = (
    "day", "window", "evidence", "equity", "ungated_equity", "flow", "pnl", "trading_costs", "borrow_costs", "gross",
    "net", "turnover", "fills", "approved", "refused", "refusals", "mode", "notes",
)  # fmt: skip  # a table
MOST_NAMED = 5
"""Symbols that are named under a rule."""
MODE_WORDS = {"active": "", "reducing": "; held to reductions", "halted": "; halted"}
RETIRED = "what it accepted is retired"


def tell_step(one: BookStep) -> dict[str, Any]:
    """Return a step as plain facts; money in the prices' currency, exposures as shares of equity.

    `turnover` is what was bought and sold as a share of equity at the close. `evidence` is "forward" where the step was
    on record before the session that it is for, else "late".
    """
    weights = one.account.weights().values()
    rulings = one.decision["rulings"]
    traded = math.fsum(abs(fill.shares * fill.price) for fill in one.fills)
    rules = dict(sorted(count_refusals(one).items()))
    facts = (
        one.day,
        one.window,
        "late" if one.late else "forward",
        one.account.equity,
        one.ungated.equity,
        one.flow,
        one.account.pnl,
        math.fsum(fill.cost for fill in one.fills),
        one.account.borrow,
        math.fsum(abs(weight) for weight in weights),
        math.fsum(weights),
        traded / one.account.equity if one.account.equity > 0 else None,
        len(one.fills),
        sum(ruling["approved"] for ruling in rulings),
        sum(not ruling["approved"] for ruling in rulings),
        "; ".join(f"{rule} {times}" for rule, times in rules.items()),
        one.mode,
        "; ".join(list_notes(one)),
    )
    return dict(zip(STEP_COLUMNS, facts, strict=True))


def list_notes(one: BookStep) -> list[str]:
    """Return what was odd about a step, for a person."""
    notes = [f"{old} is {new} now" for old, new in one.renamed.items()]
    notes += [
        f"the last price of {symbol} was corrected from {was:g} to {now:g}, which is profit or loss"
        for symbol, was, now in one.corrections
    ]
    if one.held_back:
        notes.append(f"{plural(len(one.held_back), 'increase')} dropped, since more than half of the equity came in")
    if one.unpaid:
        notes.append(f"{plural(len(one.unpaid), 'withdrawal')} not paid yet, since the book cannot sell for it")
    if one.revised:
        notes.append(f"the panel lacks the day of the step before: {one.revised[0]} ({one.revised[1]})")
    return notes


def say_step(one: BookStep) -> str:
    """Return a step in one line for a person."""
    facts = tell_step(one)
    paid = f", {currency(one.flow, sign=True)} paid in" if one.flow else ""
    late = "; late: recorded after its session had begun" if one.late else ""
    return (
        f"{one.day}: equity {currency(facts['equity'])}{paid}, {plural(facts['fills'], 'fill')}; for "
        f"{one.decided_for} {count(facts['approved'])} approved, {count(facts['refused'])} refused"
        f"{late}{MODE_WORDS[one.mode]}{''.join(f'; {note}' for note in list_notes(one))}"
    )


def count_refusals(one: BookStep) -> dict[str, int]:
    """Return how many targets of a step each rule refused."""
    return dict(Counter(rule for ruling in one.decision["rulings"] for rule in ruling["refusals"]))


@dataclass(frozen=True)
class StepLine:
    """What a summary of a book needs of one step: a hundredth of its record.

    Attributes
    ----------
    facts
        The step as `tell_step` gives it.
    fill_costs, borrow
        Money that was paid.
    refusals
        How many targets each rule refused.
    traded, left_out
        The runs or factors that were traded, and why others were not.
    taken
        Keys of the flows and of the orders that the step took in.
    """

    facts: Mapping[str, Any]
    fill_costs: float
    borrow: float
    refusals: Mapping[str, int]
    traded: tuple[str, ...]
    left_out: Mapping[str, str]
    taken: Mapping[str, Sequence[Sequence[Any]]]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> StepLine:
        """Read the record of a step."""
        from ...campaign import read_step

        one = read_step(body)
        taken = {kind: [row[:1] for row in body[kind]] for kind in ("flows", "orders")}
        costs = math.fsum(fill.cost for fill in one.fills)
        library = one.library
        return cls(
            tell_step(one), costs, one.account.borrow, count_refusals(one), tuple(library["books"]),
            dict(library["left_out"]), taken,
        )  # fmt: skip  # a table


def summarise_book(
    name: str,
    lines: Sequence[StepLine],
    last: BookStep | None,
    waiting: Sequence[BookFlow] = (),
    ordered: Sequence[BookOrder] = (),
) -> dict[str, Any]:
    """Return a book as plain facts; `waiting` is money, and `ordered` what people ordered, that no step has taken in.

    `unpaid` of a waiting flow says that the last step could not pay it.

    `holdings` are shares of equity, `shares` are numbers of shares.
    """
    flows = [one.facts["flow"] for one in lines]
    refusals: Counter[str] = Counter()
    for one in lines:
        refusals.update(one.refusals)
    windows = Counter(one.facts["window"] or "later" for one in lines)
    return {
        "book": name,
        "steps": len(lines),
        "first_day": lines[0].facts["day"] if lines else None,
        "last": dict(lines[-1].facts) if lines else None,
        "forward_days": sum(one.facts["evidence"] == "forward" for one in lines),
        "gated": _measure([one.facts["equity"] for one in lines], flows),
        "ungated": _measure([one.facts["ungated_equity"] for one in lines], flows),
        "days_by_window": dict(sorted(windows.items())),
        "costs": math.fsum(one.fill_costs for one in lines),
        "borrow_costs": math.fsum(one.borrow for one in lines),
        "flows": math.fsum(flows),
        "waiting_flows": [{**asdict(flow), "unpaid": bool(last and flow.key in last.unpaid)} for flow in waiting],
        "waiting_orders": [asdict(order) for order in ordered],
        "refusals_by_rule": dict(sorted(refusals.items())),
        "last_refusals": list_refusals(last) if last else [],
        "traded": dict(last.library["books"]) if last else {},
        "decaying": list(last.library["decaying"]) if last else [],
        "left": list(_list_departures(lines)),
        "holdings": {} if last is None else dict(sorted(last.account.weights().items())),
        "shares": {} if last is None else {name: one.shares for name, one in sorted(last.account.holdings.items())},
        "for": last.decided_for if last else None,
    }


def read_book_facts(ledger: Ledger, name: str, lines: Sequence[StepLine] | None = None) -> dict[str, Any]:
    """Return a book of the ledger as plain facts; `lines` are its steps where they were read before."""
    from ...campaign import (
        find_book,
        list_flows,
        list_orders,
        list_steps,
        list_waiting_flows,
        read_step,
        read_trading_mode,
    )
    from .book_limits import describe_exposures, list_limits

    book, _ = find_book(ledger, name)
    lines = [StepLine.of(body) for body in list_steps(ledger, book)] if lines is None else lines
    body, mode, ordered = read_trading_mode(ledger, book)
    last = read_step(body) if body else None
    waiting = list_waiting_flows(list_flows(ledger, book), [one.taken for one in lines])
    facts = summarise_book(name, lines, last, waiting, ordered)
    facts["state"] = _describe_state(mode, list_orders(ledger, book))
    facts["exposures"] = describe_exposures(ledger, body) if body else None
    facts["limits"] = list_limits(last) if last else []
    return facts


def _describe_state(mode: Mode, orders: Sequence[BookOrder]) -> dict[str, Any]:
    """Return what may pass once all orders are taken in, and the last order; None where nobody gave one.

    `by_itself` is True where a limit of the policy holds the book, and not the order.
    """
    last = orders[-1] if orders else None
    by_itself = mode != "active" and (last is None or last.mode != mode)
    return {"mode": mode, "by_itself": by_itself, "order": asdict(last) if last else None}


def list_refusals(one: BookStep) -> list[dict[str, Any]]:
    """Return each rule that refused targets of a step, with the first symbols: actual value, limit, what failed."""
    from ...risk import RULE_UNITS, read_checks

    found: dict[str, list[dict[str, Any]]] = {}
    for ruling in one.decision["rulings"]:
        for check in read_checks(one.decision, ruling):
            if check.binds and not check.passed:
                told = check.told()
                named = {"symbol": ruling["asset"], **{part: told[part] for part in ("actual", "limit", "about")}}
                found.setdefault(check.rule, []).append(named)
    return [
        {"rule": rule, "refused": len(rows), "unit": RULE_UNITS[rule], "first": rows[:MOST_NAMED]}
        for rule, rows in sorted(found.items())
    ]


def _list_departures(lines: Sequence[StepLine]) -> Iterator[dict[str, str]]:
    """Yield each run or factor that a step no longer traded, with the day and the reason."""
    for before, after in pairwise(lines):
        for run in sorted({*before.traded} - {*after.traded}):
            yield {"day": after.facts["day"], "what": run, "why": after.left_out.get(run, RETIRED)}


def _measure(equity: Sequence[float], flows: Sequence[float]) -> Mapping[str, float | None]:
    """Return time-weighted return, largest drawdown and yearly Sharpe ratio of a book valued at its closes."""
    from ...portfolio import measure_book

    record = measure_book(equity, flows)
    return {"return": record.total_return, "drawdown": record.drawdown, "sharpe": record.sharpe}
