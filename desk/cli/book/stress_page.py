"""What the terminal shows of a book under a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...facts.book_limits import format_limit, format_value
from ...figures import count, currency, number, percent, plural
from ..console import make_text, print_plain, stdout_console

WORST_SHOWN = 10


def print_stress(facts: Mapping[str, Any]) -> None:
    """Print what a book would lose, where, and what follows."""
    print_plain(f"{facts['book']} at the close of {facts['day']}, scenario {facts['scenario']}.")
    for note in facts["assumptions"]:
        print_plain(f"  {note}")
    word = "Loss" if facts["loss"] >= 0 else "Gain"
    share = percent(abs(facts["loss_share"]), 2) if facts["loss_share"] is not None else "all"
    print_plain(f"{word} {currency(abs(facts['loss']))}, {share} of the equity of {currency(facts['equity'])}.")
    _print_names(facts["names"][:WORST_SHOWN], len(facts["names"]))
    _print_parts("sector", facts["by_sector"], facts["equity"])
    _print_parts("run or factor", facts["by_part"], facts["equity"])
    _print_binding(facts["binding"])
    _print_selling(facts)


def _print_names(rows: Sequence[Mapping[str, Any]], whole: int) -> None:
    shown = [
        [row["symbol"], row["sector"], percent(row["weight"], 2), percent(row["move"], 1), currency(row["loss"]),
         number(row["days"], 1)]
        for row in rows
    ]  # fmt: skip  # a table
    print_plain(f"The largest losses, of {plural(whole, 'position')}:")
    _print_table(("symbol", "sector", "weight", "move", "loss", "days to sell"), shown, words=2)


def _print_parts(head: str, parts: Mapping[str, float], equity: float) -> None:
    rows = [
        [name, currency(loss), percent(loss / equity, 2) if equity > 0 else number(None)]
        for name, loss in parts.items()
    ]
    _print_table((head, "loss", "of equity"), rows, words=1)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> None:
    """Print a table whose first columns are words, and whose others are numbers."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < words else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(make_text, row))
    stdout_console().print(table)


def _print_binding(rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        print_plain("No rule on the whole book fails afterwards.")
        return
    print_plain("Rules on the whole book that fail afterwards, so that increases are refused:")
    for row in rows:
        actual, limit = format_value(row["rule"], row["actual"]), format_limit(row["rule"], row["limit"])
        about = f" for {row['about']}" if row["about"] else ""
        held = "" if row["new"] else "; it fails already"
        halts = "; the book halts itself at that close" if row["rule"] == "max_drawdown" else ""
        said = f"{actual} against {limit} {row['unit']}{about}"
        print_plain(f"  {row['rule'].replace('_', ' ')}: {said}{held}{halts}")


def _print_selling(facts: Mapping[str, Any]) -> None:
    days = facts["days_to_sell_most"]
    if days is None:
        print_plain("Too much of the book has no known volume to say when 90 % of it is sold.")
    else:
        print_plain(f"90 % of the book is sold after {plural(days, 'day')}, at a tenth of each name's usual volume.")
    if facts["unsold"]:
        print_plain(f"Without a known volume: {count(len(facts['unsold']))} names, such as {facts['unsold'][0]}.")
