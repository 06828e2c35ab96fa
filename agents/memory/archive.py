"""The archive of a search: the best formula of every niche, beside the strongest of all.

A niche is a cell of mechanism x horizon x turnover, as in MAP-Elites: Mouret and Clune (2015), "Illuminating search
spaces by mapping elites"; unlike there, the strongest are kept beside the map. Twelve spellings of one effect fill one
niche, so agents are shown different effects. Islands keep lines of search apart: the branches of one island see the
formulas of that island alone, until the next migration; Whitley, Rana and Heckendorn (1999), "The island model genetic
algorithm".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from ...factors import FactorError, parse
from ...factors.describe import find_stems
from ...factors.language import FIELD_UNITS
from ..config import AgentsConfig
from ..nodes.review import parse_round
from ..records import (
    BranchHypothesis,
    FormulaAttempt,
    Mark,
    RoundMemory,
    finite_or_none,
    rank_marks,
    read_hypothesis,
    read_memory,
)
from ..search_context import SearchContext

__all__ = ["SearchArchive", "name_niche", "place_in_niches", "rank_all", "recall_marks"]

MAX_STRONGEST_KEPT = 240
"""Places for the strongest of any niche; the gate chooses among them."""

MAX_NICHES_KEPT = 120
"""Further places, for the best of niches: two long campaigns of the offline researcher filled some 160 niches, a dozen
or two of them among the strongest."""

BEST_KEPT_PER_BRANCH = 3
"""The best of a branch that are kept, whatever their niche."""

MIGRATION_ROUNDS = 4
"""At every fourth round all islands see all. With as many hypotheses as islands each island has then worked on four, at
the defaults some eighty formulas: enough to establish a line of its own, and few enough that a bad one is left soon."""

WEEK_HORIZON_DAYS, MONTH_HORIZON_DAYS = 5, 21
"""Longest horizons, in trading days, of the first two of three classes."""

SLOW_TURNOVER, FAST_TURNOVER = 1 / 3, 2 / 3
"""Bounds of turnover, as the share of a sleeve that is replaced by the end of its days; white noise replaces four
fifths."""


@dataclass(frozen=True)
class SearchArchive:
    """Choose which marks are kept and which a branch is shown.

    Attributes
    ----------
    strongest, different
        How many of the strongest are kept, and how many further marks for their niches.
    islands
        Number of separate lines of search; 1: none.
    mapped
        Whether niches count; otherwise the strongest are kept and shown.
    """

    strongest: int = MAX_STRONGEST_KEPT
    different: int = MAX_NICHES_KEPT
    islands: int = 1
    mapped: bool = True

    @classmethod
    def of(cls, config: AgentsConfig) -> Self:
        """Return the archive that a campaign's settings describe."""
        return cls(MAX_STRONGEST_KEPT, MAX_NICHES_KEPT, config.islands, config.archive)

    def found(self, best: Sequence[Mark], fresh: Iterable[Mark]) -> list[Mark]:
        """Return a branch's contribution: its best so far, and the best of each niche among its newest formulas."""
        return [
            *best[:BEST_KEPT_PER_BRANCH],
            *(_first_of_each_cell(rank_all(fresh), _get_niche) if self.mapped else []),
        ]

    def keep(self, marks: Iterable[Mark]) -> list[Mark]:
        """Return the marks that are kept, the strongest first.

        Beside the strongest these are the best of every niche, then the best of each island in it, then the next
        strongest, while there is room. The order in which two marks were found has no effect.
        """
        ordered = rank_all(marks)
        if not self.mapped:
            return ordered[: self.strongest]
        own = _first_of_each_cell(ordered, lambda mark: (mark.niche, self.island(mark.branch)))
        selection = dict.fromkeys(
            [*ordered[: self.strongest], *_first_of_each_cell(ordered, _get_niche), *own, *ordered]
        )
        return rank_all(list(selection)[: self.strongest + self.different])

    def show(self, marks: Iterable[Mark], branch: str, count: int) -> list[Mark]:
        """Return up to `count` marks for one branch's agents: the best of different niches, then the strongest."""
        visible = rank_all(mark for mark in marks if self.sees(branch, mark))
        return list(dict.fromkeys([*(_first_of_each_cell(visible, _get_niche) if self.mapped else []), *visible]))[
            :count
        ]

    def sees(self, branch: str, mark: Mark) -> bool:
        """Return whether a branch may see a mark.

        It sees marks of its own island and of the person's seeds; in a round of migration it sees all.
        """
        everywhere = _parse_round(branch) % MIGRATION_ROUNDS == 0 or _parse_round(mark.branch) == 0
        return everywhere or self.island(branch) == self.island(mark.branch)

    def island(self, branch: str) -> int:
        """Return the island of a branch.

        Neighbours in a round are on different islands. Each round begins one island further: the first hypotheses of a
        round are mostly follow-ups and the last explore, and every island is to have both.
        """
        return (_parse_round(branch) + int(branch.rpartition("/")[2][1:])) % self.islands


