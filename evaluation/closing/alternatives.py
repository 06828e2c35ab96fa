"""For information at the close: other multiple-testing rules on the trials, and cluster-deflated Sharpe ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...evidence.gate import TrialEvidence, deflated_sharpe_of
from ...evidence.multiple_testing import RuleDecision, apply_rules
from ...evidence.scoring import round_significant
from ...ledger import Ledger, Trial, VerdictRow
from .search_records import StreamRule, StreamRules

UNKNOWN_P_VALUE = 1.0
"""The p-value of a trial without a known outcome: declared, or cut short. It counts as no discovery."""


@dataclass(frozen=True)
class TrialStream:
    """The stream of trials that share days and symbols with a selection window, and the verdicts of one run on it.

    Attributes
    ----------
    declared
        Trials made elsewhere; they come first.
    trials
        The workspace's trials, by number.
    level
        Significance level of the whole stream.
    """

    ledger: Ledger
    declared: int
    trials: Sequence[Trial]
    verdicts: Mapping[str, VerdictRow]
    level: float

    @cached_property
    def p_values(self) -> list[float]:
        """Return the p-value of each trial of the stream."""
        p_values = [float((trial.outcome or {}).get("p_value", UNKNOWN_P_VALUE)) for trial in self.trials]
        return [UNKNOWN_P_VALUE] * self.declared + p_values

    def summarise(self) -> StreamRules:
        """Return the decisions of all rules; the line of the gate's own rule has its recorded decisions."""
        return StreamRules(
            level=self.level,
            looks=len(self.p_values),
            declared=self.declared,
            unfinished=sum(trial.outcome is None for trial in self.trials),
            rules=tuple(self._summarise_rule(decision) for decision in apply_rules(self.p_values, self.level)),
        )

    def _summarise_rule(self, decision: RuleDecision) -> StreamRule:
        rule = decision.rule
        if rule.decides:
            discoveries, threshold = self._find_discoveries(), self._find_last_level()
        else:
            discoveries = [self.trials[place - 1 - self.declared] for place in decision.discoveries]
            threshold = decision.threshold
        own_trials = {(name, row.metrics["trial"]) for name, row in self.verdicts.items()}
        return StreamRule(
            rule=rule.key,
            name=rule.name,
            holds=rule.holds,
            means=rule.means,
            decides=rule.decides,
            found=len(discoveries),
            accepts=tuple(
                sorted(trial.subject for trial in discoveries if (trial.subject, trial.number) in own_trials)
            ),
            p_asked=None if threshold is None else round_significant(threshold),
        )

    def _find_discoveries(self) -> list[Trial]:
        return [trial for trial in self.trials if (trial.outcome or {}).get("passed") is True]

    def _find_last_level(self) -> float | None:
        """Return the significance threshold that the gate gave to its last finished trial."""
        levels = [trial.outcome["level"] for trial in self.trials if trial.outcome]
        return float(levels[-1]) if levels else None

    def deflate_sharpe(self, name: str, clusters: int | None) -> float | None:
        """Return the deflated Sharpe ratio of a factor's trial with clusters as tries; None if it had no trial."""
        row = self.verdicts.get(name)
        number = row.metrics["trial"] if row else None
        trial = next((trial for trial in self.trials if (trial.subject, trial.number) == (name, number)), None)
        digest = (trial.outcome or {}).get("seen") if trial else None
        if not digest or not clusters:
            return None
        return deflated_sharpe_of(TrialEvidence.read(self.ledger.objects.get(digest)), clusters)
