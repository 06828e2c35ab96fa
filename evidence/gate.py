"""The acceptance gate: fixed steps in a fixed order, each deterministic, each reason kept.

The steps before statistics read the search window only and cost nothing. Statistics is a trial: one look at the
selection window, written to the ledger before it is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..factors import Expression
from ..ledger import Ledger, Look, Trial, digest
from .alignment import Claim, against_its_direction, unlike_its_words
from .complexity import breaches
from .errors import TrialsSpent
from .look import Seen, decide
from .originality import Catalogue
from .redundancy import closest
from .score import Scorer
from .settings import EvidenceSettings
from .sheet import tidy
from .verdict import Reason, Verdict, Word
from .windows import Windows

Values = NDArray[np.float32]
LEAST_NAMES, LEAST_DAYS = 0.25, 0.5
"""Share of the universe that a factor must rank on a day, and share of search days on which it must do so."""
PAID = "paid"
"""Kind of the event by which a run is charged for a look that another run had opened and never took."""


@dataclass(frozen=True)
class Case:
    """What is put before the gate: a factor with its claim and search facts, or a set of such factors as one.

    Attributes
    ----------
    values
        `[T, N]`, NaN outside the universe.
    rank_ic
        Mean RankIC on search; its sign is the direction in which the factor is held.
    members
        Empty for a single factor. A set is judged by its members on complexity, originality and words.
    """

    expression: Expression
    claim: Claim
    values: Values
    rank_ic: float | None
    members: tuple[Case, ...] = ()

    @property
    def parts(self) -> tuple[Case, ...]:
        """Return the single factors: the members of a set, or the case itself."""
        return self.members or (self,)


@dataclass(frozen=True)
class Surroundings:
    """What a case is compared with, and how many factors the campaign has tried.

    `sharpes` are the daily gross Sharpe ratios on search of all evaluated factors held as written, so of either sign:
    their variance, times search days over selection days, is that of a worthless factor's ratio on selection.
    """

    known: Catalogue
    library: Mapping[str, Values]
    sharpes: Sequence[float]
    trials_left: int


@dataclass(frozen=True)
class Gate:
    """Judges cases on one data set for one campaign."""

    scorer: Scorer
    windows: Windows
    ledger: Ledger
    settings: EvidenceSettings
    run: str

    def judge(self, case: Case, around: Surroundings) -> Verdict:
        """Return the verdict on a case; a trial is spent only if every step before statistics passed.

        Raises
        ------
        TrialsSpent
            A look would be needed and the campaign has none left.
        """
        reasons = [
            Reason("parse", True, "parses, and its units fit"),
            # Only what the evaluator scored comes here, and it scores nothing that reads a back-adjusted level; a set is
            # a sum of ranks of such factors. Nothing that parses can read a later day.
            Reason("causal", True, f"reads the last {case.expression.warmup + 1} days and no later one"),
            self._complexity(case),
            self._support(case),
            self._originality(case, around.known),
            *self._fresh(case),
            self._redundancy(case, around.library),
            self._alignment(case),
        ]
        name = case.expression.id
        if not all(reason.passed for reason in reasons):
            return Verdict(name, "rejected", tuple(reasons))
        return self._try(case, around, reasons)

    def _complexity(self, case: Case) -> Reason:
        found = [text for part in case.parts for text in breaches(part.expression, self.settings.complexity)]
        numbers = {"nodes": case.expression.size, "depth": case.expression.depth}
        return Reason("complexity", not found, "; ".join(found) or "within its bounds", numbers)

    def _support(self, case: Case) -> Reason:
        """Refuse a factor that speaks of too few names or days for its figures to mean anything."""
        seen = (~np.isnan(self.windows.search.cut(case.values))).sum(axis=1)
        most = np.maximum(self.windows.search.cut(self.scorer.panel.universe).sum(axis=1), 1)
        share = float(np.mean(seen / most >= LEAST_NAMES))
        text = f"on {share:.0%} of the search days it has a value for {LEAST_NAMES:.0%} of the names"
        return Reason("support", share >= LEAST_DAYS, text, {"days": tidy(share), "least": LEAST_DAYS})

    def _originality(self, case: Case, known: Catalogue) -> Reason:
        likest = [like for part in case.parts for like in known.nearest(part.expression)]
        worst = max(likest, key=lambda like: like.ratio, default=None)
        if worst is None:
            return Reason("originality", True, "shares nothing with any known factor")
        passed = worst.ratio <= self.settings.max_similarity
        whose = f"{worst.known.name} ({worst.known.where})"
        text = f"shares {worst.shared} with {whose}"
        return Reason("originality", passed, text, {"ratio": tidy(worst.ratio), "most": self.settings.max_similarity})

    def _fresh(self, case: Case) -> list[Reason]:
        """Refuse a set with a member that met the selection window: its choice could know what was seen there."""
        if not case.members:
            return []
        key = self.windows.key(self.windows.selection)
        seen = {trial.subject for trial in self.ledger.overlapping_trials(key)}
        stale = sorted(part.expression.id for part in case.members if part.expression.id in seen)
        text = (
            f"looked at on selection before: {', '.join(stale)}" if stale else "no member has met the selection window"
        )
        return [Reason("fresh", not stale, text)]

    def _redundancy(self, case: Case, library: Mapping[str, Values]) -> Reason:
        limit = self.settings.max_redundancy
        for place, part in enumerate(case.members):
            others = {other.expression.id: other.values for other in case.members[:place]}
            twin = closest(part.values, others, self.windows.search)
            if twin and abs(twin.rank_correlation) > limit:
                text = f"its members {part.expression.id} and {twin.factor_id} say the same"
                return Reason(
                    "redundancy", False, text, {"rank_correlation": tidy(twin.rank_correlation), "most": limit}
                )
        found = closest(case.values, library, self.windows.search)
        if found is None:
            return Reason("redundancy", True, "the library is empty")
        numbers = {"rank_correlation": tidy(found.rank_correlation), "most": limit}
        passed = abs(found.rank_correlation) <= limit
        return Reason("redundancy", passed, f"most like {found.factor_id} of the library", numbers)

    def _alignment(self, case: Case) -> Reason:
        found = [text for part in case.parts for text in self._disagreements(part)]
        return Reason(
            "alignment", not found, "; ".join(found) or "its fields, horizon and direction are those of the hypothesis"
        )

    def _disagreements(self, part: Case) -> list[str]:
        words = unlike_its_words(part.expression, part.claim, self.settings)
        return words + against_its_direction(part.rank_ic, part.claim)

    @cached_property
    def _data(self) -> str:
        """Return the digest of everything up to the end of the selection window; later days change no look."""
        return self.scorer.panel.rows(0, self.windows.selection.stop).digest

    def _asked(self, case: Case) -> dict[str, Any]:
        """Return all that decides what a look shows, besides the formula and the window; its digest is the question."""
        settings = self.settings
        asked = settings.model_dump(mode="json", include={"horizon_days", "returns", "level", "watch_p", "costs"})
        return {**asked, "data": self._data, "sign": _sign(case)}

    def _try(self, case: Case, around: Surroundings, reasons: list[Reason]) -> Verdict:
        key, question = self.windows.key(self.windows.selection), digest(self._asked(case))
        known = self._earlier_look(case.expression.id, question)
        if not self._is_paid(known) and around.trials_left <= 0:
            raise trials_spent()
        trial = self.ledger.open_trial(Look(self.run, case.expression.id, key, self.settings.prior_trials, question))
        if trial.outcome is None:
            if trial.run != self.run:  # another run was cut short before it looked: this one looks, and pays
                self.ledger.record_event(self.run, PAID, str(trial.number), {"subject": trial.subject})
            trial = self.ledger.close_trial(trial.id, self._look(case, around, trial))
        return self._verdict(trial, reasons)

    def _is_paid(self, known: Trial | None) -> bool:
        """Tell whether a look costs this run nothing more: taken by anybody, opened by it, or charged to it."""
        if known is None:
            return False
        charged = {event.key for event in self.ledger.events(self.run, PAID)}
        return known.outcome is not None or known.run == self.run or str(known.number) in charged

    def _earlier_look(self, subject: str, question: str) -> Trial | None:
        """Return the trial that asked the same of this window for this factor, also one that a crash cut short."""
        key = self.windows.key(self.windows.selection)
        past = self.ledger.overlapping_trials(key)
        same = [t for t in past if (t.subject, t.question, t.window) == (subject, question, key)]
        return same[0] if same else None

    def _look(self, case: Case, around: Surroundings, trial: Trial) -> dict[str, Any]:
        """Take the look: the only place of the gate that reads the selection window. What it saw is kept whole."""
        sheet = self.scorer.score(case.values, self.windows.selection, _sign(case))
        seen = Seen(
            asked=self._asked(case),
            lag=self.scorer.lag,
            rank_ic=sheet.daily,
            net=sheet.net_daily,
            sharpes=tuple(value for value in around.sharpes if math.isfinite(value)),
            search_days=self.windows.search.days,
            selection_days=self.windows.selection.days,
            sheet=sheet.record(),
        )
        found = self._discoveries_before(trial)
        kept = {"seen": self.ledger.put(seen.body()), "discoveries": found}
        return decide(seen, trial.number, len(found)) | {"selection": sheet.record()} | kept

    def _discoveries_before(self, trial: Trial) -> list[int]:
        """Return earlier discoveries; a trial still open elsewhere counts as none, which can only lower the level."""
        earlier = self.ledger.overlapping_trials(trial.window)
        found = [other.id for other in earlier if other.id < trial.id and (other.outcome or {}).get("passed") is True]
        return sorted(found)

    def _verdict(self, trial: Trial, reasons: list[Reason]) -> Verdict:
        outcome = dict(trial.outcome or {})
        word: Word = "accepted" if outcome["passed"] else "watchlist" if outcome["watch"] else "rejected"
        text = (
            f"p = {outcome['p_value']:.2g} on selection, level {outcome['level']:.2g} for trial {trial.number}"
            f" with {outcome['discoveries_before']} found before"
        )
        numbers = {key: outcome[key] for key in ("p_value", "level", "discoveries_before")}
        statistics = Reason("statistics", bool(outcome["passed"]), text, {**numbers, "trial": trial.number})
        selection = {**outcome["selection"], **numbers, "deflated_sharpe": outcome["deflated_sharpe"]}
        return Verdict(trial.subject, word, (*reasons, statistics), trial.number, selection)


def _sign(case: Case) -> int:
    """Return the direction in which a case is held, fixed on search."""
    return 1 if (case.rank_ic or 0.0) > 0 else -1


def trials_spent() -> TrialsSpent:
    """Return the error of a look that the budget does not allow."""
    return TrialsSpent(
        "The campaign's budget of trials is used up.",
        field="budget.trials",
        got=0,
        allowed="at least one trial left",
        hint="Raise budget.trials; earlier trials keep counting.",
    )
