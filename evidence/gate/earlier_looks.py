"""What a candidate is judged beside: all that was looked at on its selection days, and what was accepted there.

A person or a model that heard the outcomes of earlier tests can compose a formula of those that did well. Its test
would then favour it, whatever its threshold. So a trial tests what is left of the candidate's ranks without the ranks
of every formula that was looked at on those days. Tests of one list that was fixed before the first of them learn
nothing from each other, so of these only the accepted ones are removed.

The removal reads ranks and no return. It is a regression over blocks of about a quarter: within one day there are too
few names for many regressors, and over all days a formula with weights that change would keep what it learned. The
ranks of the days before are removed as well, as many as a label spans: labels overlap, so yesterday's values of a
formula share most of its returns. What is removed is ranked among the names that the candidate has on that day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...factors import Expression, FactorError, parse, rank_rows
from ...ledger import Ledger, Trial
from ..errors import EvidenceError
from ..multiple_testing.families import list_parts
from ..originality.incremental import cut_ranks
from ..originality.published import published_expressions
from ..values.computing import Computing
from ..windows import Window, Windows
from .verdict import Case

Values = NDArray[np.float32]
Frame = NDArray[np.float64]
PLAN_EVENT = "agents.tests"
"""Kind of the event in which a campaign records its list of tests: members of the combination, and single factors."""
BASELINE_EVENT, PUBLISHED = "baseline", "published"
"""Kind of the event with the published baseline of a campaign; and the source of its formulas, which no run scored."""
BLOCK_DAYS = 63
MIN_RANK_VARIANCE_LEFT = 0.25
"""Share of the variance of a candidate's ranks that must be left on a block; with less, the block is missing."""
MIN_EIGENVALUE = 1e-10
"""Share of the largest eigenvalue below which regressors count as dependent."""
MAX_DESIGN_BYTES = 1 << 28
"""Bytes of regressors that are kept for the next candidate with the same names."""
SAME_RANK_CORRELATION = 0.95
"""Rank correlation from which an earlier day's ranks say nothing that a later day's do not, and are not removed."""


@dataclass(frozen=True)
class EarlierLooks:
    """Finds and removes what was looked at before a trial, for one run; `horizon` is the days that a label spans."""

    ledger: Ledger
    run: str
    windows: Windows
    computing: Computing | None
    horizon: int
    _ranks: dict[tuple[str, str, Window], Values | None] = field(default_factory=dict, repr=False)
    _removals: dict[tuple[tuple[tuple[str, str], ...], Window], Removal] = field(default_factory=dict, repr=False)

    def beside(self, case: Case, trial: Trial) -> tuple[list[str], list[str]]:
        """Return the ids of the formulas that a trial is judged beside, and of those that this panel cannot compute.

        They are the looks at its selection days by other lists of tests, the accepted factors and members of accepted
        combinations, and the members of published baselines that were shown on these days.
        """
        sources, window = self._list_sources(case, trial), self.windows.selection
        missing = {source for source in sources if self._get_ranks(source, window) is None}
        removed = sorted({name for run, name in sources if (run, name) not in missing})
        return removed, sorted({name for _, name in missing} - {*removed})

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
        removal = self._get_removal(sources, window)
        if not removal.removed:
            return None
        residual = np.full(values.shape, np.nan, np.float32)
        window.cut(residual)[:] = removal(cut_ranks(values, window))
        return residual

    def _get_removal(self, sources: Sequence[tuple[str, str]], window: Window) -> Removal:
        """Return what removes some formulas on a window; only the last one is kept, since its arrays are large."""
        key = (tuple(sources), window)
        if key not in self._removals:
            looks = [ranks for source in sources if (ranks := self._get_ranks(source, window)) is not None]
            self._removals.clear()
            self._removals[key] = Removal([frame for ranks in looks for frame in list_lags(ranks, self.horizon)])
        return self._removals[key]

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
        looks = {(other.run, name) for other in foreign for name in list_parts(self.ledger, other)}
        shown = {source for run in {other.run for other in foreign} - {self.run} for source in self._list_shown(run)}
        return sorted({*looks, *shown, *self._list_accepted(past)}, key=lambda source: (source[1], source[0]))

    def _list_shown(self, run: str) -> list[tuple[str, str]]:
        """Return the published formulas whose combination a run showed on its selection days, at its close."""
        return [
            (PUBLISHED, str(member["name"]))
            for event in self.ledger.events.of(run, BASELINE_EVENT)
            for member in event.body.get("members", ())
        ]

    def _list_accepted(self, past: Sequence[Trial]) -> list[tuple[str, str]]:
        accepted = [trial for trial in past if (trial.outcome or {}).get("passed") is True]
        return [(trial.run, name) for trial in accepted for name in sorted(list_parts(self.ledger, trial))]

    def _read_plan(self, case: Case) -> frozenset[str]:
        """Return the ids on the recorded list of tests that the case is on; empty where it is on none."""
        parts = {part.expression.id for part in case.parts}
        for event in self.ledger.events.of(self.run, PLAN_EVENT):
            if parts <= {*event.body["combination" if case.members else "factors"]}:
                return frozenset([*event.body["combination"], *event.body["factors"]])
        return frozenset()

    def _is_planned(self, trial: Trial, planned: frozenset[str]) -> bool:
        members = list_parts(self.ledger, trial) - {trial.subject}
        return trial.subject in planned or (bool(members) and members <= planned)

    def _get_ranks(self, source: tuple[str, str], window: Window) -> Values | None:
        """Return the ranks of a formula on a window and on the horizon's days before it, `[horizon + D, N]`.

        NaN missing; None where it cannot be computed on this panel.
        """
        key = (*source, window)
        if key not in self._ranks:
            values = self._compute_values(*source)
            if values is not None:
                rows = values[max(window.start - self.horizon, 0) : window.stop]
                ranks = rank_rows(np.ascontiguousarray(rows)).astype(np.float32)
                missing_days = self.horizon + window.days - len(ranks)
                values = np.pad(ranks, ((missing_days, 0), (0, 0)), constant_values=np.nan)
            self._ranks[key] = values
        return self._ranks[key]

    def _read_expression(self, run: str, name: str) -> Expression | None:
        """Return a formula on record, or a published one by its name; None where there is none."""
        if run == PUBLISHED:
            return next((factor for other, factor, _ in published_expressions() if other == name), None)
        row = self.ledger.evaluations.get(run, name)
        return None if row is None else parse(row.text, fields=tuple(row.sheet["fields"]))

    def _compute_values(self, run: str, name: str) -> Values | None:
        if self.computing is None:
            return None
        try:
            expression = self._read_expression(run, name)
            if expression is None:
                return None
            edges = (self.windows.search.stop, self.windows.selection.stop)
            return self.computing.sweep(expression, edges).values
        except (FactorError, EvidenceError):
            return None


