"""Build a campaign's evidence for `results.json`: factors with all reasons, counts, and the power of the next trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import MECHANISM_EVENT, Claim, Window
from ...evidence.gate import PAID_EVENT, UNTRADABLE, TrialEvidence, deflated_sharpe_of, list_doubts
from ...evidence.multiple_testing import RuleDecision, apply_rules
from ...evidence.originality import find_nearest
from ...evidence.scoring import Profiler, count_unlabelled, round_significant
from ...evidence.values import UNCONTAINED_CODE
from ...factors import Expression, explain
from ...ledger import Ledger, Trial, VerdictRow
from ...portfolio import list_earlier_openings
from ...search import list_own_troubles, read_operator_table, summarise_variety
from ...search.surrogate import MAX_LEADERS
from ..checks.power import few_labels, next_power, read_first_power
from ..drafts import find_leaders
from ..service import Evaluator
from .candidates import CandidateSet, gather_candidates
from .factor_records import AlignmentNotes, DailyRankIC, GateReason, ModelOpinion, Note, ResultsPart
from .results import DailyRankICByWindow, NearFactor
from .search_records import (
    AttemptCounts,
    CandidateReasons,
    EarlierOpening,
    PanelSummary,
    StreamRule,
    StreamRules,
    WindowDays,
    WindowPlan,
)

VERDICT_LISTS = ("accepted", "proven", "watchlist", "rejected", "members", "untested")
UNSHOWN_WORDS = ("rejected", "members", "untested")
"""Of these no profile is measured."""
MAX_NEAREST_SHOWN = 5
"""Known formulas that are shown beside a case."""
UNKNOWN_P_VALUE = 1.0
"""The p-value of a trial without a known outcome: declared, or cut short. It counts as no discovery."""


@dataclass(frozen=True)
class ResultsBuilder:
    """Reads one run's evidence from the ledger, for `results.json` and the report."""

    evaluator: Evaluator

    @cached_property
    def verdicts(self) -> Mapping[str, VerdictRow]:
        """Return the gate's verdicts by factor id."""
        return {row.factor_id: row for row in self.evaluator.ledger.verdicts.of(self.evaluator.run)}

    @cached_property
    def claims(self) -> Mapping[str, Claim]:
        """Return the hypothesis of each scored factor and set."""
        run, ledger = self.evaluator.run, self.evaluator.ledger
        sets = {event.key for event in ledger.events.of(run, "set")}
        bodies = {event.key: event.body for event in ledger.events.of(run, "claim")}
        claims_of_sets = {name: Claim.from_record(bodies[f"set-{name}"]) for name in sets}
        return {**claims_of_sets, **self.evaluator.log.proposals.claims()}

    @cached_property
    def members(self) -> Mapping[str, Sequence[str]]:
        """Return the members of each set that was submitted."""
        return {event.key: event.body for event in self.evaluator.ledger.events.of(self.evaluator.run, "set")}

    @cached_property
    def candidates(self) -> CandidateSet:
        """Return the single factors of the run on search, held in their claimed direction."""
        return gather_candidates(self.evaluator, self.claims, self.members)

    @cached_property
    def stream(self) -> TrialStream:
        """Return every trial that counts for this selection window, also of other runs and declared ones."""
        evaluator = self.evaluator
        key = evaluator.windows.key(evaluator.windows.selection)
        elsewhere = max(evaluator.settings.prior_trials, evaluator.ledger.trials.prior(key))
        past = evaluator.ledger.trials.overlapping(key)
        return TrialStream(evaluator.ledger, elsewhere, past, self.verdicts, evaluator.settings.level)

    def record(self) -> dict[str, Any]:
        """Return the evidence of a run as JSON without a clock, a path or the run's id; `Results` has its types."""
        evaluator, stream = self.evaluator, self.stream
        key = evaluator.windows.key(evaluator.windows.selection)
        paid = {event.key for event in evaluator.ledger.events.of(evaluator.run, PAID_EVENT)}
        own_trials = [
            trial
            for trial in stream.trials
            if trial.run == evaluator.run or (trial.window == key and str(trial.number) in paid)
        ]
        decisive = {row.metrics["trial"] for row in self.verdicts.values()} - {None}
        return {
            "settings": self._record_settings(),
            "data": self._summarise_data().record(),
            "windows": self._plan_windows().record(),
            **self.entries(),
            "attempts": self.attempts().record(),
            "reasons": self._count_reasons().record(),
            "leaders": [leader.record() for leader in find_leaders(evaluator, MAX_LEADERS)],
            "diversity": summarise_variety(evaluator.ledger, evaluator.run),
            "operators": read_operator_table(evaluator.ledger, evaluator.run),
            "evaluations": evaluator.meter.evaluations_spent(),
            "trials": evaluator.meter.trials_spent(),
            "prior_trials": len(stream.trials) - len(own_trials) + stream.declared,
            "looks_reused": len(decisive - {trial.number for trial in own_trials}),
            "hypotheses": len({claim.id for claim in self.claims.values() if claim.mechanism != "set"}),
            "power": self.power(),
            "power_before": read_first_power(evaluator),
            "stream_rules": stream.summarise().record(),
            "overfitting": _record_or_none(self.candidates.measure_overfitting()),
            "superior": _record_or_none(self.candidates.measure_superiority()),
            "cross_validation": _record_or_none(self.candidates.cross_validate()),
            "clusters": _record_or_none(self.candidates.count_clusters()),
            **({"reviews": [review.record() for review in evaluator.reviews.decisions()]} if evaluator.approve else {}),
            "warnings": [note.record() for note in self.warnings()],
        }

    def _record_settings(self) -> dict[str, Any]:
        """Return the evidence settings and the budget."""
        evidence = self.evaluator.settings.model_dump(mode="json")
        return {"evidence": evidence, "budget": self.evaluator.budget.model_dump(mode="json", exclude_none=True)}

    def _summarise_data(self) -> PanelSummary:
        panel = self.evaluator.panel
        return PanelSummary(
            name=self.evaluator.windows.boundaries.dataset,
            digest=panel.digest,
            days=panel.days,
            names=panel.names,
            first_day=str(panel.dates[0]),
            last_day=str(panel.dates[-1]),
            notes=tuple(panel.notes),
        )

    def _plan_windows(self) -> WindowPlan:
        evaluator = self.evaluator
        windows, settings = evaluator.windows, evaluator.settings
        openings = list_earlier_openings(evaluator.ledger, windows.key(windows.sealed), evaluator.run)
        return WindowPlan(
            search=WindowDays.read(windows.search.record()),
            selection=WindowDays.read(windows.selection.record()),
            sealed=WindowDays.read(windows.sealed.record()),
            openings=tuple(EarlierOpening.read(opening) for opening in openings),
            embargo_days=windows.embargo_days,
            horizon_days=settings.horizon_days,
            returns=settings.returns,
            search_cells_without_an_open=count_unlabelled(
                evaluator.panel, windows.search, evaluator.scorer.returns, settings.horizon_days
            ),
        )

    def entries(self) -> dict[str, list[dict[str, Any]]]:
        """Return the factors of each list of results, sorted by id."""
        entries: dict[str, list[dict[str, Any]]] = {name: [] for name in VERDICT_LISTS}
        for name in sorted({*self.evaluator.scores, *self.verdicts}):
            if name in self.claims:
                row = self.verdicts.get(name)
                entries[self._find_list(name, row)].append(self._build_entry(name, row))
        return entries

    def _find_list(self, name: str, row: VerdictRow | None) -> str:
        """Return the list of a factor; a case that no person had decided at the close is rejected."""
        if row is None:
            return "members" if name in self.accepted_homes else "untested"
        word = self.evaluator.reviews.word(row)
        return "proven" if word == UNTRADABLE else word if word in VERDICT_LISTS else "rejected"

    @property
    def accepted_ids(self) -> list[str]:
        """Return what the run accepted, by id."""
        return sorted(name for name, row in self.verdicts.items() if name in self.claims and self._is_accepted(row))

    @cached_property
    def accepted_homes(self) -> Mapping[str, str]:
        """Return the accepted combination of each of its members."""
        accepted = [name for name in self.members if (row := self.verdicts.get(name)) and self._is_accepted(row)]
        return {member: name for name in accepted for member in self.members[name]}

    def _is_accepted(self, row: VerdictRow) -> bool:
        return self.evaluator.reviews.word(row) == "accepted"

    def _build_entry(self, name: str, row: VerdictRow | None, *, is_case: bool = False) -> dict[str, Any]:
        evaluation = self.evaluator.scores[name]
        expression = self.evaluator.read(evaluation.text)
        search = {key: value for key, value in evaluation.sheet.items() if key != "fields"}
        word = "awaiting" if is_case else self._find_list(name, row)
        return {
            "id": name,
            "form": "python" if expression.code else "expression",
            "text": expression.shown,
            "explained": explain(expression),
            "hypothesis": self.claims[name].record(),
            "alignment": self._collect_alignment(name, expression).record(),
            "reasons": self.evaluator.reviews.reasons(row)
            if row
            else [self._make_unsent_reason(name, evaluation.sheet).record()],
            "metrics": {"search": search, "selection": self._complete_selection(name, row)},
            "trial": row.metrics["trial"] if row else None,
            "members": self.members.get(name),
            "library_correlation": self._measure_library_correlation(name) if word not in UNSHOWN_WORDS else None,
            "profile": self._measure_profile(name) if word not in UNSHOWN_WORDS else None,
            "incremental": self._measure_incremental(name) if row and row.metrics["trial"] is not None else None,
        }

    def _collect_alignment(self, name: str, expression: Expression) -> AlignmentNotes:
        claim, search = self.claims[name], self.evaluator.scores[name].sheet
        doubts = [] if name in self.members else list_doubts(expression, claim, search)
        messages = tuple(str(doubt["message"]) for doubt in doubts)
        return AlignmentNotes(doubts=messages, opinions=tuple(self.opinions.get(claim.id, ())))

    @cached_property
    def opinions(self) -> Mapping[str, Sequence[ModelOpinion]]:
        """Return the Eval agent's opinions of formulas and their hypothesis, by hypothesis, step by step."""
        opinions: dict[str, list[ModelOpinion]] = {}
        events = self.evaluator.ledger.events.of(self.evaluator.run, "agents.critique")
        for event in sorted(events, key=lambda event: event.key):
            branch, _, step = event.key.rpartition("/s")
            if opinion := event.body.get("alignment"):
                opinions.setdefault(branch, []).append(ModelOpinion.read({"step": int(step), **opinion}))
        return opinions

    def _complete_selection(self, name: str, row: VerdictRow | None) -> dict[str, Any] | None:
        """Return the metrics on selection, with the Sharpe ratio deflated for clusters added."""
        figures = row.metrics["selection"] if row else None
        if not figures:
            return None
        by_clusters = self.stream.deflate_sharpe(name, self.candidates.effective)
        return {**figures, "deflated_sharpe": {**figures["deflated_sharpe"], "by_clusters": by_clusters}}

    def _measure_library_correlation(self, name: str) -> float | None:
        values = self.evaluator.values(self.evaluator.read(self.evaluator.scores[name].text))
        overlap = self.evaluator.library.values.closest(values, but=name)
        return round_significant(overlap.rank_correlation) if overlap else None

    def _measure_profile(self, name: str) -> dict[str, Any]:
        """Return regimes, exposures and capacity on search, as `factor score` shows them."""
        return self._profiler.profile(self.evaluator.values(self.evaluator.read(self.evaluator.scores[name].text)))

    @cached_property
    def _profiler(self) -> Profiler:
        return Profiler(self.evaluator.scorer, self.evaluator.windows.search)

    def _measure_incremental(self, name: str) -> dict[str, Any] | None:
        """Return what a factor that had a trial adds to the rest of the library, on search days."""
        values = self.evaluator.values(self.evaluator.read(self.evaluator.scores[name].text))
        addition = self.evaluator.library.added_value.addition(values, but=name)
        return addition.record() if addition else None

    def attempts(self) -> AttemptCounts:
        """Return the counts of proposed formulas and of those refused at each step before scoring."""
        rows = self.evaluator.ledger.attempts.of(self.evaluator.run)
        refused = Counter(row.stage for row in rows if row.stage != "scored")
        scored = [row.factor_id for row in rows if row.stage == "scored"]
        refused["duplicate"] += len(scored) - len(set(scored))
        return AttemptCounts(
            total=len(rows), refused={stage: count for stage, count in sorted(refused.items()) if count}
        )

    def _count_reasons(self) -> CandidateReasons:
        """Return how many scored single factors had a mechanism, and how many were data-mined."""
        mined = Counter(self.claims[name].data_mined for name in self.evaluator.scores if name in self.claims)
        sets = sum(name in self.claims for name in self.members)
        events = self.evaluator.ledger.events.of(self.evaluator.run, MECHANISM_EVENT)
        stands = Counter(bool(event.body["stands"]) for event in events)
        return CandidateReasons(
            with_mechanism=mined[False] - sets, data_mined=mined[True], stated=stands[True], refuted=stands[False]
        )

    def power(self) -> dict[str, Any]:
        """Return the power of the next trial on this selection window."""
        discoveries = self.evaluator.submissions.gate.count_discoveries()
        return next_power(self.evaluator, len(self.stream.trials) + self.stream.declared, discoveries)

    def case(self, name: str) -> dict[str, Any]:
        """Return the data for a person who has to approve a factor, as JSON; `ReviewCase` has its types."""
        row, evaluator = self.verdicts[name], self.evaluator
        expression = evaluator.read(evaluator.scores[name].text)
        return {
            **self._build_entry(name, row, is_case=True),
            "reasons": list(row.reasons),
            "curve": self._measure_curves(name).record(),
            "boundary": str(evaluator.panel.dates[evaluator.windows.selection.start]),
            "nearest": [near.record() for near in self._find_nearest(name, expression)],
            "texts": {part: evaluator.read(evaluator.scores[part].text).shown for part in self.members.get(name, ())},
            "data": self._summarise_data().record(),
            "costs": evaluator.settings.costs.model_dump(mode="json"),
            "warnings": [note.record() for note in self.warnings()],
        }

    def _find_nearest(self, name: str, expression: Expression) -> list[NearFactor]:
        """Return the known formulas that share most with a factor, without itself."""
        shared = find_nearest(expression, self.evaluator.library.catalogue(), MAX_NEAREST_SHOWN + 1)
        others = [overlap for overlap in shared if overlap.known.name != name][:MAX_NEAREST_SHOWN]
        return [
            NearFactor(
                name=overlap.known.name,
                where=overlap.known.where,
                ratio=round_significant(overlap.ratio),
                shared=overlap.shared,
            )
            for overlap in others
        ]

    def curves(self) -> dict[str, Any]:
        """Return the daily series of each tested or accepted factor on search and selection days, as JSON by id."""
        return {
            name: self._measure_curves(name).record()
            for name, row in sorted(self.verdicts.items())
            if row.verdict != "rejected" or self._was_tested(row)
        }

    def _was_tested(self, row: VerdictRow) -> bool:
        """Return whether a rejected formula had a trial; code that failed one is not run on these days again."""
        expression = self.evaluator.read(self.evaluator.scores[row.factor_id].text)
        return bool(row.metrics["selection"]) and not expression.code

    def _measure_curves(self, name: str) -> DailyRankICByWindow:
        evaluator, score = self.evaluator, self.evaluator.scores[name]
        windows, sign = evaluator.windows, -1 if (score.sheet["rank_ic"] or 0.0) < 0 else 1
        values = evaluator.values(evaluator.read(score.text), windows.selection)
        return DailyRankICByWindow(
            search=self._measure_curve(values, windows.search, sign),
            selection=self._measure_curve(values, windows.selection, sign),
        )

    def _measure_curve(self, values: NDArray[np.float32], window: Window, sign: int) -> DailyRankIC:
        return DailyRankIC.read(self.evaluator.scorer.record_series(values, window, sign))

    def warnings(self) -> list[Note]:
        """Return the warnings of the whole campaign: about the data, the windows, and leak alarms on selection days."""
        evaluator = self.evaluator
        notes = [Note(code="data", message=note) for note in evaluator.panel.notes]
        if evaluator.windows.inherited:
            message = (
                "an earlier campaign on these days and names fixed the windows; "
                "the shares in this one's file do not count"
            )
            notes.append(Note(code="windows", message=message))
        if warning_text := few_labels(evaluator.windows.selection.days, evaluator.settings.horizon_days):
            notes.append(Note(code="few_labels", message=warning_text))
        if comments := evaluator.reviews.shown_decisions():
            message = (
                f"{len(comments)} comments of a person who could see selection figures reached the agents: "
                "later trials are not blind"
            )
            notes.append(Note(code="reviewed", message=message))
        stamps = Counter(
            warning["message"]
            for row in evaluator.scores.values()
            for warning in row.sheet["warnings"]
            if warning["code"] == UNCONTAINED_CODE
        )
        notes += [
            Note(code=UNCONTAINED_CODE, message=f"{stamps[stamp]} factors were {stamp}") for stamp in sorted(stamps)
        ]
        notes += [
            Note(code="own_part", message=trouble) for trouble in list_own_troubles(evaluator.ledger, evaluator.run)
        ]
        notes += [
            Note(code="library", message=f"{name} of the library cannot be read; nothing was compared with it: {why}")
            for name, why in sorted(evaluator.library.unreadable.items())
        ]
        alarm = "its RankIC on selection is too good; find out why before trading it"
        return notes + [Note(code="leak_alarm", message=f"{name}: {alarm}") for name in self.alarms()]

    def alarms(self) -> list[str]:
        """Return the factors and combinations whose mean RankIC on selection is beyond the leak threshold, by id."""
        limit = self.evaluator.settings.leak_rank_ic
        figures = {name: row.metrics["selection"] for name, row in self.verdicts.items()}
        return sorted(name for name, sheet in figures.items() if sheet and abs(sheet["rank_ic"] or 0.0) > limit)

    def _find_closed_test(self, home: str, name: str) -> dict[str, Any]:
        """Return the figures of a member's closed test; empty in a run of before there were any."""
        tests = (self.verdicts[home].metrics["selection"] or {}).get("members", ())
        test: Mapping[str, Any] = next((test for test in tests if test["id"] == name), {})
        names = ("p_value", "weakest_p_value", "weight", "proven", "accepted")
        return {key: test[key] for key in names if key in test}

    def _make_unsent_reason(self, name: str, sheet: Mapping[str, Any]) -> GateReason:
        """Return why a factor was not submitted to the gate."""
        agents = self.evaluator.ledger.runs.find(self.evaluator.run).config.get("settings", {}).get("agents", {})
        min_t, claim = agents.get("min_search_t", 0.0), self.claims[name]
        if home := self.accepted_homes.get(name):
            return _make_member_reason(home, self._find_closed_test(home, name))
        direction = 0 if claim.data_mined else claim.direction
        barred = next((f"it is known: {row['message']}" for row in sheet["weaknesses"] if row["code"] == "known"), "")
        if not barred and claim.data_mined and agents.get("survey_share") == 0:
            barred = "it has no mechanism, and agents.survey_share is 0"
        why = _explain_unsent(sheet["t"], min_t, direction, barred, others_sent=bool(self.verdicts))
        numbers = {"t": sheet["t"], "merit": sheet["merit"]}
        return GateReason(step="search", passed=False, message=f"not tested: {why}", numbers=numbers)


