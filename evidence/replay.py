"""Recompute a verdict from the ledger alone, by the gate's own code: the same inputs must give the same verdict.

Recomputed are formula, words and direction (parse, causal, complexity, alignment); the thresholds of originality,
redundancy and support on their recorded ratios; the trial's number and the discoveries before it, from the trials of
the workspace; t, p-value, threshold, deflated Sharpe and the verdict, from the daily series of the trial. The ratios
and the series themselves need the panel (`evaluation/checks/verification.py`). An edit of one record is found here; a
forgery in which all records agree is found with the panel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ledger import AlphaloomError, Trial, VerdictRow, compute_digest
from .archive import RunArchive
from .gate.acceptance_gate import MIN_RANKED_DAY_SHARE
from .gate.formula_steps import check_alignment, check_formula
from .gate.trial_evidence import TrialEvidence, build_verdict, daily_sharpes, decide_trial, remove_fault
from .gate.verdict import COSTS_STEP, Reason, Verdict
from .multiple_testing.families import Tie, list_parts, select_family_heads
from .newey_west import newey_west_t
from .originality.incremental import MIN_ADDED_T
from .scoring.long_short import annual_sharpe
from .scoring.metrics import round_significant
from .settings import EvidenceSettings

REQUIRED_STEPS = ("parse", "causal", "complexity", "support", "originality", "redundancy", "alignment")
TOO_OLD_MESSAGE = "its look was taken before daily series were kept: p-value and verdict cannot be computed again"
"""Message for a trial without daily series."""

ADDED_KEYS = ("power", "p_labels", "proven", "costs")
"""Keys of an outcome that older records lack; their absence is no difference."""

RELATIVE_TOLERANCE = 1e-9
"""The last digits of a sum of float64 depend on the machine's instruction set."""
FIELD_TOLERANCES = {"p_value": 2e-6, "p_labels": 2e-6, "level": 2e-6}
"""Relative tolerances of figures that are recorded to six digits."""


@dataclass(frozen=True)
class Replay:
    """The replay of one verdict; `missing` says why it is impossible, `unread` names the steps without a rule here."""

    factor_id: str
    verdict: str
    trial: int | None
    differs: tuple[RecordDifference, ...]
    missing: str = ""
    unread: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """Return same, differs, or cannot be replayed."""
        return "differs" if self.differs else "cannot be replayed" if self.missing else "same"

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        differs = [difference.record() for difference in self.differs]
        head = {"id": self.factor_id, "verdict": self.verdict, "trial": self.trial, "replay": self.word}
        return {**head, "differs": differs, "missing": self.missing, "unread": list(self.unread)}


