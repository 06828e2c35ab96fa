"""Read the ledger's record of one run, without a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..factors import Expression, parse
from ..ledger import Evaluation, Ledger, Run, Trial, VerdictRow
from .gate.verdict import Case
from .proposal import MECHANISM_EVENT, Claim
from .settings import RECORDED_CONTEXT, EvidenceSettings, complete_settings


def scored_claims(ledger: Ledger, run: str) -> dict[str, Claim]:
    """Return the claim of each scored factor: that of the attempt with the smallest key, whatever its time.

    A mechanism that was stated after scoring, and stands, takes its place.
    """
    bodies = {event.key: event.body for event in ledger.events.of(run, "claim")}
    statements = {event.key: event.body for event in ledger.events.of(run, MECHANISM_EVENT)}
    claims: dict[str, Claim] = {}
    for attempt in sorted(ledger.attempts.of(run), key=lambda attempt: attempt.key):
        if attempt.stage == "scored" and attempt.factor_id and attempt.factor_id not in claims:
            claim = Claim.from_record(bodies[attempt.hypothesis])
            claims[attempt.factor_id] = claim.restated(statements.get(attempt.factor_id))
    return claims


@dataclass(frozen=True)
class RunArchive:
    """Reads one run's record."""

    ledger: Ledger
    run: Run

    @cached_property
    def rules(self) -> EvidenceSettings | None:
        """Return the evidence settings of the run; None for an old run that did not record them."""
        settings = self.run.config.get("settings") or self.run.config.get("rules")
        if not settings:
            return None
        return EvidenceSettings.model_validate(
            complete_settings(settings["evidence"]), context={RECORDED_CONTEXT: True}
        )

    @cached_property
    def evaluations(self) -> Mapping[str, Evaluation]:
        """Return the scores on search by factor id."""
        return {row.factor_id: row for row in self.ledger.evaluations.of(self.run.id)}

    @cached_property
    def verdicts(self) -> Mapping[str, VerdictRow]:
        """Return the verdicts by factor id."""
        return {row.factor_id: row for row in self.ledger.verdicts.of(self.run.id)}

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of the members of each set."""
        return {event.key: event.body for event in self.ledger.events.of(self.run.id, "set")}

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Return the hypothesis of each scored factor and set."""
        bodies = {event.key: event.body for event in self.ledger.events.of(self.run.id, "claim")}
        sets = {name: Claim.from_record(bodies[f"set-{name}"]) for name in self.members}
        return {**sets, **scored_claims(self.ledger, self.run.id)}

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """Return every trial of the workspace, in the order of opening."""
        return self.ledger.trials.all()

    def trial(self, row: VerdictRow) -> Trial | None:
        """Return the trial of a verdict: that of its number and subject, preferably in its window."""
        window = (row.metrics["selection"] or {}).get("window", {})
        days = (window.get("first"), window.get("last"))
        same = [
            trial for trial in self.trials if (trial.subject, trial.number) == (row.factor_id, row.metrics["trial"])
        ]
        near = [trial for trial in same if (trial.window.first_day, trial.window.last_day) == days]
        return next(iter([*near, *same]), None)

    def expression(self, factor_id: str) -> Expression:
        """Parse a scored formula from its recorded text and fields."""
        row = self.evaluations[factor_id]
        return parse(row.text, fields=tuple(row.sheet["fields"]))

    def case(self, factor_id: str) -> Case:
        """Return the case that the gate judged, without its values."""
        members = tuple(self.case(name) for name in self.members.get(factor_id, ()))
        rank_ic = self.evaluations[factor_id].sheet["rank_ic"]
        no_values = np.empty((0, 0), dtype=np.float32)
        return Case(self.expression(factor_id), self.claims[factor_id], no_values, rank_ic, members)
