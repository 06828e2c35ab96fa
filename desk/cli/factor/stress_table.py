"""Where a factor breaks, on the terminal: a line for each stress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...figures import number, percent, plural
from ..console import stdout_console

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["STRESS_GROUP_TITLES", "format_share_kept", "print_stress"]

STRESS_GROUP_TITLES = {
    "history": "historical stretches, against all other days",
    "regime": "synthetic regimes, against the same days without",
    "data": "spoiled data",
    "fill": "fills and costs",
}
MAX_SHARE_SHOWN = 2.0
NO_SHARE_TEXT = "\N{MIDDLE DOT} %"
STRESS_STYLES = {"breaks": "bold red", "weakens": "yellow", "unclear": "yellow", "holds": "green", "untested": "dim"}


def print_stress(told: Mapping[str, Any]) -> None:
    """Print where one factor breaks: the sentence, the table, and the rule."""
    from rich.text import Text

    console = stdout_console()
    broken = [str(weakness.get("message")) for weakness in told.get("weaknesses") or ()]
    console.print(Text("\nunder stress", style="bold"))
    for line in broken or [str(told.get("sentence"))]:
        console.print(Text(line, style="red" if broken else ""))
    if all(row.get("verdict") == "untested" for row in told.get("scenarios") or ()):
        console.print(Text(_describe_untested(told), style="dim"))
        return
    console.print(_table(told))
    console.print(Text(_caption(told), style="dim"))


def format_share_kept(value: object) -> str:
    """Return a share in whole per cent, without the sign; beyond twice the clean figure only that it is; a dot for none."""
    if not isinstance(value, int | float):
        return "\N{MIDDLE DOT}"
    if abs(value) > MAX_SHARE_SHOWN:
        return f"> {100 * MAX_SHARE_SHOWN:.0f}" if value > 0 else f"< {number(-100 * MAX_SHARE_SHOWN, 0)}"
    return number(100 * value, 0)


def _describe_untested(told: Mapping[str, Any]) -> str:
    """Say in one line why no table follows: shares of a figure that is luck would be numbers without a meaning."""
    clean = told.get("clean") or {}
    figures = f"RankIC {number(clean.get('rank_ic'), 4, sign=True)}, t {number(clean.get('t'), 1, sign=True)}"
    amount = plural(len(told.get("scenarios") or ()), "stress", "stresses")
    return f"{amount} left untested, nothing to break ({figures}); --json has their figures."


def _caption(told: Mapping[str, Any]) -> str:
    even = (told.get("clean") or {}).get("break_even_bps")
    costs = f"Nothing is left of its book at {number(even, 1)} bp a side. " if (even or 0) > 0 else ""
    return f"{costs}In the direction that the search window shows, on its days only. {told.get('rule')}"


def _table(told: Mapping[str, Any]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("stress", overflow="fold")
    for name in ("RankIC", "against", "keeps", "net Sharpe", "against", "keeps", "values left"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    group = ""
    for row in told.get("scenarios") or ():
        if row.get("group") != group:
            group = str(row.get("group"))
            table.add_row(Text(STRESS_GROUP_TITLES.get(group, group), style="bold"))
        word = str(row.get("verdict"))
        table.add_row(Text(f"  {_name(row)}"), *_figures(row), Text(word, style=STRESS_STYLES.get(word, "")))
    return table


def _name(row: Mapping[str, Any]) -> str:
    """Return the stress in words, a historical one with its days."""
    words = str(row.get("words"))
    return f"{words}, {row['first']} to {row['last']}" if row.get("first") else words


def _figures(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a line; what a stress does not touch is empty."""
    cells = []
    for key, digits in (("rank_ic", 4), ("net_sharpe", 2)):
        found = row.get(key)
        pair = [number(found.get(name), digits, sign=True) for name in ("stressed", "clean")] if found else ["", ""]
        cells += [*pair, f"{format_share_kept(found.get('keeps'))} %".replace(NO_SHARE_TEXT, "") if found else ""]
    return [*cells, percent(row["coverage"], 0) if row.get("coverage") is not None else ""]
