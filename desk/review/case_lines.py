"""A case on the terminal: what its page says, in lines."""

from __future__ import annotations

from ..cli.campaign.chronicle import flatten_lines
from ..cli.console import stdout_console
from .case_page import CasePage

__all__ = ["print_case"]


def print_case(page: CasePage) -> None:
    """Print a case: hypothesis, formula, figures, verdict, doubts and what it is nearest to."""
    from rich.table import Table
    from rich.text import Text

    console, card = stdout_console(), page.card
    console.print(Text(f"{card.id}, {card.kind}: {flatten_lines(page.stands)}", style="bold"), soft_wrap=True)
    for warning in page.warnings:
        console.print(Text(f"warning: {flatten_lines(warning)}", "yellow"), soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, said in _lines(page):
        grid.add_row(f"  {label}", Text(said))
    console.print(grid)


def _lines(page: CasePage) -> list[tuple[str, str]]:
    card = page.card
    figures = ", ".join(f"{label} {said}" for label, said in page.summary)
    near = [f"{name} ({where}), {ratio} shared: {shared}" for name, where, ratio, shared in page.nearest[:3]]
    rows = [("hypothesis", f"{card.mechanism}: {card.statement}" if card.mechanism else card.statement), *page.idea]
    rows += [("formula", card.text)] if card.text else []
    rows += [("member", f"{name} {text}") for name, text in card.members]
    rows += [("in words", card.explained), ("figures", figures)]
    rows += [(reason.step, f"{reason.mark}: {reason.message}") for reason in card.reasons]
    rows += [("weak on search", "; ".join(card.doubts))] if card.doubts else []
    rows += [("doubt", doubt) for doubt in card.warnings]
    rows += [("nearest known", "; ".join(near) or "nothing known shares structure with it")]
    return [(label, said if label == "formula" else flatten_lines(said)) for label, said in rows]
