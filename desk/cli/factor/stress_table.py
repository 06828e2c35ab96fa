"""Where a factor breaks, on the terminal: a line for each stress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...figures import number, percent, plural
from ..console import stdout_console

if TYPE_CHECKING:
    from rich.table import Table

    from ....evaluation.closing import FactorStress, Figure, StressScenario

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


def print_stress(stress: FactorStress, rule: str) -> None:
    """Print where one factor breaks: the sentence, the table, and the rule of what breaking means."""
    from rich.text import Text

    console = stdout_console()
    broken = [weakness.message for weakness in stress.weaknesses]
    console.print(Text("\nunder stress", style="bold"))
    for line in broken or [stress.sentence]:
        console.print(Text(line, style="red" if broken else ""))
    if all(scenario.verdict == "untested" for scenario in stress.scenarios):
        console.print(Text(_describe_untested(stress), style="dim"))
        return
    console.print(_table(stress.scenarios))
    console.print(Text(_caption(stress, rule), style="dim"))


def format_share_kept(value: Figure) -> str:
    """Return a share in whole per cent, without the sign; beyond twice the clean figure only that it is; a dot for none."""
    if value is None:
        return "\N{MIDDLE DOT}"
    if abs(value) > MAX_SHARE_SHOWN:
        return f"> {100 * MAX_SHARE_SHOWN:.0f}" if value > 0 else f"< {number(-100 * MAX_SHARE_SHOWN, 0)}"
    return number(100 * value, 0)


def _describe_untested(stress: FactorStress) -> str:
    """Say in one line why no table follows: a share of an insignificant figure means nothing."""
    figures = f"RankIC {number(stress.clean.rank_ic, 4, sign=True)}, t {number(stress.clean.t, 1, sign=True)}"
    amount = plural(len(stress.scenarios), "stress", "stresses")
    return f"{amount} left untested, nothing to break ({figures}); --json has their figures."


def _caption(stress: FactorStress, rule: str) -> str:
    even = stress.clean.break_even_bps or 0.0
    costs = f"Nothing is left of its book at {number(even, 1)} bp a side. " if even > 0 else ""
    return f"{costs}In the direction that the search window shows, on its days only. {rule}"


def _table(scenarios: Sequence[StressScenario]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("stress", overflow="fold")
    for name in ("RankIC", "against", "keeps", "net Sharpe", "against", "keeps", "values left"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    group = ""
    for scenario in scenarios:
        if scenario.group != group:
            group = scenario.group
            table.add_row(Text(STRESS_GROUP_TITLES.get(group, group), style="bold"))
        verdict = Text(scenario.verdict, style=STRESS_STYLES.get(scenario.verdict, ""))
        table.add_row(Text(f"  {_name(scenario)}"), *_figures(scenario), verdict)
    return table


def _name(scenario: StressScenario) -> str:
    """Return the stress in words, a historical one with its days."""
    return f"{scenario.words}, {scenario.first} to {scenario.last}" if scenario.first else scenario.words


def _figures(scenario: StressScenario) -> list[str]:
    """Return the cells of a line; what a stress does not touch is empty."""
    cells = []
    for figure, digits in ((scenario.rank_ic, 4), (scenario.net_sharpe, 2)):
        if figure is None:
            cells += ["", "", ""]
        else:
            share = f"{format_share_kept(figure.keeps)} %".replace(NO_SHARE_TEXT, "")
            cells += [number(figure.stressed, digits, sign=True), number(figure.clean, digits, sign=True), share]
    return [*cells, percent(scenario.coverage, 0) if scenario.coverage is not None else ""]
