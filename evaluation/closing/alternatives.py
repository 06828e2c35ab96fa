"""What stands beside the gate at the close: what other rules would have said of the looks, and ratios deflated anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...evidence.gate import TrialEvidence, deflated_sharpe_of
from ...evidence.multiple_testing import RuleDecision, apply_rules
from ...evidence.scoring import round_significant
from ...ledger import Ledger, Trial, VerdictRow

__all__ = ["TrialStream"]

UNKNOWN_P_VALUE = 1.0
"""The p-value of a look whose outcome nobody here knows: declared, or cut short. It found nothing."""


@dataclass(frozen=True)
class TrialStream:
    """The stream of looks that share days and names with a selection window, and the verdicts of one run on it.

    Attributes
    ----------
    declared
        Looks made elsewhere; they come first.
    trials
        The workspace's looks, by number.
    """

    ledger: Ledger
    declared: int
    trials: Sequence[Trial]
    verdicts: Mapping[str, VerdictRow]
    level: float

    @cached_property
    def p_values(self) -> list[float]:
        """Return the p-value of each look of the stream."""
        known = [float((trial.outcome or {}).get("p_value", UNKNOWN_P_VALUE)) for trial in self.trials]
        return [UNKNOWN_P_VALUE] * self.declared + known

    def record(self) -> dict[str, Any]:
        """Return what each rule says; the line of the rule that decides is what was decided, not what would be."""
        return {
            "level": self.level,
            "looks": len(self.p_values),
            "declared": self.declared,
            "unfinished": sum(trial.outcome is None for trial in self.trials),
            "rules": [self._line(said) for said in apply_rules(self.p_values, self.level)],
        }

    def _line(self, said: RuleDecision) -> dict[str, Any]:
        rule = said.rule
        found = (
            self._find_discoveries()
            if rule.decides
            else [self.trials[place - 1 - self.declared] for place in said.found]
        )
        own = {(name, row.metrics["trial"]) for name, row in self.verdicts.items()}
        asked = self._asked() if rule.decides else said.asked
        return {
            "rule": rule.key,
            "name": rule.name,
            "holds": rule.holds,
            "means": rule.means,
            "decides": rule.decides,
            "found": len(found),
            "accepts": sorted(trial.subject for trial in found if (trial.subject, trial.number) in own),
            "p_asked": None if asked is None else round_significant(asked),
        }

    def _find_discoveries(self) -> list[Trial]:
        return [trial for trial in self.trials if (trial.outcome or {}).get("passed") is True]

    def _asked(self) -> float | None:
        """Return the level that the gate gave to its last finished look."""
        levels = [trial.outcome["level"] for trial in self.trials if trial.outcome]
        return float(levels[-1]) if levels else None

    def deflated(self, name: str, clusters: int | None) -> float | None:
        """Return the deflated Sharpe ratio of a factor's look, charged for clusters only; None if it was never looked at."""
        row = self.verdicts.get(name)
        number = row.metrics["trial"] if row else None
        look = next((one for one in self.trials if (one.subject, one.number) == (name, number)), None)
        seen = (look.outcome or {}).get("seen") if look else None
        return deflated_sharpe_of(TrialEvidence.read(self.ledger.get(seen)), clusters) if seen and clusters else None
