"""What a candidate is judged beside: all that was looked at on its selection days, and what was accepted there.

A person or a model that heard the outcomes of earlier tests can compose a formula of those that did well. Its test
would then favour it, whatever its threshold. So a trial tests what is left of the candidate's ranks without the ranks
of every formula that was looked at on those days (`beside`). Tests of one list that was fixed before the first of them
learn nothing from each other, so of these only the accepted ones are removed.

The removal reads ranks and no return. It is a regression over blocks of a quarter: within one day there are too few
names for many regressors, and over all days a formula with weights that change would keep what it learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression, FactorError, parse
from ...ledger import Ledger, Trial
from ..errors import EvidenceError
from ..multiple_testing.families import list_parts
from ..originality.incremental import cut_ranks
from ..values.computing import Computing
from ..windows import Window, Windows
from .verdict import Case

Values = NDArray[np.float32]
Frame = NDArray[np.float64]
PLAN_EVENT = "agents.tests"
"""Kind of the event in which a campaign records its list of tests: members of the combination, and single factors."""
BLOCK_DAYS = 63
MIN_RANK_VARIANCE_LEFT = 0.1
"""Share of the variance of a candidate's ranks that must be left on a block; with less, the block is missing."""


@dataclass(frozen=True)
class EarlierLooks:
    """Finds and removes what was looked at before a trial, for one run."""

    ledger: Ledger
    run: str
    windows: Windows
    computing: Computing | None
    _ranks: dict[tuple[str, str, Window], Values | None] = field(default_factory=dict, repr=False)

    def beside(self, case: Case, trial: Trial) -> list[str]:
        """Return the ids of the formulas that a trial is judged beside, sorted.

        These are the looks at its selection days by other lists of tests, and the accepted factors and members of
        accepted combinations. A formula that cannot be computed on this panel is among them, but removes nothing.
        """
        return sorted({name for _, name in self._list_sources(case, trial)})

    def accepted(self, case: Case) -> list[str]:
        """Return the ids of what was accepted on the selection days so far, members included, sorted."""
        return sorted({name for _, name in self._list_accepted(self._list_past(None)) if name != case.expression.id})

    def remove(self, values: Values, case: Case, trial: Trial) -> Values | None:
        """Return the ranks of a candidate on selection without those that its trial is judged beside.

        Parameters
        ----------
        values
            Factor values `[T, N]`, NaN missing.

        Returns
        -------
        Values or None
            Residual ranks `[T, N]`, NaN outside selection; None where there is nothing to remove.
        """
        return self._remove(values, self._list_sources(case, trial), self.windows.selection)

    def remove_accepted(self, values: Values, case: Case) -> Values | None:
        """Return the ranks of a candidate on search without what was accepted; None where nothing was. As `remove`."""
        sources = [source for source in self._list_accepted(self._list_past(None)) if source[1] != case.expression.id]
        return self._remove(values, sources, self.windows.search)

    def _remove(self, values: Values, sources: Sequence[tuple[str, str]], window: Window) -> Values | None:
        removed = [ranks for source in sources if (ranks := self._get_ranks(source, window)) is not None]
        if not removed:
            return None
        residual = np.full(values.shape, np.nan, np.float32)
        window.cut(residual)[:] = remove_by_block(cut_ranks(values, window), removed)
        return residual

    def _list_past(self, trial: Trial | None) -> list[Trial]:
        """Return the trials on the selection days, those before `trial` if it is given."""
        if trial is None:
            return self.ledger.trials.overlapping(self.windows.key(self.windows.selection))
        past = self.ledger.trials.overlapping(trial.window, trial.opened_at)
        return [other for other in past if other.id < trial.id]

    def _list_sources(self, case: Case, trial: Trial) -> list[tuple[str, str]]:
        """Return run and id of every formula to remove, in a fixed order."""
        past = self._list_past(trial)
        planned = self._read_plan(case)
        foreign = [other for other in past if other.run != self.run or not self._is_planned(other, planned)]
        looks = [(other.run, name) for other in foreign for name in sorted(list_parts(self.ledger, other))]
        return sorted({*looks, *self._list_accepted(past)}, key=lambda source: (source[1], source[0]))

    def _list_accepted(self, past: Sequence[Trial]) -> list[tuple[str, str]]:
        accepted = [trial for trial in past if (trial.outcome or {}).get("passed") is True]
        return [(trial.run, name) for trial in accepted for name in sorted(list_parts(self.ledger, trial))]

    def _read_plan(self, case: Case) -> frozenset[str]:
        """Return the ids on the recorded list of tests that the case is on; empty where it is on none."""
        parts = {part.expression.id for part in case.parts}
        for event in self.ledger.events.of(self.run, PLAN_EVENT):
            named = {*event.body["combination"], *event.body["factors"]}
            if parts <= named:
                return frozenset(named)
        return frozenset()

    def _is_planned(self, trial: Trial, planned: frozenset[str]) -> bool:
        members = list_parts(self.ledger, trial) - {trial.subject}
        return trial.subject in planned or (bool(members) and members <= planned)

    def _get_ranks(self, source: tuple[str, str], window: Window) -> Values | None:
        """Return centred ranks `[D, N]` of a formula on record, 0 where missing; None where it cannot be computed."""
        key = (*source, window)
        if key not in self._ranks:
            values = self._compute_values(*source)
            ranks = None if values is None else np.nan_to_num(cut_ranks(values, window))
            self._ranks[key] = None if ranks is None else ranks.astype(np.float32)
        return self._ranks[key]

    def _compute_values(self, run: str, name: str) -> Values | None:
        row = self.ledger.evaluations.get(run, name)
        if row is None or self.computing is None:
            return None
        try:
            expression: Expression = parse(row.text, fields=tuple(row.sheet["fields"]))
            edges = (self.windows.search.stop, self.windows.selection.stop)
            return self.computing.sweep(expression, edges).values
        except (FactorError, EvidenceError):
            return None


def remove_by_block(ranks: Frame, removed: Sequence[NDArray[Any]]) -> Frame:
    """Return the residual of ranks on others by least squares over blocks of 63 days.

    Parameters
    ----------
    ranks
        Centred ranks `[D, N]`, NaN missing.
    removed
        Centred ranks of the others `[D, N]` each, 0 where missing.

    Returns
    -------
    NDArray[np.float64]
        Residual `[D, N]`. NaN where `ranks` is, and on blocks on which less than a tenth of the variance is left.
    """
    residual = np.full(ranks.shape, np.nan)
    for start in range(0, len(ranks), BLOCK_DAYS):
        block = slice(start, start + BLOCK_DAYS)
        present = ~np.isnan(ranks[block])
        target = ranks[block][present]
        design = np.column_stack([frame[block][present] for frame in removed]).astype(np.float64)
        weights = np.linalg.lstsq(design.T @ design, design.T @ target, rcond=1e-10)[0]
        left = target - design @ weights
        if left @ left >= MIN_RANK_VARIANCE_LEFT * (target @ target) > 0:
            residual[block][present] = left
    return residual
