"""What the ledger holds on one run, read without any panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..factors import Expression, parse
from ..ledger import Evaluation, Ledger, Run, Trial, VerdictRow
from .gate.verdict import Case
from .proposal import Claim
from .settings import RECORDED_CONTEXT, EvidenceSettings, complete_settings


def scored_claims(ledger: Ledger, run: str) -> dict[str, Claim]:
    """Return each scored factor's claim: that of the attempt with the smallest key, whatever came first in time."""
    bodies = {event.key: event.body for event in ledger.events(run, "claim")}
    found: dict[str, Claim] = {}
    for attempt in sorted(ledger.attempts(run), key=lambda one: one.key):
        if attempt.stage == "scored" and attempt.factor_id and attempt.factor_id not in found:
            found[attempt.factor_id] = Claim.from_record(bodies[attempt.hypothesis])
    return found


@dataclass(frozen=True)
class RunArchive:
    """Reads one run's record."""

    ledger: Ledger
    run: Run

    @cached_property
    def rules(self) -> EvidenceSettings | None:
        """Return the settings that the run was judged by; None where an old run did not write them down."""
        settings = self.run.config.get("settings") or self.run.config.get("rules")
        if not settings:
            return None
        return EvidenceSettings.model_validate(
            complete_settings(settings["evidence"]), context={RECORDED_CONTEXT: True}
        )

    @cached_property
    def evaluations(self) -> Mapping[str, Evaluation]:
        """Return the scores on search by factor id."""
        return {row.factor_id: row for row in self.ledger.evaluations(self.run.id)}

    @cached_property
    def verdicts(self) -> Mapping[str, VerdictRow]:
        """Return the verdicts by factor id."""
        return {row.factor_id: row for row in self.ledger.verdicts(self.run.id)}

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """Return the members of each set."""
        return {event.key: event.body for event in self.ledger.events(self.run.id, "set")}

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Return the hypothesis of each scored factor and set."""
        bodies = {event.key: event.body for event in self.ledger.events(self.run.id, "claim")}
        sets = {name: Claim.from_record(bodies[f"set-{name}"]) for name in self.members}
        return {**sets, **scored_claims(self.ledger, self.run.id)}

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """Return every trial of the workspace, in the order of opening."""
        return self.ledger.trials()

    def trial(self, row: VerdictRow) -> Trial | None:
        """Return the trial that a verdict rests on: that of its number, on its subject, in its window."""
        seen = (row.metrics["selection"] or {}).get("window", {})
        days = (seen.get("first"), seen.get("last"))
        same = [each for each in self.trials if (each.subject, each.number) == (row.factor_id, row.metrics["trial"])]
        near = [each for each in same if (each.window.first_day, each.window.last_day) == days]
        return next(iter([*near, *same]), None)

    def expression(self, factor_id: str) -> Expression:
        """Read a scored formula again, from its text and the fields that it was written of."""
        row = self.evaluations[factor_id]
        return parse(row.text, fields=tuple(row.sheet["fields"]))

    def case(self, factor_id: str) -> Case:
        """Return what was put before the gate, without its values."""
        members = tuple(self.case(name) for name in self.members.get(factor_id, ()))
        rank_ic = self.evaluations[factor_id].sheet["rank_ic"]
        nothing = np.empty((0, 0), dtype=np.float32)
        return Case(self.expression(factor_id), self.claims[factor_id], nothing, rank_ic, members)
