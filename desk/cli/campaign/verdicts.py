"""The outcome of a campaign as a table: what was accepted, watched and rejected, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...figures import DASH, number, p_value_text, short_id
from ...report.cards import find_deciding_step
from ...report.page import collect_notes, strength, verdict_sentence
from ..code import summarise_formula

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["print_verdicts"]

MAX_REJECTED_PRINTED = 10
VERDICT_STYLES = {"accepted": "green", "watched": "yellow", "rejected": "red"}


def print_verdicts(results: Mapping[str, Any]) -> None:
    """Print the table, what could have been proven, and how many rejected are not shown."""
    from rich.text import Text

    from ..console import stdout_console

    console = stdout_console()
    console.print(Text(verdict_sentence(results), style="bold"))
    table = _table(results)
    if table.row_count:
        console.print(table)
    for sentence in (_describe_hidden(results), str((results.get("power") or {}).get("sentence") or "")):
        if sentence:
            console.print(Text(sentence), soft_wrap=True)
    for warning in collect_notes(results, data_only=False):
        console.print(Text(f"warning: {warning}", "yellow"), soft_wrap=True)


def _table(results: Mapping[str, Any]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("factor", overflow="fold", min_width=24)
    for name in ("RankIC", "t", "on selection", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for verdict, key in (("accepted", "accepted"), ("watched", "watchlist")):
        for entry in results.get(key) or ():
            _add(table, verdict, entry)
    for entry in _strongest(results):
        _add(table, "rejected", entry)
    return table


def _strongest(results: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return sorted(results.get("rejected") or (), key=strength)[:MAX_REJECTED_PRINTED]


def _add(table: Table, verdict: str, entry: Mapping[str, Any]) -> None:
    from rich.text import Text

    metrics = entry.get("metrics") or {}
    search, selection = metrics.get("search") or {}, metrics.get("selection") or {}
    numbers = [
        number(search.get("rank_ic"), 4, sign=True),
        number(search.get("t"), 2, sign=True),
        number(selection.get("rank_ic"), 4, sign=True),
        p_value_text(selection.get("p_value")),
    ]
    name = _name(entry)
    table.add_row(Text(verdict, VERDICT_STYLES[verdict]), Text(name), *numbers, Text(_verdict_reason(entry)))


def _name(entry: Mapping[str, Any]) -> str:
    members = entry.get("members")
    return (
        f"set of {len(members)}: {', '.join(map(short_id, members))}"
        if members
        else summarise_formula(str(entry.get("text") or DASH))
    )


def _verdict_reason(entry: Mapping[str, Any]) -> str:
    reason = find_deciding_step(entry)
    if reason:
        return f"{reason.step}: {reason.message}"
    last = (entry.get("reasons") or [{}])[-1]
    return str(last.get("message") or "every step passed")


def _describe_hidden(results: Mapping[str, Any]) -> str:
    entries = results.get("rejected") or ()
    shown = {id(entry) for entry in _strongest(results)}
    hidden = [find_deciding_step(entry) for entry in entries if id(entry) not in shown]
    steps = Counter(reason.step if reason else "other" for reason in hidden)
    if not steps:
        return ""
    counted = ", ".join(f"{step} {n}" for step, n in sorted(steps.items(), key=lambda item: (-item[1], item[0])))
    return f"and {len(hidden)} more rejected ({counted}); all of them are in the report's results.json"
