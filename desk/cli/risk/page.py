"""What the terminal shows of the gate's answer to a file of signals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...facts.book_limits import format_limit, format_value
from ...figures import count, percent, plural
from ..console import make_text, print_plain, stdout_console
from ..options import data_line

MAX_SIGNALS_SHOWN = 30
TOTALS_NOTE = (
    "Totals count each signal that is refused on its own as the worse of traded and not traded: mend those first."
)


def print_check(facts: Mapping[str, Any]) -> None:
    """Print the answer: each rule with its worst value, then what was refused and what it needs."""
    print_plain(data_line(facts["data"]))
    beside = f"beside the book {facts['book']}" if facts["book"] else "beside an empty book"
    print_plain(f"Signals for {facts['for']}, {beside}, at the close of {facts['day']}.")
    _print_rules(facts["rules"])
    for one in facts["refusals"][:MAX_SIGNALS_SHOWN]:
        _print_refused(one)
    if (more := len(facts["refusals"]) - MAX_SIGNALS_SHOWN) > 0:
        print_plain(f"and {count(more)} more refused; --json has all")
    if facts["refused"] and _blames_totals(facts["refusals"]):
        print_plain(TOTALS_NOTE)
    if facts["uncomputed"]:
        print_plain(f"The share that passes was not computed for the {count(facts['uncomputed'])} smallest changes.")
    said = f"{plural(facts['approved'], 'signal')} approved, {count(facts['refused'])} refused"
    print_plain(f"{said}, under policy {facts['policy'][:16]}.")
    for note in facts["policy_notes"]:
        print_plain(note)


def _blames_totals(refusals: list[dict[str, Any]]) -> bool:
    """Return whether a total refused a signal while another rule refused one too."""
    from ....risk import TOTAL_RULES

    rules = {rule["rule"] for one in refusals for rule in one["rules"]}
    return not rules.isdisjoint(TOTAL_RULES) and not rules.issubset(TOTAL_RULES)


def _print_rules(rules: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("rule", "worst", "limit", "unit", "symbol", "refused"):
        table.add_column(head, justify="right" if head in ("worst", "limit", "refused") else "left")
    for row in rules:
        name = make_text(row["rule"].replace("_", " "))
        if "unit" not in row:
            table.add_row(name, "", "", "binds no signal", "", "0")
            continue
        actual, limit = format_value(row["rule"], row["actual"]), format_limit(row["rule"], row["limit"])
        if row["actual"] is row["limit"] is None:
            actual = "not measured"
        about = f" ({row['about']})" if row["about"] else ""
        symbol = make_text(row["symbol"] + about if row["refused"] or row["actual"] else "")
        unit = "" if row["rule"] == "trading_state" else row["unit"]
        table.add_row(name, actual, limit, unit, symbol, count(row["refused"]))
    stdout_console().print(table)


def _print_refused(one: Mapping[str, Any]) -> None:
    held = f", held {percent(one['held'], 2)}" if one["held"] else ""
    print_plain(f"{one['symbol']} {percent(one['weight'], 2)}{held}: refused")
    needs: dict[str, list[str]] = {}
    for rule in one["rules"]:
        actual, limit = format_value(rule["rule"], rule["actual"]), format_limit(rule["rule"], rule["limit"])
        needs.setdefault(rule["needs"], []).append(f"{rule['rule'].replace('_', ' ')} {actual} against {limit}")
    for need, compared in needs.items():
        print_plain(f"  {', '.join(compared)}; to pass: {need}")
    if one["passing_share"]:
        weight = percent(one["passing_weight"], 3)
        share = percent(one["passing_share"], 1)
        print_plain(f"  {share} of the change passes with everything else as asked: a weight of {weight}")
    elif one["passing_share"] == 0:
        print_plain("  no part of the change passes with everything else as asked")
