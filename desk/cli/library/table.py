"""The state of library factors as tables and small bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...facts.library import describe_sealed, summarise_sealed
from ...figures import DASH, any_value, count, number, p_value_text, percent, plural, short_id
from ...formula_views import summarise_formula
from ..console import stdout_console

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


Facts = Mapping[str, Any]
STATUS_STYLES = {"live": "green", "decaying": "yellow", "watchlist": "cyan", "retired": "dim"}
ORIGIN_WORDS = {
    "accepted": "accepted in",
    "member": "part of a combination accepted in",
    "promoted": "proven on new days; judged in",
    "watchlist": "unproven; judged in",
}
ELSEWHERE_NOTE = ", on another market: known to the gate, but no evidence of these names"
SUCCESSION_WORDS = (("succeeds", "proposed to succeed"), ("successor", "succeeded by"))
BAR_CELLS = 12
"""Cells of the longest bar on each side of zero."""


def print_conditions(rows: Sequence[Facts]) -> None:
    """Print one row for each factor, and the number of factors by status."""
    from rich.text import Text

    console = stdout_console()
    if not rows:
        console.print("The library and the watchlist are empty.")
        return
    entries = [row for row in rows if row["status"] != "watchlist"]
    tally = [(sum(row["status"] == word for row in rows), word) for word in ("live", "decaying", "retired")]
    parts = ", ".join(f"{amount} {word}" for amount, word in tally if amount)
    watched = plural(len(rows) - len(entries), "entry", "entries")
    strange = sum(bool(row["elsewhere"]) for row in entries)
    parts += f", {count(strange)} of them judged on another market" if strange else ""
    headline = (
        f"{plural(len(entries), 'factor')} in the library{': ' if parts else ''}{parts}; {watched} on the watchlist"
    )
    console.print(Text(headline, style="bold"))
    console.print(Text(summarise_sealed(rows)), soft_wrap=True)
    console.print(_build_table(rows))
    console.print(
        Text("RankIC in the direction held; t: Newey-West; days since: after the panel it was judged on.", "dim")
    )


def _build_table(rows: Sequence[Facts]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("id", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("factor", overflow="fold", min_width=24)
    table.add_column("sealed (hold-out)", no_wrap=True)
    for title in ("search", "selection", "since", "t", "days"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("evidence", overflow="fold")
    table.add_column("last day", no_wrap=True)
    for row in rows:
        name = Text.assemble(
            summarise_formula(str(row["text"])), (f"\n{_describe_direction(row)}{_describe_origin(row)}", "dim")
        )
        windows = ("search_rank_ic", "selection_rank_ic", "rank_ic_since")
        figures = [describe_sealed(row), *(number(row[window], 4, sign=True) for window in windows)]
        figures += [number(row["t_since"], 1, sign=True), count(row["days"])]
        status = Text(str(row["status"]), STATUS_STYLES.get(str(row["status"]), ""))
        table.add_row(
            short_id(row["id"]), status, name, *figures, _describe_evidence(row), str(row["last_day"] or DASH)
        )
    return table


def _describe_origin(row: Facts) -> str:
    """Describe what was proven, and where."""
    trial = f", trial {row['trial']}" if row["trial"] else ""
    if row["run"]:
        return f"{ORIGIN_WORDS[row['origin']]} {row['run']}{trial}"
    return f"{row['proof']}{ELSEWHERE_NOTE if row['elsewhere'] else ''}"


def _describe_direction(row: Facts) -> str:
    """Return a remark if the factor is held with the opposite sign."""
    return "held the other way round; " if row["sign"] == -1 else ""


def _describe_evidence(row: Facts) -> str:
    """Return the statistic that decides on a factor's status."""
    if row["status"] == "watchlist":
        if row["e_value"] is None:
            return "no whole quarter yet" if row["terms_known"] else DASH
        return f"e {_format_e_value(row['e_value'])}, proven at {_format_e_value(row['proves_at'])}"
    decay = row["decay"]
    if not decay:
        return "no whole quarter yet" if row["terms_known"] else DASH
    p = f"p {p_value_text(decay['p_value'])}, " if decay["p_value"] is not None else ""
    return f"decay: {p}e {_format_e_value(decay['e_value'])}"


def _format_e_value(value: float | None) -> str:
    """Return an e-value with three digits; a whole number from 100 on."""
    return count(value) if value is not None and value >= 100 else any_value(value)


def print_condition(row: Facts) -> None:
    """Print everything that is known about a factor."""
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(str(row["text"]), style="bold"))
    grid = Table.grid(padding=(0, 2))
    for name, value in _list_facts(row):
        grid.add_row(Text(name, style="dim"), Text(value))
    console.print(grid)
    if row["quarters"]:
        console.print(Text("\nquarters since, RankIC in the direction held", style="bold"))
        console.print(_build_quarter_table(row))
    if row["history"]:
        console.print(Text("\nhistory", style="bold"))
        console.print(_build_history_table(row["history"]))


