"""What the terminal shows of a paper book."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....portfolio import CASH
from ...figures import count, currency, number, percent, plural
from ..console import print_plain, stdout_console

if TYPE_CHECKING:
    from ....portfolio import PositionDifference

MOST_PARTS = 8
MOST_DIFFERENCES = 25
"""Parts of the profit of one kind that are shown; `--json` has all."""


def print_book(facts: Mapping[str, Any], place: str = "") -> None:
    """Print a book; `place` is the option that names its workspace."""
    for flow in facts["waiting_flows"]:
        way = "paid in" if flow["amount"] > 0 else "to be paid out"
        amount = currency(abs(flow["amount"]))
        if flow["unpaid"]:
            print_plain(
                f"Not paid yet: {amount} {way} by {flow['by']}, of {flow['at'][:10]}. The first step pays it that may "
                "sell, or after which gross exposure and margin stay within the policy."
            )
            continue
        print_plain(f"Waiting for the first day after {flow['at'][:10]}: {amount} {way} by {flow['by']}.")
    for order in facts["waiting_orders"]:
        print_plain(f"Waiting for the next step: {order['mode']}, by {order['by']}: {order['reason']}.")
    if facts["last"] is None:
        print_plain(f"{facts['book']} has made no step: alphaloom book step {facts['book']} --panel FILE{place}")
        return
    last = facts["last"]
    days = f"{plural(facts['steps'], 'step')} from {facts['first_day']} to {last['day']}"
    print_plain(f"{facts['book']}: {days}, {count(facts['forward_days'])} of them on record before their session.")
    if last["mode"] != "active":
        what = "is halted: nothing is traded" if last["mode"] == "halted" else "may only reduce what it holds"
        print_plain(f"The book {what}. Two people resume it: alphaloom book resume {facts['book']}{place}")
    _print_order(facts["state"])
    _print_figures(facts)
    if in_sample := facts["days_by_window"].get("search", 0):
        print_plain(f"{count(in_sample)} of these days are search days, on which the factors were found: expect less.")
    print_plain(
        f"Equity {currency(last['equity'])}; gross {percent(last['gross'], 1)}, net {percent(last['net'], 1)} of it; "
        f"{count(len(facts['holdings']))} held; costs so far {currency(facts['costs'])} of trading and "
        f"{currency(facts['borrow_costs'])} of borrowing."
    )
    if facts["flows"]:
        print_plain(f"Paid in less paid out: {currency(facts['flows'])}; the returns are without it (time-weighted).")
    _print_holdings(facts)
    _print_library(facts)
    _print_refusals(facts)
    if "attribution" in facts:
        _print_attribution(facts["attribution"])
    print_plain(f"For {facts['for']}: {count(last['approved'])} targets approved, {count(last['refused'])} refused.")


def _print_order(state: Mapping[str, Any]) -> None:
    """Print who ordered what holds, or will hold from the next step on, where not everything may pass."""
    order = state["order"]
    if state["mode"] != "active" and order and not state["by_itself"]:
        people = " and ".join(filter(None, (order["by"], order["second"])))
        print_plain(f"{people} ordered it on {order['at'][:10]}: {order['reason']}")


def _print_figures(facts: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("", "return", "largest drawdown", "Sharpe, yearly"):
        table.add_column(head, justify="left" if not head else "right")
    for kind in ("gated", "ungated"):
        row = facts[kind]
        figures = [percent(row["return"], 2), percent(row["drawdown"], 2), number(row["sharpe"], 2)]
        table.add_row(kind, *figures)
    stdout_console().print(table)


def _print_holdings(facts: Mapping[str, Any]) -> None:
    rows = sorted(facts["holdings"].items(), key=lambda row: (-abs(row[1]), row[0]))
    named = ", ".join(f"{name} {percent(weight, 1)}" for name, weight in rows[:MOST_PARTS])
    more = len(rows) - MOST_PARTS
    rest = f", and {count(more)} more (--json has all, with their shares)" if more > 0 else ""
    if rows:
        print_plain(f"Largest, as shares of equity: {named}{rest}.")


def _print_library(facts: Mapping[str, Any]) -> None:
    if facts["decaying"]:
        print_plain(f"Decaying, so what rests on it has half of its weight: {', '.join(facts['decaying'])}.")
    for row in facts["left"]:
        print_plain(f"Left on {row['day']}: {row['what']}, because {row['why']}.")
    if not facts["traded"]:
        print_plain("Nothing is traded any more: what is held is being sold.")


def _print_refusals(facts: Mapping[str, Any]) -> None:
    rules = ", ".join(f"{rule.replace('_', ' ')} {count(times)}" for rule, times in facts["refusals_by_rule"].items())
    print_plain(f"Refusals by rule, over all steps: {rules or 'none'}.")
    if facts["last_refusals"]:
        print_plain("Refusals of the last step, actual value against limit (exposures in basis points of equity):")
    for row in facts["last_refusals"]:
        named = "; ".join(_name_refusal(one) for one in row["first"])
        more = f"; and {count(row['refused'] - len(row['first']))} more" if row["refused"] > len(row["first"]) else ""
        print_plain(f"  {row['rule'].replace('_', ' ')}: {named}{more}")


def _name_refusal(one: Mapping[str, Any]) -> str:
    """Return a symbol with what the rule compared; exposures are in basis points of equity."""
    actual, limit = (f"{one[part]:g}" if one[part] is not None else "none" for part in ("actual", "limit"))
    about = f", for {one['about']}" if one["about"] else ""
    return f"{one['symbol']} {actual} against {limit}{about}"


def _print_attribution(profit: Mapping[str, Any]) -> None:
    """Print where the profit came from: the largest parts of each kind."""
    print_plain(
        f"Profit {currency(profit['total'])}: {currency(sum(profit['by_symbol'].values()))} before costs, less "
        f"{currency(profit['trading_costs'])} of trading and {currency(profit['borrow_costs'])} of borrowing."
    )
    for kind in ("run", "factor", "sector", "symbol"):
        rows = sorted(profit[f"by_{kind}"].items(), key=lambda row: -abs(row[1]))
        named = ", ".join(f"{name} {currency(money, sign=True)}" for name, money in rows[:MOST_PARTS])
        rest = f", and {count(len(rows) - MOST_PARTS)} more" if len(rows) > MOST_PARTS else ""
        print_plain(f"  by {kind}: {named or 'none'}{rest}")


def print_differences(
    found: Sequence[PositionDifference], beyond: Sequence[PositionDifference], day: str, tolerance: float
) -> None:
    """Print where a broker differs from the book: what is beyond the tolerance by name, the rest as a number."""
    largest = sorted(beyond, key=lambda one: (-abs(math.inf if one.value is None else one.value), one.symbol))
    for one in largest[:MOST_DIFFERENCES]:
        what = "cash" if one.symbol == CASH else one.symbol
        worth = (
            "the book has no price of it"
            if one.value is None
            else f"{currency(one.value, sign=True)}, {number(one.equity_bp, 2)} bp of equity"
        )
        print_plain(f"{what}: the book has {number(one.book, 4)}, the broker {number(one.broker, 4)} ({worth})")
    if len(beyond) > MOST_DIFFERENCES:
        print_plain(f"and {count(len(beyond) - MOST_DIFFERENCES)} more: --json has all")
    within = len(found) - len(beyond)
    print_plain(
        f"At the close of {day}: {plural(len(beyond), 'difference')} beyond {tolerance:g} bp of equity, "
        f"{count(within)} within."
    )