def _make_member_reason(home: str, test: Mapping[str, Any]) -> GateReason:
    """Return what the trial of an accepted combination says of one of its members."""
    start = f"part of the accepted combination {home}"
    if test.get("accepted"):
        proven = "proven alone as well: every subset of the members that holds it is significant"
        return GateReason(step="member", passed=True, message=f"{start}, {proven}", numbers=test)
    lacking = "it does not pay its costs alone" if test.get("proven") else "the trial proves nothing of it alone"
    return GateReason(step="member", passed=None, message=f"{start}; {lacking}", numbers=test)


def _explain_unsent(t: float | None, min_t: float, direction: int, barred: str, *, others_sent: bool) -> str:
    """Return why a factor was not submitted; other candidates are named only if others were submitted.

    `direction` is 0 where none is claimed; `barred` says why a strong factor may not be tested, if it may not.
    """
    if t is None:
        return "t is undefined in sample"
    if abs(t) < min_t:
        return f"|t| = {abs(t):.1f} in sample, below agents.min_search_t, {min_t:g}"
    if t * direction < 0:
        return f"it shows the opposite of its hypothesis (in-sample t = {t:.1f})"
    why = barred or ("other candidates were preferred" if others_sent else "nothing was sent to the gate")
    return f"{why} (in-sample t = {t:.1f})"


def _record_or_none(part: ResultsPart | None) -> dict[str, Any] | None:
    return part.record() if part else None


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
