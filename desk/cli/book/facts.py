"""The facts of a paper book and of its steps, for tables and programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...figures import count, number, plural

if TYPE_CHECKING:
    from ....campaign import BookFlow, BookOrder, BookStep
    from ....ledger import Ledger

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
    rules = count_refusals([one])
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
    paid = f", {number(one.flow, 2, sign=True)} paid in" if one.flow else ""
    return (
        f"{one.day}: equity {number(facts['equity'], 2)}{paid}, {plural(facts['fills'], 'fill')}; for "
        f"{one.decided_for} {count(facts['approved'])} approved, {count(facts['refused'])} refused"
        f"{'; late' if one.late else ''}{MODE_WORDS[one.mode]}{''.join(f'; {note}' for note in list_notes(one))}"
    )


def count_refusals(steps: Sequence[BookStep]) -> dict[str, int]:
    """Return how many targets each rule refused."""
    rules = Counter(rule for one in steps for ruling in one.decision["rulings"] for rule in ruling["refusals"])
    return dict(sorted(rules.items()))


def summarise_book(
    name: str, steps: Sequence[BookStep], waiting: Sequence[BookFlow] = (), ordered: Sequence[BookOrder] = ()
) -> dict[str, Any]:
    """Return a book as plain facts; `waiting` is money, and `ordered` what people ordered, that no step has taken in.

    `unpaid` of a waiting flow says that the last step could not pay it.

    `holdings` are shares of equity, `shares` are numbers of shares.
    """
    last = steps[-1] if steps else None
    flows = [one.flow for one in steps]
    return {
        "book": name,
        "steps": len(steps),
        "first_day": steps[0].day if steps else None,
        "last": tell_step(last) if last else None,
        "forward_days": sum(not one.late for one in steps),
        "gated": _measure([one.account.equity for one in steps], flows),
        "ungated": _measure([one.ungated.equity for one in steps], flows),
        "days_by_window": dict(sorted(Counter(one.window or "later" for one in steps).items())),
        "costs": math.fsum(fill.cost for one in steps for fill in one.fills),
        "borrow_costs": math.fsum(one.account.borrow for one in steps),
        "flows": math.fsum(flows),
        "waiting_flows": [{**asdict(flow), "unpaid": bool(last and flow.key in last.unpaid)} for flow in waiting],
        "waiting_orders": [asdict(order) for order in ordered],
        "refusals_by_rule": count_refusals(steps),
        "last_refusals": list_refusals(last) if last else [],
        "traded": dict(last.library["books"]) if last else {},
        "decaying": list(last.library["decaying"]) if last else [],
        "left": list(_list_departures(steps)),
        "holdings": {} if last is None else dict(sorted(last.account.weights().items())),
        "shares": {} if last is None else {name: one.shares for name, one in sorted(last.account.holdings.items())},
        "for": last.decided_for if last else None,
    }


def read_book_facts(ledger: Ledger, name: str) -> tuple[dict[str, Any], list[BookStep]]:
    """Return a book of the ledger as plain facts, and its steps."""
    from ....campaign import (
        find_book,
        list_flows,
        list_orders,
        list_steps,
        list_waiting_flows,
        list_waiting_orders,
        read_step,
    )

    book, _ = find_book(ledger, name)
    bodies = list_steps(ledger, book)
    steps = [read_step(body) for body in bodies]
    waiting = list_waiting_flows(list_flows(ledger, book), bodies)
    ordered = list_waiting_orders(list_orders(ledger, book), bodies)
    return summarise_book(name, steps, waiting, ordered), steps


def list_refusals(one: BookStep) -> list[dict[str, Any]]:
    """Return each rule that refused targets of a step, with the first symbols: actual value, limit, what failed."""
    from ....risk import read_checks

    found: dict[str, list[dict[str, Any]]] = {}
    for ruling in one.decision["rulings"]:
        for check in read_checks(one.decision, ruling):
            if check.binds and not check.passed:
                told = check.told()
                named = {"symbol": ruling["asset"], **{part: told[part] for part in ("actual", "limit", "about")}}
                found.setdefault(check.rule, []).append(named)
    return [{"rule": rule, "refused": len(rows), "first": rows[:MOST_NAMED]} for rule, rows in sorted(found.items())]


def _list_departures(steps: Sequence[BookStep]) -> Iterator[dict[str, str]]:
    """Yield each run or factor that a step no longer traded, with the day and the reason."""
    for before, after in pairwise(steps):
        for run in sorted(before.library["books"].keys() - after.library["books"].keys()):
            yield {"day": after.day, "what": run, "why": after.library["left_out"].get(run, RETIRED)}


def _measure(equity: Sequence[float], flows: Sequence[float]) -> Mapping[str, float | None]:
    """Return time-weighted return, largest drawdown and yearly Sharpe ratio of a book valued at its closes."""
    from ....portfolio import measure_book

    record = measure_book(equity, flows)
    return {"return": record.total_return, "drawdown": record.drawdown, "sharpe": record.sharpe}
