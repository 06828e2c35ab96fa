"""The combination of a run: its combiner, its trading rate, and the comparison with other combiners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...figures import count, number, percent, short_id
from ..console import print_object, print_plain, stdout_console
from ..options import AsJson, RunName, Workspace
from ..run_lookup import run_folder

if TYPE_CHECKING:
    from ....evaluation.closing import (
        CombinationSummary,
        CombinerComparison,
        CombinerFigures,
        Figure,
        IntervalEstimate,
        SealedExam,
    )


COMBINER_COLUMNS = (
    "window", "combiner", "RankIC", "t", "turnover", "Sharpe", "after costs",
    "half-life", "capacity", "break-even", "rate",
)  # fmt: skip  # a table
LEGEND = (
    "Turnover: one-way, a day. Half-life: days until the score's rank correlation with itself is a half. "
    "Capacity: capital on each side at which 95 of 100 trades are a tenth of a day's volume at most; "
    "break-even: at which impact eats what is left after costs. "
    "Rate: share of the way to the score that is traded each day; figures are at that rate. "
    "Differences of RankIC are at once, before any rate; in brackets what 95 of 100 redrawn histories give."
)


@dataclass(frozen=True)
class Comparison:
    """The table of combiners: one line each, whether it is the chosen one, and the differences in words."""

    sentence: str
    lines: Sequence[tuple[bool, Sequence[str]]]
    differences: Sequence[str]
    note: str
    heads: Sequence[str] = COMBINER_COLUMNS
    legend: str = LEGEND


def combine(run: RunName, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Show how a run's accepted factors are combined, and what each combiner gave on search and selection.

    Sealed days stand beside the chosen one alone, and only if they were opened.
    """
    from ...report.report import read_results

    results = read_results(run_folder(run, workspace))
    combination, exam = results.combination, results.sealed
    if as_json:
        parts = {"combination": combination, "sealed": exam}
        print_object({name: part.record() if part else None for name, part in parts.items()})
    elif combination is None:
        print_plain("Nothing was accepted, so there is nothing to combine.")
    else:
        _print(combination, compare_combiners(combination, exam))


def compare_combiners(combination: CombinationSummary | None, exam: SealedExam | None) -> Comparison | None:
    """Return the table of a run's combiners; None if nothing was accepted or a run had no choice of combiners."""
    if combination is None or combination.combiner is None:
        return None
    compared = combination.compared
    return Comparison(
        sentence=describe_combiner(combination),
        lines=list(_list_lines(combination, exam)),
        differences=list(_describe_differences(compared)) if compared else [],
        note=compared.note if compared else "",
    )


def describe_combiner(combination: CombinationSummary) -> str:
    """Return a sentence on the combiner: which one, who chose it, and its trading rate."""
    rate = combination.trading_rate
    speed = "at once" if rate == 1 else f"{percent(rate, 0)} of the way each day"
    return f"Combined by {combination.combiner} weights ({combination.chosen}), traded {speed}."


def _list_lines(combination: CombinationSummary, exam: SealedExam | None) -> Iterator[tuple[bool, Sequence[str]]]:
    chosen, compared = str(combination.combiner), combination.compared
    if compared:
        for window, combiners in (("search", compared.search.combiners), ("selection", compared.selection.combiners)):
            for kind, row in combiners.items():
                rate = number(compared.trading_rate.get(kind), 2)
                yield kind == chosen, [window, kind, *_format_figures(row), *_format_capacity(row), rate]
    if exam and exam.opened:
        unknown = [number(None)] * 3
        yield True, ["sealed", chosen, *_format_figures(exam), *unknown, number(combination.trading_rate, 2)]


def _format_figures(row: CombinerFigures | SealedExam) -> list[str]:
    return [
        number(row.rank_ic, 4, sign=True),
        number(row.t, 2, sign=True),
        percent(row.turnover, 1),
        number(row.gross_sharpe, 2, sign=True),
        number(row.net_sharpe, 2, sign=True),
    ]


def _format_capacity(row: CombinerFigures) -> list[str]:
    capacity = row.capacity
    return [
        number(row.half_life_days, 0),
        _format_capital(capacity.at_10_percent_of_volume if capacity else None),
        _format_capital(capacity.break_even if capacity else None),
    ]


def _format_capital(amount: Figure) -> str:
    """Return capital in millions, or in thousands below one million."""
    if amount is None:
        return number(None)
    return f"{count(round(amount / 1e6))}m" if amount >= 1e6 else f"{count(round(amount / 1e3))}k"


def _describe_differences(compared: CombinerComparison) -> Iterator[str]:
    for window, on_window in (("search", compared.search), ("selection", compared.selection)):
        for pair in on_window.differences:
            rank_ic, net_return = _format_interval(pair.rank_ic, 1.0, 4), _format_interval(pair.net_return, 1e4, 2)
            yield f"{window}: {pair.of} less {pair.less}: RankIC {rank_ic}; after costs {net_return} bp a day"


def _format_interval(estimate: IntervalEstimate, unit: float, digits: int) -> str:
    """Return a mean, its 95 % interval, and whether that excludes zero."""
    mean, low, high = (
        number(None if value is None else unit * value, digits, sign=True)
        for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean} ({low} to {high}, {'not significant' if estimate.tie else 'significant'})"


def _print(combination: CombinationSummary, comparison: Comparison | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    if comparison is None:
        console.print("Combined with equal weights, by a version that knew no others.")
    else:
        console.print(Text(comparison.sentence, style="bold"))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for place, head in enumerate(COMBINER_COLUMNS):
            table.add_column(head, justify="left" if place < 2 else "right", no_wrap=True)
        for chosen, line in comparison.lines:
            table.add_row(*line, style="bold" if chosen else "")
        if comparison.lines:
            console.print(table)
        for line in comparison.differences:
            console.print(Text(line), soft_wrap=True)
        for line in (comparison.note, LEGEND if comparison.lines else ""):
            if line:
                console.print(Text(line, "dim"))
    console.print(Text(f"\nweights at the close of {combination.weights_of or 'the last day'}", style="bold"))
    for name, weight in combination.weights.items():
        console.print(Text(f"{short_id(name)}  {number(weight, 3, sign=True)}"))
