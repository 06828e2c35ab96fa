"""The acceptance gate: fixed, deterministic steps in a fixed order, each with its recorded reason.

The steps before statistics read the search window only and cost nothing. Statistics is a trial: one test on the
selection window, written to the ledger before the window is read.
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

from ...factors import parse
from ...ledger import Ledger, Look, Trial, WindowKey, compute_digest
from ...ledger.database import Wait
from ...market import format_count
from ..errors import PythonRefused, TrialsSpent
from ..multiple_testing.families import Families, select_family_heads
from ..newey_west import newey_west_t
from ..originality.catalogue import Catalogue
from ..originality.incremental import MIN_ADDED_T
from ..originality.published import describe_twin
from ..originality.redundancy import CORRELATION_FLOOR, LibraryValues, Overlap, find_closest
from ..scoring.metrics import round_significant
from ..scoring.scorer import Scorer
from ..settings import EvidenceSettings
from ..values.computing import Computing
from ..values.retry import TimeSteps
from ..windows import Window, Windows
from .closed_testing import ScoredTerms
from .earlier_looks import EarlierLooks
from .formula_steps import check_alignment, check_formula
from .succession import SUCCEEDS, Succession
from .trial_evidence import TrialEvidence, build_verdict, decide_trial, run_trial_test
from .verdict import Case, Reason, Verdict, Weighing, write_combination_formula

Values = NDArray[np.float32]
MIN_RANKED_NAME_SHARE, MIN_RANKED_DAY_SHARE = 0.25, 0.5
"""Share of the universe that a factor must rank on a day, and share of search days on which it must do so."""
QUESTION_SETTINGS = {"horizon_days", "returns", "label_scale", "test", "level", "watch_p", "costs"}
"""Settings that decide the outcome of a test."""
SWEPT_MESSAGE = "each of the {days} search days was computed by a process that held no later one, and came out the same"
UNSHOWN_DAYS_NOTE = (
    "; nothing is shown of the days before {first}, on which the code raises an error: they have no values"
)
TRIAL_WAIT_SECONDS = 600.0
"""How long a run waits while another run takes the same test; then it takes the test itself and is charged."""
PAID_EVENT, FAILED_EVENT = "paid", "look-failed"
"""Kinds of events: a run is charged for a trial that another run opened and never took; a test ended with an error."""


@dataclass(frozen=True)
class Surroundings:
    """What a case is compared with, and how many factors the campaign has tried.

    `sharpes` are the daily gross Sharpe ratios on search of all evaluated factors, held as written and therefore of
    either sign. Their variance, times search days over selection days, is the variance of the ratio of a worthless
    factor on selection.
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
            A trial is needed and the campaign has none left.
        """
        reasons = [
            *check_formula(case, self.settings),
            self.support(case),
            self._check_originality(case, around.known),
            *self._check_freshness(case),
            self._check_redundancy(case, around.library),
            self._check_published(case, around.published),
            check_alignment(case, self.settings),
        ]
        reasons += self._check_incremental(case) if all(reason.passed for reason in reasons) else []
        name = case.expression.id
        if all(reason.passed for reason in reasons):
            case, reasons = self._sweep_code(case, reasons)
        if not all(reason.passed for reason in reasons):
            return Verdict(name, "rejected", tuple(reasons))
        return self._run_trial(case, around, reasons)

    def _sweep_code(self, case: Case, reasons: list[Reason]) -> tuple[Case, list[Reason]]:
        """Compute Python code day by day on search; the following steps judge these values."""
        if self.computing is None or not case.expression.code:
            return case, reasons
        days = self.windows.search.stop
        try:
            sweep = self.computing.sweep(case.expression, (days,))
        except PythonRefused as error:
            causal = Reason("causal", False, error.message)
        else:
            case = replace(case, values=sweep.values)
            causal = self._make_causal_reason(case, sweep.start_up, days)
        return case, [causal if reason.step == "causal" else reason for reason in reasons]

    def _make_causal_reason(self, case: Case, start_up: int, days: int) -> Reason:
        """Return the reason of a sweep that passed, with the days on which the code raises an error."""
        text = SWEPT_MESSAGE.format(days=days - start_up)
        numbers: dict[str, Any] = {"swept": days - start_up}
        if start_up:
            text += UNSHOWN_DAYS_NOTE.format(first=self.scorer.panel.dates[start_up])
            numbers["unshown"] = start_up
        if stamp := self.computing.stamp_of(case.expression) if self.computing else "":
            text += f"; {stamp}"
            numbers["stamp"] = stamp
        return Reason("causal", True, text, numbers)

    def support(self, case: Case) -> Reason:
        """Refuse a factor that has values for too few names or days."""
        ranked = (~np.isnan(self.windows.search.cut(case.values))).sum(axis=1)
        members = np.maximum(self.windows.search.cut(self.scorer.panel.universe).sum(axis=1), 1)
        share = float(np.mean(ranked / members >= MIN_RANKED_NAME_SHARE))
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

        A set is compared as well as its members: members can each hide a published factor behind another term that
        cancels in their sum.
        """
        limit = self.settings.max_redundancy
        twins = [twin for part in (case, *case.members) if (twin := published.beyond(part.values, limit))]
        if not twins:
            return Reason("published", True, "ranks the names like no published factor")
        worst = max(twins, key=lambda twin: abs(twin.rank_correlation))
        numbers = {"rank_correlation": round_significant(worst.rank_correlation), "most": limit}
        return Reason("published", False, describe_twin(worst), numbers)

    def _check_freshness(self, case: Case) -> list[Reason]:
        """Refuse a set with a member that was tested on selection: the outcome could have guided the choice."""
        if not case.members:
            return []
        key = self.windows.key(self.windows.selection)
        tested = {trial.subject for trial in self.ledger.trials.overlapping(key)}
        stale = sorted(part.expression.id for part in case.members if part.expression.id in tested)
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
        closest = library.closest(case.values, succeeds, floor=min(CORRELATION_FLOOR, limit))
        if succeeds:
            return self._judge_successor(succeeds, closest)
        if closest is None:
            return Reason("redundancy", True, "the library is empty")
        numbers = {"rank_correlation": round_significant(closest.rank_correlation), "most": limit}
        passed = abs(closest.rank_correlation) <= limit
        return Reason("redundancy", passed, f"most like {closest.factor_id} of the library", numbers)

    def _check_incremental(self, case: Case) -> list[Reason]:
        """Refuse without a trial what was accepted on these selection days leaves nothing of: search shows it already.

        A factor that is not significant on search by itself is not judged by this step.
        """
        own = newey_west_t(self.scorer.daily_rank_ic(case.values, self.windows.search), self.scorer.lag)
        if not case.sign * own.t >= MIN_ADDED_T:
            return []
        residual = self.earlier_looks.remove_accepted(case.values, case)
        if residual is None:
            return []
        test = newey_west_t(self.scorer.daily_rank_ic(residual, self.windows.search), self.scorer.lag)
        t, count = case.sign * test.t, len(self.earlier_looks.accepted(case))
        numbers = {"t": round_significant(t), "least": MIN_ADDED_T, "accepted": count}
        what = f"beside the {format_count(count, 'formula')} accepted on these days"
        rank_ic = f"its RankIC on search is {case.sign * test.mean:+.4f} (t {t:+.1f})"
        left = rank_ic if math.isfinite(t) else "little is left of it"
        return [Reason("incremental", t >= MIN_ADDED_T, f"{what} {left}", numbers)]

    def _judge_successor(self, name: str, closest: Overlap | None) -> Reason:
        """Return the reason for a successor, which is compared with all of the library but its predecessor."""
        limit = self.settings.max_redundancy
        start = f"succeeds {name}, which decays: selection judges what it says beyond it"
        if closest is None:
            return Reason("redundancy", True, start, {"succeeds": name})
        numbers = {"rank_correlation": round_significant(closest.rank_correlation), "most": limit, "succeeds": name}
        text = f"{start}; most like {closest.factor_id} of the rest of the library"
        return Reason("redundancy", abs(closest.rank_correlation) <= limit, text, numbers)

    @cached_property
    def succession(self) -> Succession:
        """Return the judge of successors."""
        return Succession(self.ledger, self.run, self.scorer, self.windows.search, self.computing)

    @cached_property
    def data(self) -> str:
        """Return the digest of the panel up to the end of the selection window; later days change no test."""
        return self.scorer.panel.rows(0, self.windows.selection.stop).digest

    def _describe_question(self, case: Case) -> dict[str, Any]:
        """Return all that decides a test besides formula and window; its digest is the trial's question."""
        settings = self.settings
        question = settings.model_dump(mode="json", include=QUESTION_SETTINGS)
        succeeds = self.succession.predecessor(case)
        return {**question, "data": self.data, "sign": case.sign} | ({SUCCEEDS: succeeds} if succeeds else {})

    def _run_trial(self, case: Case, around: Surroundings, reasons: list[Reason]) -> Verdict:
        key, question = self.windows.key(self.windows.selection), compute_digest(self._describe_question(case))
        earlier = self._wait_for_others(self._find_earlier_trial(case.expression.id, question))
        if not self._is_paid(earlier) and around.trials_left <= 0:
            raise make_trials_spent_error()
        trial = self.ledger.trials.open(Look(self.run, case.expression.id, key, self.settings.prior_trials, question))
        trial = self._wait_for_others(trial) or trial
        if trial.outcome is None:
            if trial.run != self.run:  # another run was cut short before its test: this one takes it and pays
                self.ledger.events.record(self.run, PAID_EVENT, str(trial.number), {"subject": trial.subject})
            trial = self.ledger.trials.close(trial.id, self._take_test(case, around, trial))
        return build_verdict(trial, reasons)

    def _wait_for_others(self, trial: Trial | None) -> Trial | None:
        """Wait until no other run is taking this trial (at most 10 min), and return its latest state."""
        wait = Wait()
        while trial and self._is_under_way(trial) and wait.waited < TRIAL_WAIT_SECONDS:
            time.sleep(wait.note(f"since run {trial.run} is testing the same factor, {trial.subject}"))
            trial = self._find_earlier_trial(trial.subject, trial.question)
        return trial

    def _is_under_way(self, trial: Trial) -> bool:
        """Tell whether another run is taking this trial: its process lives, and the test has not failed there."""
        if trial.outcome or trial.run == self.run or not self.ledger.runs.is_held(trial.run):
            return False
        return self.ledger.events.get(trial.run, FAILED_EVENT, str(trial.number)) is None

    def _is_paid(self, trial: Trial | None) -> bool:
        """Tell whether a trial costs this run nothing: it has an outcome, or was opened by or charged to this run."""
        if trial is None:
            return False
        charged = {event.key for event in self.ledger.events.of(self.run, PAID_EVENT)}
        return trial.outcome is not None or trial.run == self.run or str(trial.number) in charged

    def _find_earlier_trial(self, subject: str, question: str) -> Trial | None:
        """Return the trial of this factor with the same question and window, even if a crash cut it short."""
        key = self.windows.key(self.windows.selection)
        past = self.ledger.trials.overlapping(key)
        same = [t for t in past if (t.subject, t.question, t.window) == (subject, question, key)]
        return same[0] if same else None

    def _take_test(self, case: Case, around: Surroundings, trial: Trial) -> dict[str, Any]:
        """Take the test; record a failure, so that no other run waits for it."""
        try:
            return self._test_on_selection(case, around, trial)
        except Exception:
            self.ledger.events.record(self.run, FAILED_EVENT, str(trial.number), {"subject": trial.subject})
            raise

    def _test_on_selection(self, case: Case, around: Surroundings, trial: Trial) -> dict[str, Any]:
        """Test the case on selection, and store the evidence whole.

        Only this method of the gate and what it calls read the selection window. Python code is not run on selection
        days before: any effect of the run there, even a failure, carries information about those days.
        """
        earlier = self.discoveries(trial.window, trial)
        ties = self.families.ties([*earlier, trial])
        discoveries = select_family_heads([discovery.id for discovery in earlier], ties, trial.id)
        evidence = self._collect_evidence(case, around, trial)
        outcome = decide_trial(evidence, trial.number, len(discoveries))
        if outcome["passed"] and case.members:
            evidence = replace(evidence, members=self.prove_members(case, trial, float(outcome["level"])))
            outcome = decide_trial(evidence, trial.number, len(discoveries))
        record = {
            "seen": self.ledger.objects.put(evidence.body()),
            "discoveries": discoveries,
            "ties": [tie.record() for tie in ties],
            "taken_by": self.run,
        }
        return outcome | {"selection": dict(evidence.sheet)} | record

    def _collect_evidence(self, case: Case, around: Surroundings, trial: Trial) -> TrialEvidence:
        """Score the case on selection, and what it adds to what was looked at there before."""
        with self.pace.even() if self.pace and case.expression.code else nullcontext():
            values, fault = self._compute_selection_values(case)
        selection = self.windows.selection
        sheet = self.scorer.score(values, selection, case.sign)
        residual = self.earlier_looks.remove(values, case, trial)
        removed, missing = self.earlier_looks.beside(case, trial)
        return TrialEvidence(
            asked=self._describe_question(case),
            lag=self.scorer.lag,
            rank_ic=sheet.daily,
            net=sheet.net_daily,
            sharpes=tuple(value for value in around.sharpes if math.isfinite(value)),
            search_days=self.windows.search.days,
            selection_days=self.windows.selection.days,
            sheet=sheet.record(),
            held=self.scorer.held(values, selection),
            fault=fault,
            beside=removed,
            not_removed=missing,
            added=None if residual is None else self.scorer.daily_rank_ic(residual, selection),
            added_held=None if residual is None else self.scorer.held(residual, selection),
            net_on_search=self.scorer.score(case.values, self.windows.search, case.sign).net_sharpe,
        )

    def prove_members(self, case: Case, trial: Trial, level: float) -> list[dict[str, Any]]:
        """Return the closed tests of an accepted combination's members, and what it loses without each."""
        if case.weighing is None or self.computing is None:
            return []

        asked, selection = self._describe_question(case) | {"sign": 1}, self.windows.selection

        def find_p_value(values: Values) -> float:
            residual = self.earlier_looks.remove(values, case, trial)
            tested = values if residual is None else residual
            daily, held = self.scorer.daily_rank_ic(tested, selection), self.scorer.held(tested, selection)
            return run_trial_test(daily, held, asked, self.scorer.lag)[1]

        scored = ScoredTerms(self._compute_terms(case, case.weighing), find_p_value)
        windows = (self.windows.search, self.windows.selection)
        losses = {window.name: self._measure_losses(scored, case.values, window) for window in windows}
        return [
            self._close_member(case, member, {name: loss[member["id"]] for name, loss in losses.items()})
            for member in scored.prove(level)
        ]

    def _measure_losses(self, scored: ScoredTerms, values: Values, window: Window) -> dict[str, float | None]:
        """Return by member how much of its mean RankIC on a window the combination loses without it."""

        def score(frame: Values) -> float:
            return float(newey_west_t(self.scorer.daily_rank_ic(frame, window), self.scorer.lag).mean)

        return scored.measure_loss(score, score(values))

    def _close_member(self, case: Case, member: dict[str, Any], loss: dict[str, float | None]) -> dict[str, Any]:
        """Return a member's closed test, with its weight, and whether it pays its costs alone."""
        part = next(part for part in case.members if part.expression.id == member["id"])
        windows = (self.windows.search, self.windows.selection)
        net = {window.name: self.scorer.score(part.values, window, part.sign).net_sharpe for window in windows}
        assert case.weighing is not None
        return {
            **member,
            "accepted": member["proven"] and all(ratio >= 0.0 for ratio in net.values()),
            "weight": case.weighing.weights[member["id"]],
            "net_sharpe": {name: round_significant(ratio) for name, ratio in net.items()},
            "rank_ic_lost_without": loss,
        }

    def _compute_terms(self, case: Case, weighing: Weighing) -> dict[str, Values]:
        """Return what each member adds to the combination's score, `[T, N]`, at the trading rate."""
        assert self.computing is not None
        texts = [write_combination_formula([part], weighing) for part in case.members]
        fields = tuple(self.scorer.panel.fields)
        values = self.computing.evaluate([parse(text, fields=fields) for text in texts])
        names = [part.expression.id for part in case.members]
        return {
            name: (weighing.weights[name] * frame).astype(np.float32) for name, frame in zip(names, values, strict=True)
        }

    @cached_property
    def earlier_looks(self) -> EarlierLooks:
        """Return what finds and removes what a candidate is judged beside."""
        return EarlierLooks(self.ledger, self.run, self.windows, self.computing, self.settings.horizon_days)

    def _compute_selection_values(self, case: Case) -> tuple[Values, Mapping[str, Any] | None]:
        """Return values up to the end of selection, and the fault of the code on selection days if it has one."""
        if self.computing is None or not case.expression.code:
            succeeds = self.succession.predecessor(case)
            residual = self.succession.beyond(case.values, succeeds, self.windows.selection) if succeeds else None
            return (case.values if residual is None else residual), None
        sweep = self.computing.sweep(case.expression, (self.windows.search.stop, self.windows.selection.stop))
        return sweep.values, sweep.fault

    def discoveries(self, window: WindowKey, before: Trial | None = None) -> list[Trial]:
        """Return the discoveries on a window's data; `before` limits them to those before a trial.

        A trial that is still open elsewhere is not counted, which can only lower the level.
        """
        past = self.ledger.trials.overlapping(window, before.opened_at if before else "")
        past = [trial for trial in past if before is None or trial.id < before.id]
        return [trial for trial in past if (trial.outcome or {}).get("passed") is True]

    def count_discoveries(self) -> int:
        """Count the families of discoveries that raise the level of the next trial, if it belongs to none of them."""
        discoveries = self.discoveries(self.windows.key(self.windows.selection))
        return len(select_family_heads([discovery.id for discovery in discoveries], self.families.ties(discoveries), 0))

    @cached_property
    def families(self) -> Families:
        """Return the rule that finds which discoveries belong to the family of an earlier one."""
        return Families(self.ledger, self.computing, self.windows.search, self.settings.max_redundancy)


def make_trials_spent_error() -> TrialsSpent:
    """Return the error of a trial that the budget does not allow."""
    return TrialsSpent(
        "The campaign's budget of trials is used up.",
        field="budget.trials",
        got=0,
        allowed="at least one trial left",
        hint="Raise budget.trials; earlier trials keep counting.",
    )