def name_niche(hypothesis: BranchHypothesis, reads: Iterable[str], turnover: float | None, sleeves: int) -> str:
    """Return the cell of a scored formula, such as `short_revers/week/fast`.

    Parameters
    ----------
    hypothesis
        The hypothesis that the formula tests. Mechanisms are compared by their stems. A hypothesis that takes either
        direction is a survey and names no cause: the kinds of fields are added, since they distinguish its effects.
    reads
        Fields of the formula; used for surveys only. Prices count as one: most effects on one are effects on all.
    turnover
        From the search sheet: one-way, a day, over gross; None counts as slow, like a portfolio that never trades.
    sleeves
        Horizon of the evaluation in days. A portfolio of so many sleeves trades at most `1 / sleeves` a day, so
        `turnover * sleeves` is the share of a sleeve that is replaced.
    """
    cause = "_".join(find_stems(hypothesis.mechanism)) or hypothesis.mechanism.casefold()
    kinds = {FIELD_UNITS[name].name if name in FIELD_UNITS else name for name in reads}
    read_kinds = f"({'+'.join(sorted(kinds))})" if hypothesis.either_way else ""
    days, replaced = hypothesis.horizon_days, (turnover or 0.0) * sleeves
    horizon = "week" if days <= WEEK_HORIZON_DAYS else "month" if days <= MONTH_HORIZON_DAYS else "longer"
    pace = "slow" if replaced < SLOW_TURNOVER else "middle" if replaced <= FAST_TURNOVER else "fast"
    return f"{cause}{read_kinds}/{horizon}/{pace}"


def place_in_niches(search: SearchContext, branch: str, attempts: Iterable[FormulaAttempt]) -> list[Mark]:
    """Return the marks of a branch's scored formulas, each with its niche.

    The journal records every mark, and the first formula of each niche.
    """
    stated = read_hypothesis(search.journal, branch)
    memory = read_memory(search.journal, branch.split("/")[0])
    marks = []
    for attempt in attempts:
        if attempt.refusal is None:
            hypothesis = stated.mine() if attempt.data_mined else stated
            reads = _find_fields(attempt.text, memory) if hypothesis.either_way else frozenset()
            cell = name_niche(hypothesis, reads, finite_or_none(attempt.sheet.turnover), search.horizon_days)
            search.journal.record("niche", cell, {"id": attempt.id, "key": attempt.key})
            mark = Mark(attempt.sheet.t_or_zero, attempt.id, attempt.key, cell)
            search.journal.record("mark", mark.id, mark._asdict())
            marks.append(mark)
    return marks


def recall_marks(search: SearchContext, ids: Iterable[str]) -> list[Mark]:
    """Return the marks of some formulas, also of those that the archive has dropped."""
    return [Mark(**body) for name in ids if (body := search.journal.read("mark", name))]


def rank_all(marks: Iterable[Mark]) -> list[Mark]:
    """Return all marks, strongest first, one per id."""
    listed = list(marks)
    return rank_marks(listed, len(listed))


def _first_of_each_cell(ordered: Iterable[Mark], cell: Callable[[Mark], Hashable]) -> list[Mark]:
    firsts: dict[Hashable, Mark] = {}
    for mark in ordered:
        firsts.setdefault(cell(mark), mark)
    return list(firsts.values())


def _get_niche(mark: Mark) -> str:
    return mark.niche


def _parse_round(branch: str) -> int:
    return parse_round(branch.split("/")[0])


def _find_fields(text: str, memory: RoundMemory) -> frozenset[str]:
    """Return the fields that a formula reads; none if it cannot be parsed."""
    try:
        fields = parse(text, fields=memory.fields, groups=memory.groups).fields
        return frozenset(fields) & frozenset(memory.fields)
    except FactorError:
        return frozenset()
