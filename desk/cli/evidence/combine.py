"""The combination of a run: which combiner, how fast it trades, and the others beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...figures import count, number, percent, short_id
from ..console import print_object, print_plain, stdout_console
from ..options import AsJson, RunName, Workspace
from ..run_lookup import run_folder

__all__ = ["Comparison", "combine", "comparison", "sentence"]

COMBINER_COLUMNS = (
    "window", "combiner", "RankIC", "t", "turnover", "Sharpe", "after costs", "half-life", "capacity", "break-even", "rate",
)  # fmt: skip
LEGEND = (
    "Turnover: one-way, a day. Half-life: days until the score's rank correlation with itself is a half. Capacity: capital "
    "on each side at which 95 of 100 trades are a tenth of a day's volume at most; break-even: at which impact eats what is "
    "left after costs. Rate: share of the way to the score that is traded each day; figures are at that rate. Differences of RankIC are at once, "
    "before any rate; in brackets what 95 of 100 redrawn histories give."
)
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """The table of combiners: a line each, whether it is the chosen one, and the differences in words."""

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
    from ....ledger import read_json
    from ...report.report import SEALED_FILE

    folder = run_folder(run, workspace)
    results = read_json(folder / "results.json")
    sealed = results.get("sealed") or _read_sealed(folder / SEALED_FILE)
    found = results.get("combination")
    if as_json:
        print_object({"combination": found, "sealed": sealed})
    elif not found:
        print_plain("Nothing was accepted, so there is nothing to combine.")
    else:
        _print(found, comparison(results | {"sealed": sealed}))


def _read_sealed(path: Path) -> Facts | None:
    from ....ledger import read_json

    return read_json(path) if path.is_file() else None


def comparison(results: Facts) -> Comparison | None:
    """Return the table of a run's combiners; None where nothing was accepted, or before there was a choice."""
    made = results.get("combination") or {}
    if "combiner" not in made:
        return None
    compared = made.get("compared") or {}
    lines = list(_lines(made, compared, results.get("sealed")))
    return Comparison(sentence(made), lines, list(_differences(compared)), str(compared.get("note") or ""))


def sentence(made: Facts) -> str:
    """Say which combiner is used, who chose it, and how fast it is traded."""
    rate = made.get("trading_rate")
    speed = "at once" if rate == 1 else f"{percent(rate, 0)} of the way each day"
    return f"Combined by {made['combiner']} weights ({made['chosen']}), traded {speed}."


def _lines(made: Facts, compared: Facts, sealed: Facts | None) -> Iterator[tuple[bool, Sequence[str]]]:
    rates = compared.get("trading_rate") or {}
    for window in ("search", "selection"):
        for kind, row in ((compared.get(window) or {}).get("combiners") or {}).items():
            yield kind == made["combiner"], [window, kind, *_figures(row), number(rates.get(kind), 2)]
    if sealed and sealed.get("opened"):
        yield True, ["sealed", made["combiner"], *_figures(sealed), number(made.get("trading_rate"), 2)]


def _figures(row: Facts) -> list[str]:
    room = row.get("capacity") or {}
    return [
        number(row.get("rank_ic"), 4, sign=True),
        number(row.get("t"), 2, sign=True),
        percent(row.get("turnover"), 1),
        number(row.get("gross_sharpe"), 2, sign=True),
        number(row.get("net_sharpe"), 2, sign=True),
        number(row.get("half_life_days"), 0),
        _capital(room.get("at_10_percent_of_volume")),
        _capital(room.get("break_even")),
    ]


def _capital(value: float | None) -> str:
    """Return capital in millions, in thousands below one."""
    if value is None:
        return number(None)
    return f"{count(round(value / 1e6))}m" if value >= 1e6 else f"{count(round(value / 1e3))}k"


def _differences(compared: Facts) -> Iterator[str]:
    for window in ("search", "selection"):
        for each in (compared.get(window) or {}).get("differences") or ():
            told, earned = _interval(each["rank_ic"], 1.0, 4), _interval(each["net_return"], 1e4, 2)
            yield f"{window}: {each['of']} less {each['less']}: RankIC {told}; after costs {earned} bp a day"


def _interval(found: Facts, unit: float, digits: int) -> str:
    """Return a mean, its 95 % interval, and whether that excludes zero."""
    mean, low, high = (
        number(None if found[name] is None else unit * found[name], digits, sign=True)
        for name in ("mean", "low", "high")
    )
    return f"{mean} ({low} to {high}, {'not significant' if found['tie'] else 'significant'})"


def _print(made: Facts, found: Comparison | None) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    if found is None:
        console.print("Combined with equal weights, by a version that knew no others.")
    else:
        console.print(Text(found.sentence, style="bold"))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for place, head in enumerate(COMBINER_COLUMNS):
            table.add_column(head, justify="left" if place < 2 else "right", no_wrap=True)
        for chosen, line in found.lines:
            table.add_row(*line, style="bold" if chosen else "")
        if found.lines:
            console.print(table)
        for line in found.differences:
            console.print(Text(line), soft_wrap=True)
        for line in (found.note, LEGEND if found.lines else ""):
            if line:
                console.print(Text(line, "dim"))
    console.print(Text(f"\nweights at the close of {made.get('weights_of') or 'the last day'}", style="bold"))
    for name, weight in (made.get("weights") or {}).items():
        console.print(Text(f"{short_id(name)}  {number(weight, 3, sign=True)}"))
