"""The acceptance gate: fixed steps in a fixed order, each deterministic, each reason kept.

The steps before statistics read the search window only and cost nothing. Statistics is a trial: one test on the selection
window, written to the ledger before the window is read.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ledger import Ledger, Look, Trial, WindowKey, compute_digest
from ...ledger.database import Wait
from ..errors import PythonRefused, TrialsSpent
from ..multiple_testing.families import Families, select_family_heads
from ..originality.catalogue import Catalogue
from ..originality.published import describe_twin
from ..originality.redundancy import CORRELATION_FLOOR, LibraryValues, Overlap, find_closest
from ..scoring.metrics import round_significant
from ..scoring.scorer import Scorer
from ..settings import EvidenceSettings
from ..values.computing import Computing
from ..values.retry import TimeSteps
from ..windows import Windows
from .formula_steps import check_alignment, check_formula
from .succession import SUCCEEDS, Succession
from .trial_evidence import TrialEvidence, build_verdict, decide_trial
from .verdict import Case, Reason, Verdict

Values = NDArray[np.float32]
MIN_RANKED_NAME_SHARE, MIN_RANKED_DAY_SHARE = 0.25, 0.5
"""Share of the universe that a factor must rank on a day, and share of search days on which it must do so."""
QUESTION_SETTINGS = {"horizon_days", "returns", "label_scale", "test", "level", "watch_p", "costs"}
"""Settings that decide what a look shows."""
SWEPT_MESSAGE = "each of the {days} search days was computed by a process that held no later one, and came out the same"
UNSHOWN_DAYS_NOTE = (
    "; nothing is shown of the days before {first}, on which the code raises an error: they have no values"
)
TRIAL_WAIT_SECONDS = 600.0
"""How long a run waits for a look that another one is taking; then it looks itself, and pays."""
PAID_EVENT, FAILED_EVENT = "paid", "look-failed"
"""Kinds of events: a run is charged for a look that another run had opened and never took; a look ended with an error."""


@dataclass(frozen=True)
class Surroundings:
    """What a case is compared with, and how many factors the campaign has tried.

    `sharpes` are the daily gross Sharpe ratios on search of all evaluated factors held as written, so of either sign:
    their variance, times search days over selection days, is that of a worthless factor's ratio on selection.
    """

    known: Catalogue
    published: LibraryValues
    library: LibraryValues
    sharpes: Sequence[float]
    trials_left: int


@dataclass(frozen=True)
class AcceptanceGate:
    """Judges cases on one data set for one campaign."""

    scorer: Scorer
    windows: Windows
    ledger: Ledger
    settings: EvidenceSettings
    run: str
    computing: Computing | None = None
    pace: TimeSteps | None = None

    def judge(self, case: Case, around: Surroundings) -> Verdict:
        """Return the verdict on a case; a trial is spent only if every step before statistics passed.

        Raises
        ------
        TrialsSpent
            A look would be needed and the campaign has none left.
        """
        reasons = [
            *check_formula(case, self.settings),
            self.support(case),
            self._check_originality(case, around.known),
            *self._fresh(case),
            self._check_redundancy(case, around.library),
            self._check_published(case, around.published),
            check_alignment(case, self.settings),
        ]
        name = case.expression.id
        if all(reason.passed for reason in reasons):
            case, reasons = self._swept(case, reasons)
        if not all(reason.passed for reason in reasons):
            return Verdict(name, "rejected", tuple(reasons))
        return self._try(case, around, reasons)

    def _swept(self, case: Case, reasons: list[Reason]) -> tuple[Case, list[Reason]]:
        """Compute Python code day by day on search; what it says there is what it is judged on from here."""
        if self.computing is None or not case.expression.code:
            return case, reasons
        days = self.windows.search.stop
        try:
            found = self.computing.sweep(case.expression, (days,))
        except PythonRefused as error:
            causal = Reason("causal", False, error.message)
        else:
            case = replace(case, values=found.values)
            causal = self._make_causal_reason(case, found.start_up, days)
        return case, [causal if reason.step == "causal" else reason for reason in reasons]

    def _make_causal_reason(self, case: Case, start_up: int, days: int) -> Reason:
        """Return what a sweep of search showed: of days on which the code raises an error, nothing."""
        said = SWEPT_MESSAGE.format(days=days - start_up)
        numbers: dict[str, Any] = {"swept": days - start_up}
        if start_up:
            said += UNSHOWN_DAYS_NOTE.format(first=self.scorer.panel.dates[start_up])
            numbers["unshown"] = start_up
        if stamp := self.computing.stamp_of(case.expression) if self.computing else "":
            said += f"; {stamp}"
            numbers["stamp"] = stamp
        return Reason("causal", True, said, numbers)

    def support(self, case: Case) -> Reason:
        """Refuse a factor that speaks of too few names or days for its figures to mean anything."""
        seen = (~np.isnan(self.windows.search.cut(case.values))).sum(axis=1)
        most = np.maximum(self.windows.search.cut(self.scorer.panel.universe).sum(axis=1), 1)
        share = float(np.mean(seen / most >= MIN_RANKED_NAME_SHARE))
        text = f"on {share:.0%} of the search days it has a value for {MIN_RANKED_NAME_SHARE:.0%} of the names"
        return Reason(
            "support",
            share >= MIN_RANKED_DAY_SHARE,
            text,
            {"days": round_significant(share), "least": MIN_RANKED_DAY_SHARE},
        )

    def _check_originality(self, case: Case, known: Catalogue) -> Reason:
        likest = [like for part in case.parts for like in known.nearest(part.expression)]
        worst = max(likest, key=lambda like: like.ratio, default=None)
        if worst is None:
            return Reason("originality", True, "shares nothing with any known factor")
        passed = worst.ratio <= self.settings.max_similarity
        whose = f"{worst.known.name} ({worst.known.where})"
        text = f"shares {worst.shared} with {whose}"
        return Reason(
            "originality", passed, text, {"ratio": round_significant(worst.ratio), "most": self.settings.max_similarity}
        )

    def _check_published(self, case: Case, published: LibraryValues) -> Reason:
        """Refuse values that rank the names as a published factor does, however the formula is written.

        A set is asked about as well as its members: what each of them hides behind something else, their sum can show.
        """
        limit = self.settings.max_redundancy
        found = [twin for part in (case, *case.members) if (twin := published.beyond(part.values, limit))]
        if not found:
            return Reason("published", True, "ranks the names like no published factor")
        worst = max(found, key=lambda twin: abs(twin.rank_correlation))
        numbers = {"rank_correlation": round_significant(worst.rank_correlation), "most": limit}
        return Reason("published", False, describe_twin(worst), numbers)

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

    def _check_redundancy(self, case: Case, library: LibraryValues) -> Reason:
        limit = self.settings.max_redundancy
        for place, part in enumerate(case.members):
            others = {other.expression.id: other.values for other in case.members[:place]}
            twin = find_closest(part.values, others, self.windows.search)
            if twin and abs(twin.rank_correlation) > limit:
                text = f"its members {part.expression.id} and {twin.factor_id} say the same"
                return Reason(
                    "redundancy",
                    False,
                    text,
                    {"rank_correlation": round_significant(twin.rank_correlation), "most": limit},
                )
        succeeds = self.succession.predecessor(case)
        found = library.closest(case.values, succeeds, floor=min(CORRELATION_FLOOR, limit))
        if succeeds:
            return self._judge_successor(succeeds, found)
        if found is None:
            return Reason("redundancy", True, "the library is empty")
        numbers = {"rank_correlation": round_significant(found.rank_correlation), "most": limit}
        passed = abs(found.rank_correlation) <= limit
        return Reason("redundancy", passed, f"most like {found.factor_id} of the library", numbers)

    def _judge_successor(self, name: str, found: Overlap | None) -> Reason:
        """Return the reason for a successor: all of the library counts but what it succeeds."""
        limit = self.settings.max_redundancy
        said = f"succeeds {name}, which decays: selection judges what it says beyond it"
        if found is None:
            return Reason("redundancy", True, said, {"succeeds": name})
        numbers = {"rank_correlation": round_significant(found.rank_correlation), "most": limit, "succeeds": name}
        text = f"{said}; most like {found.factor_id} of the rest of the library"
        return Reason("redundancy", abs(found.rank_correlation) <= limit, text, numbers)

    @cached_property
    def succession(self) -> Succession:
        """Return the judge of successors."""
        return Succession(self.ledger, self.run, self.scorer, self.windows.search, self.computing)

    @cached_property
    def data(self) -> str:
        """Return the digest of everything up to the end of the selection window; later days change no look."""
        return self.scorer.panel.rows(0, self.windows.selection.stop).digest

    def _asked(self, case: Case) -> dict[str, Any]:
        """Return all that decides what a look shows, besides the formula and the window; its digest is the question."""
        settings = self.settings
        asked = settings.model_dump(mode="json", include=QUESTION_SETTINGS)
        succeeds = self.succession.predecessor(case)
        return {**asked, "data": self.data, "sign": case.sign} | ({SUCCEEDS: succeeds} if succeeds else {})

    def _try(self, case: Case, around: Surroundings, reasons: list[Reason]) -> Verdict:
        key, question = self.windows.key(self.windows.selection), compute_digest(self._asked(case))
        known = self._heard(self._find_earlier_trial(case.expression.id, question))
        if not self._is_paid(known) and around.trials_left <= 0:
            raise make_trials_spent_error()
        trial = self.ledger.open_trial(Look(self.run, case.expression.id, key, self.settings.prior_trials, question))
        trial = self._heard(trial) or trial
        if trial.outcome is None:
            if trial.run != self.run:  # another run was cut short before it looked: this one looks, and pays
                self.ledger.record_event(self.run, PAID_EVENT, str(trial.number), {"subject": trial.subject})
            trial = self.ledger.close_trial(trial.id, self._take_test(case, around, trial))
        return build_verdict(trial, reasons)

    def _heard(self, trial: Trial | None) -> Trial | None:
        """Return a look as it stands once no other run is taking it: what is under way elsewhere is not taken twice."""
        wait = Wait()
        while trial and self._under_way(trial) and wait.waited < TRIAL_WAIT_SECONDS:
            time.sleep(wait.note(f"since run {trial.run} is testing the same factor, {trial.subject}"))
            trial = self._find_earlier_trial(trial.subject, trial.question)
        return trial

    def _under_way(self, trial: Trial) -> bool:
        """Tell whether another run is taking this look: its process lives, and the look has not failed there."""
        if trial.outcome or trial.run == self.run or not self.ledger.is_held(trial.run):
            return False
        return self.ledger.event(trial.run, FAILED_EVENT, str(trial.number)) is None

    def _is_paid(self, known: Trial | None) -> bool:
        """Tell whether a look costs this run nothing more: taken by anybody, opened by it, or charged to it."""
        if known is None:
            return False
        charged = {event.key for event in self.ledger.events(self.run, PAID_EVENT)}
        return known.outcome is not None or known.run == self.run or str(known.number) in charged

    def _find_earlier_trial(self, subject: str, question: str) -> Trial | None:
        """Return the trial that asked the same of this window for this factor, also one that a crash cut short."""
        key = self.windows.key(self.windows.selection)
        past = self.ledger.overlapping_trials(key)
        same = [t for t in past if (t.subject, t.question, t.window) == (subject, question, key)]
        return same[0] if same else None

    def _take_test(self, case: Case, around: Surroundings, trial: Trial) -> dict[str, Any]:
        """Take the look; where that fails, let no other run wait for it."""
        try:
            return self._look(case, around, trial)
        except Exception:
            self.ledger.record_event(self.run, FAILED_EVENT, str(trial.number), {"subject": trial.subject})
            raise

    def _look(self, case: Case, around: Surroundings, trial: Trial) -> dict[str, Any]:
        """Take the look: the only place of the gate that reads the selection window. What it saw is kept whole.

        Here, and not before, Python code is run on selection days: what it does there, failing too, would tell of them.
        """
        with self.pace.even() if self.pace and case.expression.code else nullcontext():
            values, fault = self._day_by_day(case)
        sheet = self.scorer.score(values, self.windows.selection, case.sign)
        seen = TrialEvidence(
            asked=self._asked(case),
            lag=self.scorer.lag,
            rank_ic=sheet.daily,
            net=sheet.net_daily,
            sharpes=tuple(value for value in around.sharpes if math.isfinite(value)),
            search_days=self.windows.search.days,
            selection_days=self.windows.selection.days,
            sheet=sheet.record(),
            held=self.scorer.held(values, self.windows.selection),
            fault=fault,
        )
        earlier = self.discoveries(trial.window, trial)
        ties = self.families.ties([*earlier, trial])
        found = select_family_heads([each.id for each in earlier], ties, trial.id)
        kept = {"seen": self.ledger.put(seen.body()), "discoveries": found, "ties": [tie.record() for tie in ties]}
        return decide_trial(seen, trial.number, len(found)) | {"selection": sheet.record()} | kept

    def _day_by_day(self, case: Case) -> tuple[Values, Mapping[str, Any] | None]:
        """Return values up to the end of selection, and what went wrong with the code on its days."""
        if self.computing is None or not case.expression.code:
            succeeds = self.succession.predecessor(case)
            left = self.succession.beyond(case.values, succeeds, self.windows.selection) if succeeds else None
            return (case.values if left is None else left), None
        found = self.computing.sweep(case.expression, (self.windows.search.stop, self.windows.selection.stop))
        return found.values, found.fault

    def discoveries(self, window: WindowKey, before: Trial | None = None) -> list[Trial]:
        """Return the discoveries on a window's data, those before a trial if one is named.

        A trial still open elsewhere counts as none, which can only lower the level.
        """
        past = self.ledger.overlapping_trials(window, before.opened_at if before else "")
        past = [each for each in past if before is None or each.id < before.id]
        return [each for each in past if (each.outcome or {}).get("passed") is True]

    def count_discoveries(self) -> int:
        """Count the families of discoveries that raise the level of the next trial, if it is tied to none of them."""
        found = self.discoveries(self.windows.key(self.windows.selection))
        return len(select_family_heads([each.id for each in found], self.families.ties(found), 0))

    @cached_property
    def families(self) -> Families:
        """Return what tells which discoveries are nested in earlier ones."""
        return Families(self.ledger, self.computing, self.windows.search, self.settings.max_redundancy)


def make_trials_spent_error() -> TrialsSpent:
    """Return the error of a look that the budget does not allow."""
    return TrialsSpent(
        "The campaign's budget of trials is used up.",
        field="budget.trials",
        got=0,
        allowed="at least one trial left",
        hint="Raise budget.trials; earlier trials keep counting.",
    )