def replay_verdict(archive: RunArchive, row: VerdictRow) -> Replay:
    """Recompute one verdict from the ledger alone."""
    name, number = row.factor_id, row.metrics.get("trial")
    try:
        reasons, unread = _recompute_reasons(archive, row)
        differences = list(_check_identity(archive, name))
        if not all(reason.passed for reason in reasons):
            differences += _compare_verdict(row, Verdict(name, "rejected", tuple(reasons)))
            return Replay(name, row.verdict, number, tuple(differences), "", unread)
        missing = _replay_trial(archive, row, reasons, differences)
        return Replay(name, row.verdict, number, tuple(differences), missing, unread)
    except (
        AlphaloomError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:  # score, hypothesis or formula missing or damaged
        text = f"{type(error).__name__}: {error}"
        return Replay(name, row.verdict, number, (RecordDifference("record", name, f"cannot be read: {text}"),))


def _replay_trial(
    archive: RunArchive, row: VerdictRow, reasons: list[Reason], differences: list[RecordDifference]
) -> str:
    """Add the differences of the trial and of its verdict; return why it could not be recomputed, or nothing."""
    trial = archive.trial(row)
    if trial is None or trial.outcome is None:
        differences.append(RecordDifference("trial", row.metrics["trial"], "no such look is in the ledger"))
        return ""
    differences += check_stream(archive, trial)
    evidence, missing = read_trial_evidence(archive, trial, differences)
    outcome = dict(trial.outcome)
    if evidence is not None and len(outcome["discoveries"]) < trial.number:
        recomputed = decide_trial(evidence, trial.number, len(outcome["discoveries"]))
        outcome |= {key: value for key, value in recomputed.items() if key in outcome or key not in ADDED_KEYS}
        differences += [*_check_trial(archive, trial, evidence), *find_differences(trial.outcome, outcome, "look")]
    differences += _compare_verdict(row, build_verdict(replace(trial, outcome=outcome), reasons))
    return missing


def _check_identity(archive: RunArchive, name: str) -> Iterator[RecordDifference]:
    factor_id = archive.expression(name).id
    if factor_id != name:
        yield RecordDifference("id", name, factor_id)


def _recompute_reasons(archive: RunArchive, row: VerdictRow) -> tuple[list[Reason], tuple[str, ...]]:
    """Return the recomputed reasons before statistics, and the steps that only the record has."""
    case, rules = archive.case(row.factor_id), archive.rules
    computed = (
        {step.step: step for step in (*check_formula(case, rules), check_alignment(case, rules))} if rules else {}
    )
    if case.expression.code:  # needs the panel and the sandbox
        computed.pop("causal", None)
    recorded = [
        Reason(record["step"], record["passed"], record["message"], record["numbers"]) for record in row.reasons
    ]
    before = [remove_fault(reason) for reason in recorded if reason.step not in ("statistics", COSTS_STEP)]
    recomputed = [computed.get(reason.step) or _decide_again(archive, row, reason, rules) for reason in before]
    missing = [
        Reason(step, False, "the ledger holds no such step")
        for step in REQUIRED_STEPS
        if step not in {reason.step for reason in recorded}
    ]
    ruled = {*computed, "support", "originality", "published", "redundancy", "fresh", "incremental"}
    return [*recomputed, *missing], tuple(reason.step for reason in before if reason.step not in ruled)


def _decide_again(archive: RunArchive, row: VerdictRow, reason: Reason, rules: EvidenceSettings | None) -> Reason:
    """Decide a step from its recorded ratio and the threshold of the settings."""
    if reason.step == "fresh":
        return replace(reason, passed=not _find_stale_members(archive, row, reason))
    limits = _list_limits(rules).get(reason.step)
    if limits is None:
        return reason
    ratio, bound, limit = limits
    numbers = {**reason.numbers, bound: limit if limit is not None else reason.numbers.get(bound)}
    if ratio not in reason.numbers:  # no known factor was like it
        return replace(reason, passed=True)
    value = reason.numbers[ratio]
    passed = value >= numbers[bound] if bound == "least" else abs(value) <= numbers[bound]
    return replace(reason, passed=passed, numbers=numbers)


def _list_limits(rules: EvidenceSettings | None) -> Mapping[str, tuple[str, str, float | None]]:
    """Return for each step the names of its ratio and its bound, and the bound in the settings."""
    return {
        "support": ("days", "least", MIN_RANKED_DAY_SHARE),
        "incremental": ("t", "least", MIN_ADDED_T),
        "originality": ("ratio", "most", rules.max_similarity if rules else None),
        **dict.fromkeys(
            ("published", "redundancy"), ("rank_correlation", "most", rules.max_redundancy if rules else None)
        ),
    }


def _find_stale_members(archive: RunArchive, row: VerdictRow, reason: Reason) -> list[str]:
    """Return the members of a set that were tested on selection before it; for a refused set, those it names."""
    own_trial, members = archive.trial(row), archive.members.get(row.factor_id, ())
    tested = {trial.subject for trial in archive.trials if own_trial is None or trial.id < own_trial.id}
    return [name for name in members if name in tested and (own_trial is not None or name in reason.message)]


def check_stream(archive: RunArchive, trial: Trial) -> Iterator[RecordDifference]:
    """Yield differences in a trial's place in the stream: its number, and the discoveries before it."""
    shared = {other.id for other in archive.ledger.trials.overlapping(trial.window, trial.opened_at)}
    earlier = [other for other in archive.trials if other.id in shared and other.id < trial.id]
    declared = max([trial.prior, *(other.prior for other in earlier)])
    yield from find_differences(trial.number, 1 + declared + len(earlier), "look.number")
    if trial.outcome is None or "discoveries" not in trial.outcome:
        return
    discoveries = {other.id: other for other in earlier if (other.outcome or {}).get("passed") is True}
    ties = [Tie(**record) for record in trial.outcome.get("ties", ())]
    named = {*trial.outcome["discoveries"], *(number for tie in ties for number in (tie.later, tie.earlier))} - {
        trial.id
    }
    # A trial that was still open elsewhere then, and was closed since, was no discovery at that time.
    certain = {number for number, other in discoveries.items() if other.closed_at < trial.opened_at}
    if not certain <= named <= {*discoveries}:
        yield RecordDifference("look.discoveries", sorted(named), sorted(discoveries))
    elif "ties" in trial.outcome:  # before ties were recorded, every discovery counted
        yield from find_differences(
            trial.outcome["discoveries"], select_family_heads(sorted(named), ties, trial.id), "look.discoveries"
        )
        yield from _check_ties(archive, [discoveries[number] for number in sorted(named)], trial, ties)


def _check_ties(
    archive: RunArchive, discoveries: Sequence[Trial], trial: Trial, ties: Sequence[Tie]
) -> Iterator[RecordDifference]:
    """Yield ties that contradict the record: shared members missing or invented, correlations within the limit."""
    by_id = {other.id: list_parts(archive.ledger, other) for other in (*discoveries, trial)}
    shared = {(b, a) for b in by_id for a in by_id if a < b and not by_id[a].isdisjoint(by_id[b])}
    yield from find_differences(
        sorted((tie.later, tie.earlier) for tie in ties if tie.members), sorted(shared), "look.ties"
    )
    limit = archive.rules.max_redundancy if archive.rules else 0.0
    for tie in ties:
        if tie.rank_correlation is not None and abs(tie.rank_correlation) <= limit:
            yield RecordDifference("look.ties", tie.rank_correlation, f"a rank correlation beyond {limit}")


def read_trial_evidence(
    archive: RunArchive, trial: Trial, differences: list[RecordDifference]
) -> tuple[TrialEvidence | None, str]:
    """Return the evidence of a trial, or why it is missing; a damaged object is added to the differences."""
    digest = (trial.outcome or {}).get("seen")
    if digest is None:
        return None, TOO_OLD_MESSAGE
    try:
        return TrialEvidence.read(archive.ledger.objects.get(digest)), ""
    except AlphaloomError as error:
        differences.append(RecordDifference("look.seen", digest, error.message))
        return None, ""


def _check_trial(archive: RunArchive, trial: Trial, evidence: TrialEvidence) -> Iterator[RecordDifference]:
    """Yield contradictions between stored series, recorded metrics, question and settings."""
    yield from find_differences(trial.question, compute_digest(dict(evidence.asked)), "look.question")
    yield from find_differences((trial.outcome or {})["selection"], evidence.sheet, "selection")
    yield from find_differences(evidence.asked.get("test") == "held", evidence.held is not None, "look.held")
    test = newey_west_t(evidence.rank_ic, evidence.lag)
    figures = {
        "days": test.days,
        "rank_ic": round_significant(test.mean),
        "t": round_significant(test.t),
        "net_sharpe": round_significant(annual_sharpe(evidence.net)),
    }
    yield from find_differences({name: evidence.sheet[name] for name in figures}, figures, "series")
    rank_ic = archive.evaluations[trial.subject].sheet["rank_ic"] or 0.0
    yield from find_differences(evidence.asked["sign"], 1 if rank_ic > 0 else -1, "look.sign")
    if archive.rules is not None:
        settings = archive.rules.model_dump(mode="json", include={*evidence.asked})
        yield from find_differences({name: evidence.asked[name] for name in settings}, settings, "look.asked")
    if trial.run == archive.run.id:
        scored = {*daily_sharpes(row.sheet for row in archive.evaluations.values())}
        unknown = sorted({*evidence.sharpes} - scored)
        yield from find_differences(unknown, [], "look.sharpes")


def _compare_verdict(row: VerdictRow, recomputed: Verdict) -> Iterator[RecordDifference]:
    """Yield differences between a recorded verdict and the recomputed one."""
    recomputed_row = recomputed.row(row.run)
    yield from find_differences(row.verdict, recomputed_row.verdict, "verdict")
    yield from find_differences(_key_by_step(row.reasons), _key_by_step(recomputed_row.reasons), "reasons")
    yield from find_differences(row.metrics, recomputed_row.metrics, "metrics")


def _key_by_step(reasons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {reason["step"]: {name: reason[name] for name in ("passed", "message", "numbers")} for reason in reasons}


@dataclass(frozen=True)
class RecordDifference:
    """One field whose recorded and recomputed values differ."""

    field: str
    recorded: Any
    recomputed: Any

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"field": self.field, "recorded": self.recorded, "recomputed": self.recomputed}


def find_differences(recorded: Any, recomputed: Any, field: str = "") -> Iterator[RecordDifference]:
    """Yield the differences of two JSON values: numbers beyond rounding, all else exactly."""
    if isinstance(recorded, Mapping) and isinstance(recomputed, Mapping):
        for key in sorted({*recorded, *recomputed}):
            yield from find_differences(recorded.get(key), recomputed.get(key), f"{field}.{key}" if field else str(key))
    elif _is_list(recorded) and _is_list(recomputed) and len(recorded) == len(recomputed):
        for place, (old, new) in enumerate(zip(recorded, recomputed, strict=True)):
            yield from find_differences(old, new, f"{field}[{place}]")
    elif not _is_same(recorded, recomputed, FIELD_TOLERANCES.get(field.rpartition(".")[2], RELATIVE_TOLERANCE)):
        yield RecordDifference(field, recorded, recomputed)


def find_series_difference(field: str, recorded: NDArray[Any], recomputed: NDArray[Any]) -> Iterator[RecordDifference]:
    """Yield the first day on which two daily series `[D]` differ, or nothing; NaN equals NaN."""
    if recorded.shape != recomputed.shape:
        yield RecordDifference(f"{field} (days)", len(recorded), len(recomputed))
        return
    different_days = np.flatnonzero(
        ~np.isclose(recorded, recomputed, rtol=RELATIVE_TOLERANCE, atol=1e-12, equal_nan=True)
    )
    if different_days.size:
        day = int(different_days[0])
        yield RecordDifference(f"{field}[{day}]", _to_json_number(recorded[day]), _to_json_number(recomputed[day]))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_same(old: Any, new: Any, tolerance: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (old, new))
    return math.isclose(old, new, rel_tol=tolerance, abs_tol=1e-15) if numbers else bool(old == new)


def _to_json_number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
