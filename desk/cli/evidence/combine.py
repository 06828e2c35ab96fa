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
        BookCapacity,
        CombinationSummary,
        CombinerComparison,
        CombinerFigures,
        Figure,
        IntervalEstimate,
        Results,
        WindowMetrics,
    )


COMBINER_COLUMNS = (
    "window", "combiner", "RankIC", "t", "turnover", "Sharpe", "after costs",
    "half-life", "break-even", "10 % of volume", "rate",
)  # fmt: skip  # a table
LEGEND = (
    "As tested: the weights of the last search day on all days, as the gate tested them; the other lines renew their "
    "weights every day, so their figures are others. "
    "Turnover: one-way, a day. Sharpe after costs is without drift: weights return to their targets free of cost. "
    "Half-life: days until the score's rank correlation with itself is a half. "
    "Break-even: capital on each side at which market impact eats the profit, in units of the prices' currency; "
    "10 % of volume: at which 95 of 100 trades are a tenth of a day's volume at most. "
    "Rate: share of the way to the score that is traded each day; figures are at that rate. "
    "Differences of RankIC are at once, before any rate; in brackets what 95 of 100 redrawn histories give."
)
AS_TESTED = "as tested"


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
    combination = results.combination
    if as_json:
        parts = {"combination": combination, "sealed": results.sealed}
        print_object({name: part.record() if part else None for name, part in parts.items()})
    elif combination is None:
        print_plain("Nothing was accepted, so there is nothing to combine.")
    else:
        _print(combination, compare_combiners(results))


def compare_combiners(results: Results) -> Comparison | None:
    """Return the table of a run's combiners; None if nothing was accepted or a run had no choice of combiners."""
    combination = results.combination
    if combination is None or combination.combiner is None:
        return None
    compared = combination.compared
    return Comparison(
        sentence=describe_combiner(combination),
        lines=list(_list_lines(combination, results)),
        differences=list(_describe_differences(compared)) if compared else [],
        note=compared.note if compared else "",
    )


def describe_combiner(combination: CombinationSummary) -> str:
    """Return a sentence on the combiner: which one, who chose it, and its trading rate."""
    rate = combination.trading_rate
    speed = "at once" if rate == 1 else f"{percent(rate, 0)} of the way each day"
    return f"Combined by {combination.combiner} weights ({combination.chosen}), traded {speed}."


def _list_lines(combination: CombinationSummary, results: Results) -> Iterator[tuple[bool, Sequence[str]]]:
    """Yield the lines window by window; the combination that is traded comes first and is marked."""
    from ...report.conclusion import find_tested_combination

    chosen, compared, exam = str(combination.combiner), combination.compared, results.sealed
    entry = find_tested_combination(results)
    traded = f"{chosen}, {AS_TESTED}" if entry else chosen
    rate = number(combination.trading_rate, 2)
    for window in ("search", "selection"):
        if entry and (figures := getattr(entry.metrics, window)):
            capacity = entry.profile.capacity if entry.profile and window == "search" else None
            yield True, [window, traded, *_format_figures(figures), number(None), *_format_capacity(capacity), rate]
        combiners = getattr(compared, window).combiners if compared else {}
        for kind, row in combiners.items():
            own_rate = number(compared.trading_rate.get(kind) if compared else None, 2)
            figures = [*_format_figures(row), number(row.half_life_days, 0), *_format_capacity(row.capacity)]
            yield kind == chosen and not entry, [window, kind, *figures, own_rate]
    if exam and exam.opened:
        yield True, ["sealed", traded, *_format_figures(exam), *[number(None)] * 3, rate]


def _format_figures(row: CombinerFigures | WindowMetrics) -> list[str]:
    return [
        number(row.rank_ic, 4, sign=True),
        number(row.t, 2, sign=True),
        percent(row.turnover, 1),
        number(row.gross_sharpe, 2, sign=True),
        number(row.net_sharpe, 2, sign=True),
    ]


def _format_capacity(capacity: BookCapacity | None) -> list[str]:
    """Return the capital at which impact eats the profit, and that of a tenth of the volume."""
    if capacity is None:
        return [number(None)] * 2
    return [_format_capital(capacity.break_even), _format_capital(capacity.at_10_percent_of_volume)]


def _format_capital(amount: Figure) -> str:
    """Return capital in millions, or in thousands below one million, with two significant digits or more."""
    if amount is None:
        return number(None)
    unit, word = (1e6, "m") if amount >= 1e6 else (1e3, "k")
    scaled = amount / unit
    return f"{number(scaled, 1) if scaled < 10 else count(round(scaled))}{word}"


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
