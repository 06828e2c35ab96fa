"""Factors that were not accepted: tested in vain, refused before a test, and never tested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...figures import DASH, number, p_value_text, percent, short_id
from ...formula_views import summarise_formula
from ..gate_steps import find_deciding_step

if TYPE_CHECKING:
    from ....evaluation.closing import FactorEntry, Results

MAX_REJECTED_IN_REPORT, MAX_UNTESTED_IN_REPORT = 40, 20
MAX_FAILED_DRAWN, MAX_UNTESTED_DRAWN = 6, 3
"""Candidates, tested or not, that are shown with their curves where nothing was accepted."""
UNSENT_STEP = "search"
"""The only step of a factor that never went to the gate; runs of before 2026-11-24 list it among the rejected."""


@dataclass(frozen=True)
class FactorLine:
    """A line of the tables of factors that were not accepted."""

    id: str
    text: str
    numbers: Sequence[str]
    step: str
    reason: str


@dataclass(frozen=True)
class FactorTable:
    """Lines, and how many more there are."""

    lines: Sequence[FactorLine]
    more: str


@dataclass(frozen=True)
class CandidateTables:
    """The factors that were not accepted, by how far they came."""

    failed: FactorTable
    refused: FactorTable
    untested: FactorTable


def list_candidates(results: Results) -> CandidateTables:
    """Return the factors of a run that were neither accepted nor watched."""
    unsent = [entry for entry in results.rejected if _was_not_sent(entry)]
    refused = [entry for entry in results.rejected if entry.trial is None and not _was_not_sent(entry)]
    return CandidateTables(
        failed=_build_table(_list_failed(results), MAX_REJECTED_IN_REPORT),
        refused=_build_table(refused, MAX_REJECTED_IN_REPORT),
        untested=_build_table([*unsent, *results.untested], MAX_UNTESTED_IN_REPORT),
    )


def choose_drawn(results: Results) -> list[FactorEntry]:
    """Return the candidates to draw where nothing was accepted: those tested, or without any test the strongest."""
    if results.accepted or results.proven or results.watchlist:
        return []
    if failed := sort_by_trial(_list_failed(results)):
        return failed[:MAX_FAILED_DRAWN]
    strongest: dict[str, FactorEntry] = {}
    for entry in sort_by_strength(results.entries):  # one of each hypothesis: its others are near-copies
        strongest.setdefault((entry.hypothesis and entry.hypothesis.id) or entry.id, entry)
    return list(strongest.values())[:MAX_UNTESTED_DRAWN]


def _list_failed(results: Results) -> list[FactorEntry]:
    return [entry for entry in results.rejected if entry.trial is not None]


def _was_not_sent(entry: FactorEntry) -> bool:
    return entry.trial is None and [reason.step for reason in entry.reasons] == [UNSENT_STEP]


def sort_by_trial(entries: Iterable[FactorEntry]) -> list[FactorEntry]:
    """Return entries in the order of their tests: the combination first."""
    return sorted(entries, key=lambda entry: (entry.trial is None, entry.trial or 0, entry.id))


def sort_by_strength(entries: Iterable[FactorEntry]) -> list[FactorEntry]:
    """Return entries with a trial first, then by |t| on search."""
    return sorted(entries, key=lambda entry: (entry.trial is None, -abs(entry.metrics.search.t or 0.0), entry.id))


def _build_table(entries: Sequence[FactorEntry], most: int) -> FactorTable:
    more = len(entries) - most
    lines = [_make_line(entry) for entry in sort_by_strength(entries)[:most]]
    return FactorTable(lines, f"and {more:,} more, in results.json" if more > 0 else "")


def _make_line(entry: FactorEntry) -> FactorLine:
    search, selection = entry.metrics.search, entry.metrics.selection
    step = find_deciding_step(entry)
    return FactorLine(
        id=short_id(entry.id) + (f", combination of {len(entry.members)}" if entry.members else ""),
        text=summarise_formula(entry.text),
        numbers=[
            number(selection.rank_ic if selection else None, 4, sign=True),
            p_value_text(selection.p_value if selection else None),
            number(search.rank_ic, 4, sign=True),
            number(search.t, 2, sign=True),
            percent(search.turnover),
            number(search.net_sharpe, 2, sign=True),
        ],
        step=step.step if step else DASH,
        reason=step.message if step else "",
    )