def list_lags(ranks: Values, horizon: int) -> list[Values]:
    """Return the ranks of a formula on a window, and those of the days before that say something else.

    Parameters
    ----------
    ranks
        Ranks `[horizon + D, N]` of the window's D days and the days before it.
    horizon
        Days back at most.

    Returns
    -------
    list of array
        `[D, N]` each, the window's own days first. A day that ranks the names nearly as the last one kept is left out.
    """
    frames = [ranks[horizon - lag : len(ranks) - lag] for lag in range(horizon + 1)]
    kept = frames[:1]
    for frame in frames[1:]:
        both = ~np.isnan(frame) & ~np.isnan(kept[-1])
        if both.any() and abs(np.corrcoef(frame[both], kept[-1][both])[0, 1]) < SAME_RANK_CORRELATION:
            kept.append(frame)
    return kept


@dataclass(frozen=True)
class Removal:
    """Removes ranks of other formulas from those of candidates, by least squares over blocks of about 63 days.

    Attributes
    ----------
    removed
        Values or ranks of the others `[D, N]` each, NaN missing. They are ranked among the names that a candidate has
        on the day, and count as in the middle where they are missing.
    """

    removed: Sequence[NDArray[Any]]
    _designs: dict[tuple[int, bytes], tuple[Frame, Frame]] = field(default_factory=dict, repr=False)

    def __call__(self, ranks: Frame) -> Frame:
        """Return the residual of ranks on the others.

        Parameters
        ----------
        ranks
            Centred ranks `[D, N]`, NaN missing.

        Returns
        -------
        NDArray[np.float64]
            Residual `[D, N]`. NaN where `ranks` is, and on blocks on which less than a quarter of the variance is left.
        """
        residual = np.full(ranks.shape, np.nan)
        for rows in np.array_split(np.arange(len(ranks)), max(round(len(ranks) / BLOCK_DAYS), 1)):
            block = slice(rows[0], rows[-1] + 1)
            present = ~np.isnan(ranks[block])
            design, inverse = self._prepare(block, present)
            target = ranks[block][present]
            left = target - (inverse @ (design @ target)) @ design
            if left @ left >= MIN_RANK_VARIANCE_LEFT * (target @ target) > 0:
                residual[block][present] = left
        return residual

    def _prepare(self, block: slice, present: NDArray[np.bool_]) -> tuple[Frame, Frame]:
        """Return the regressors of a block `[removed, cells]` and the pseudo-inverse of their products.

        Both are kept for candidates with the same names: the subsets of a combination have them, up to 1,023.
        """
        key = (block.start, np.packbits(present).tobytes())
        if key not in self._designs:
            design = np.stack([_rank_among(frame[block], present) for frame in self.removed])
            if sum(kept.nbytes for kept, _ in self._designs.values()) + design.nbytes > MAX_DESIGN_BYTES:
                self._designs.clear()
            inverse: Frame = np.linalg.pinv(design @ design.T, rcond=MIN_EIGENVALUE, hermitian=True).astype(np.float64)
            self._designs[key] = design, inverse
        return self._designs[key]


def _rank_among(values: NDArray[Any], present: NDArray[np.bool_]) -> Frame:
    """Return centred ranks of each day among the names that are present `[cells]`, 0 where the value is missing."""
    ranked = rank_rows(np.where(present, values, np.nan).astype(np.float32))
    return np.nan_to_num(ranked[present].astype(np.float64) - 0.5)
