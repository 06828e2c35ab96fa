"""Which days a model can have read, in words and as rows: beside the hold-out result, and in a factor's section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...figures import DASH, count, number

if TYPE_CHECKING:
    from ....evaluation.manifest import DaySplit, SplitFigure, WindowSplit

Facts = Sequence[tuple[str, str]]
DAY_HEADS = ("days", "exposed", "clean", "unknown", "RankIC, exposed", "RankIC, clean")


def describe_sealed_days(split: DaySplit) -> str:
    """Return which sealed days a model can have read; empty where the run has no such window."""
    window = split.windows.get("sealed")
    return describe_window(window, split.cutoff.why) if window else ""


def describe_window(window: WindowSplit, why: str) -> str:
    """Return in a sentence how many days of a window are exposed and clean, with the RankIC on both where it is."""
    exposed, clean, unknown = window.exposed, window.clean, window.unknown
    if exposed is None or clean is None:
        return f"A model can have read a part of these days; how many is not recorded: {why}."
    if unknown:
        return f"Whether a model can have read these {count(unknown)} days is unknown: {why}."
    if not exposed:
        return f"A model can have read none of these {count(clean)} days (clean): {why}."
    if not clean:
        return f"A model can have read all of these {count(exposed)} days (exposed): {why}."
    start = f"A model can have read {count(exposed)} of these days (exposed) and not the later {count(clean)} (clean)"
    return f"{start}: {why}.{_compare_figures(window.rank_ic)}"


def _compare_figures(figures: Mapping[str, SplitFigure]) -> str:
    parts = [f"{_describe_figure(figures[kind])} on {kind} days" for kind in ("exposed", "clean") if kind in figures]
    return f" RankIC: {', '.join(parts)}." if parts else ""


def _describe_figure(figure: SplitFigure | None) -> str:
    """Return the mean RankIC with its t."""
    if figure is None:
        return DASH
    return f"{number(figure.rank_ic, 4, sign=True)} (t {number(figure.t, 1, sign=True)})"


def list_windows(split: DaySplit) -> list[Sequence[str]]:
    """Return a row for each window: its name, the days by kind, and the RankIC on exposed and on clean days."""
    return [
        (
            f"{name}, {window.first} to {window.last}",
            *(count(days) for days in (window.exposed, window.clean, window.unknown)),
            *(_describe_figure(window.rank_ic.get(kind)) for kind in ("exposed", "clean")),
        )
        for name, window in split.windows.items()
    ]


def describe_split(split: DaySplit) -> str:
    """Return why the days of a factor are exposed, clean or unknown, and who wrote it."""
    why = split.cutoff.why
    doubt = "" if split.authors.certain else " No reply on record has the text, so every model that answered counts."
    return f"{why[:1].upper()}{why[1:]}.{doubt}"
