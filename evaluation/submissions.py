"""Submissions to the acceptance gate: of single factors and of sets; accepted ones are kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evidence import SET_PREFIX, Claim, EvidenceError
from ..evidence.gate import (
    AcceptanceGate,
    Case,
    Surroundings,
    Verdict,
    Weighing,
    daily_sharpes,
    make_trials_spent_error,
    write_combination_formula,
)
from ..factors import Expression, ParseError
from ..factors.similarity import KnownFormula
from ..ledger import Evaluation, LibraryRow
from ..library import MEMBER
from .budget import BudgetMeter
from .score_log import RunLog
from .search_scoring import SearchScoring

if TYPE_CHECKING:
    from ..portfolio import CombinationPart, JudgedRun

MIN_SET_MEMBERS, MAX_SET_MEMBERS = 2, 10
MIN_WEIGHT = 0.01
"""A member with a smaller share of the combination is left out."""
WEIGHING_EVENT = "weighing"
"""Kind of the event that records what a combination holds of each member."""


@dataclass(frozen=True)
class Submissions:
    """Submits scored factors of one run to the gate, and records the verdicts; `turn` is the lock of the evaluator."""

    gate: AcceptanceGate
    scoring: SearchScoring
    meter: BudgetMeter
    turn: AbstractContextManager[Any] = field(repr=False, compare=False)

    @property
    def log(self) -> RunLog:
        """Return what the run recorded."""
        return self.meter.log

    def submit(self, ids: Sequence[str]) -> list[Verdict]:
        """Submit scored factors to the gate, in the given order; each that reaches statistics is a trial.

        Raises
        ------
        EvidenceError
            An id was never scored in this run.
        TrialsSpent
            The budget of trials ended; earlier verdicts stay recorded.
        """
        with self.turn:
            return self._submit(ids)

    def _submit(self, ids: Sequence[str]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        batch: list[KnownFormula] = []
        for factor_id in dict.fromkeys(ids):
            case = self._make_case(factor_id)
            verdicts.append(self._judge(case, batch))
            batch.append(KnownFormula.of(factor_id, case.expression, "earlier in this batch"))
        return verdicts

    def submit_set(self, ids: Sequence[str]) -> Verdict:
        """Submit the combination of two to ten scored factors to the gate: the book that would be traded, as one trial.

        Weights and trading rate are chosen on search, and do not change afterwards.
        """
        with self.turn:
            return self._submit_set(ids)

    def _submit_set(self, ids: Sequence[str]) -> Verdict:
        members = tuple(self._make_case(factor_id) for factor_id in sorted(set(ids)))
        if not MIN_SET_MEMBERS <= len(members) <= MAX_SET_MEMBERS:
            allowed_text = f"{MIN_SET_MEMBERS} to {MAX_SET_MEMBERS}"
            raise EvidenceError(
                f"A combination has {allowed_text} members.", field="members", got=len(members), allowed=allowed_text
            )
        members, weighing, expression = self._write_combination(members)
        scores = self.log.scores
        if expression.id not in scores and self.meter.trials_left() <= 0:
            raise make_trials_spent_error()
        row = scores.get(expression.id) or self.scoring.record(expression, f"{SET_PREFIX}{expression.id}")
        self.log.ledger.events.record(self.log.run, WEIGHING_EVENT, expression.id, weighing.record())
        return self._judge(replace(self._make_set_case(expression, members, row), weighing=weighing), [])

    def _write_combination(self, members: tuple[Case, ...]) -> tuple[tuple[Case, ...], Weighing, Expression]:
        """Return the members that are held, their weights and the formula; one too large loses its faintest members."""
        while True:
            weighing = self._weigh(members)
            members = tuple(member for member in members if member.expression.id in weighing.weights)
            try:
                return members, weighing, self.scoring.factors.read(write_combination_formula(members, weighing))
            except ParseError:
                if len(members) == MIN_SET_MEMBERS:
                    raise
                by_weight = sorted(weighing.weights, key=lambda name: (weighing.weights[name], name))
                members = tuple(member for member in members if member.expression.id != by_weight[0])

    def _weigh(self, members: Sequence[Case]) -> Weighing:
        from ..portfolio import CombinationPart

        parts = [CombinationPart(member.expression.id, member.sign, member.values) for member in members]
        return weigh_on_search(self.gate, parts)

    def _make_set_case(self, expression: Expression, members: tuple[Case, ...], row: Evaluation) -> Case:
        statement = f"{len(members)} factors, weighed on search, forecast together"
        claim = Claim(
            f"{SET_PREFIX}{expression.id}",
            "set",
            statement,
            1,
            self.scoring.settings.horizon_days,
            tuple(sorted(expression.fields)),
        )
        ledger, run = self.log.ledger, self.log.run
        ledger.events.record(run, "set", expression.id, [part.expression.id for part in members])
        ledger.events.record(run, "claim", claim.id, claim.record())
        return Case(expression, claim, self.scoring.factors.values(expression), row.sheet["rank_ic"], members)

    def _make_case(self, factor_id: str) -> Case:
        row, claim = self.log.read_scored(factor_id)
        expression = self.scoring.factors.read(row.text)
        return Case(expression, claim, self.scoring.factors.values(expression), row.sheet["rank_ic"])

    def _judge(self, case: Case, batch: Sequence[KnownFormula]) -> Verdict:
        name, ledger, run = case.expression.id, self.log.ledger, self.log.run
        earlier = next((row for row in ledger.verdicts.of(run) if row.factor_id == name), None)
        verdict = Verdict.restored(earlier) if earlier else self.gate.judge(case, self._collect_surroundings(batch))
        if earlier is None:
            ledger.verdicts.add(verdict.row(run))
        if verdict.word != "accepted":
            return verdict
        self._keep_accepted(case, verdict)
        return replace(verdict, word=self.scoring.library.reviews.word(verdict.row(run)))

    def _collect_surroundings(self, batch: Sequence[KnownFormula]) -> Surroundings:
        scores, library = self.log.scores, self.scoring.library
        ratios = daily_sharpes(scores.lines[name]._asdict() for name in sorted(scores))
        known = library.catalogue().with_batch(batch)
        return Surroundings(known, library.published_values, library.values, ratios, self.meter.trials_left())

    def _keep_accepted(self, case: Case, verdict: Verdict) -> None:
        log, library = self.log, self.scoring.library
        expression, score = case.expression, log.scores.get(case.expression.id)
        sheet = dict(score.sheet) if score else {"fields": sorted(expression.fields)}
        entry = LibraryRow(expression.id, expression.text, expression.shown, case.claim.id, log.run, sheet)
        proven = {test["id"] for test in (verdict.selection or {}).get("members", ()) if test["accepted"]}
        rows = [entry, *(self._make_member_row(case, part, proven) for part in case.members)]
        if library.reviews.required:
            library.reviews.wait(entry, rows[1:])
        else:
            for row in rows:
                log.ledger.library.add(row)
        library.refresh()

    def _make_member_row(self, case: Case, part: Case, proven: Collection[str]) -> LibraryRow:
        """Return the library row of a member of an accepted combination: it claims nothing alone."""
        expression, sheet = part.expression, self.log.scores[part.expression.id].sheet
        terms = {"combination": case.expression.id, "proven_alone": expression.id in proven}
        return LibraryRow(
            expression.id, expression.text, expression.shown, part.claim.id, self.log.run, dict(sheet), MEMBER, terms
        )


def weigh_on_search(judged: JudgedRun, parts: Sequence[CombinationPart]) -> Weighing:
    """Return weights and trading rate that the combiner of the settings learns from search days alone."""
    from ..portfolio import Combining

    combination = Combining(judged, parts, last_window="search").combine_as_set()
    learnt = np.maximum(combination.weights[judged.windows.search.stop - 1], 0.0)
    shares = np.round(learnt / learnt.sum(), 3) if learnt.sum() > 0 else learnt
    kept = [place for place, share in enumerate(shares) if share >= MIN_WEIGHT]
    if len(kept) < min(MIN_SET_MEMBERS, len(parts)):  # one factor alone is no combination
        equal = {part.factor_id: 1 / len(parts) for part in parts}
        return Weighing(equal, combination.rate, chosen="the learnt weights leave fewer than two members")
    weights = {parts[place].factor_id: float(shares[place]) for place in kept}
    return Weighing(weights, combination.rate, combination.kind, combination.chosen)