def _list_facts(row: Facts) -> list[tuple[str, str]]:
    search, terms = row["search"] or {}, row["terms"] or {}
    direction = {1: "as written", -1: "the other way round"}.get(row["sign"], DASH)
    rank_ic = number(row["rank_ic_since"], 4, sign=True)
    facts = [
        ("id", str(row["id"])),
        ("status", str(row["status"])),
        ("proof", _describe_origin(row)),
        ("hypothesis", str(row["hypothesis"] or DASH)),
        *((word, str(row[key])) for key, word in SUCCESSION_WORDS if row[key]),
        ("held", direction),
        ("scored", f"{terms['horizon_days']}-day {terms['returns']} returns" if terms else DASH),
        ("RankIC on sealed (hold-out)", describe_sealed(row).replace("\n", ", ")),
        (
            "RankIC on search, as written",
            f"{number(search.get('rank_ic'), 4, sign=True)}, t {number(search.get('t'), 2, sign=True)}",
        ),
        ("RankIC on selection", number(row["selection_rank_ic"], 4, sign=True)),
        ("judged up to", str(row["judged_to"] or DASH)),
        ("RankIC since", f"{rank_ic}, t {number(row['t_since'], 2, sign=True)}, {plural(row['days'], 'day')}"),
        ("last day scored", str(row["last_day"] or DASH)),
        ("evidence", _describe_evidence(row)),
    ]
    if row["revalidation"]:
        facts.append(("to be looked at again", _describe_revalidation(row["revalidation"])))
    facts += [("used by", ", ".join(_describe_use(one) for one in row["used_by"]))] if row["used_by"] else []
    return [*facts, ("not watched", str(row["lacking"]))] if row["lacking"] else facts


def _describe_revalidation(dates: Facts) -> str:
    """Return by when a person looks at a factor again, and who did last."""
    last = dates["last"]
    said = f"; {last['by']} on {last['at'][:10]}: {last['reason']}" if last else ""
    return f"by {dates['due']}{said}" if dates["due"] else f"never, says the policy{said}"


def _describe_use(use: Facts) -> str:
    weight = f", weight {number(use['weight'], 3, sign=True)} in {use['run']}" if use["weight"] is not None else ""
    return f"book {use['book']} ({percent(use['share'], 0)} of equity a side{weight})"


def _build_quarter_table(row: Facts) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("to", no_wrap=True)
    table.add_column("RankIC", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for title in ("e-value", "year's mean", "p below bar", "decay e"):
        table.add_column(title, justify="right", no_wrap=True)
    largest = max(abs(quarter["rank_ic"] or 0.0) for quarter in row["quarters"]) or 1.0
    for quarter in row["quarters"]:
        decay = quarter["decay"]
        figures = [_format_e_value(quarter["e_value"]), number(decay["rank_ic"], 4, sign=True)]
        figures += [p_value_text(decay["p_value"]), _format_e_value(decay["e_value"])]
        table.add_row(
            quarter["day"], number(quarter["rank_ic"], 4, sign=True), _draw_bar(quarter["rank_ic"], largest), *figures
        )
    return table


def _draw_bar(value: float | None, largest: float) -> str:
    """Draw a value to the left or right of zero."""
    cells = round(BAR_CELLS * abs(value or 0.0) / largest)
    left = ("█" * cells if (value or 0.0) < 0 else "").rjust(BAR_CELLS)
    right = ("█" * cells if (value or 0.0) > 0 else "").ljust(BAR_CELLS)
    return f"{left}│{right}"


def _build_history_table(history: Sequence[Facts]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for change in history:
        table.add_row(_make_dim(change["day"]), str(change["status"]), f"by {change['by']}", str(change["reason"]))
    return table


def _make_dim(text: object) -> Text:
    from rich.text import Text

    return Text(str(text), style="dim")


def print_watch(result: Facts) -> None:
    """Print the factors after a watch of new days: their state, changes, and what could not be scored."""
    from rich.text import Text

    console, rows = stdout_console(), result["factors"]
    if not rows:
        console.print("Nothing to watch: the library has no judged factor, and the watchlist is empty.")
        return
    scored = [row for row in rows if row["new_days"]]
    days = f"{plural(result['new_days'], 'new day')}" if scored else "no new day"
    console.print(
        Text(f"{days} for {plural(len(scored), 'factor')}; the panel ends on {result['last_day']}", style="bold")
    )
    console.print(_build_table(rows))
    for row in rows:
        for change in row["changes"]:
            line = f"{short_id(row['id'])}: {change['status']} since {change['day']}: {change['reason']}"
            console.print(Text(line, STATUS_STYLES.get(str(change["status"]), "")), soft_wrap=True)
        if row["lacking"]:
            console.print(Text(f"{short_id(row['id'])}: not scored: {row['lacking']}", "yellow"), soft_wrap=True)
        if row["left_out"] and row["new_days"]:
            remark = (
                f"{row['left_out']}: if who is left was chosen knowing these days, a list of survivors too, "
                "they prove nothing"
            )
            console.print(Text(f"{short_id(row['id'])}: {remark}", "yellow"), soft_wrap=True)
        if row["unlike_days"]:
            remark = (
                f"the panel tells other values of {plural(row['unlike_days'], 'day')} that were seen; "
                "what was seen stays"
            )
            console.print(Text(f"{short_id(row['id'])}: {remark}", "yellow"), soft_wrap=True)
    if any(row["status"] == "decaying" for row in rows):
        remark = "The next campaign on this workspace is told what decays, and may propose a successor."
        console.print(Text(remark, "dim"), soft_wrap=True)
