"""A verdict computed again from the ledger alone, by the gate's own code: the same inputs must give the same verdict.

Computed again: formula, words and direction (parse, causal, complexity, alignment); the thresholds of originality, redundancy
and support on their recorded ratios; the trial's number and the discoveries before it, from the trials of the workspace; t,
p-value, threshold, deflated Sharpe and the verdict, from the daily series of the trial. The ratios and the series themselves
need the panel (`evaluation/checks/verification.py`). An edit of one record is found here. A forger who makes all records
agree is found by the panel.
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
from .gate.verdict import Reason, Verdict
from .multiple_testing.families import Tie, list_parts, select_family_heads
from .newey_west import newey_west_t
from .scoring.long_short import annual_sharpe
from .scoring.metrics import round_significant
from .settings import EvidenceSettings

REQUIRED_STEPS = ("parse", "causal", "complexity", "support", "originality", "redundancy", "alignment")
TOO_OLD_MESSAGE = "its look was taken before daily series were kept: p-value and verdict cannot be computed again"
"""What is said of a trial without a series."""

ADDED_KEYS = ("power", "p_labels")
"""Keys of an outcome that older records do not have; their absence is no difference."""

RELATIVE_TOLERANCE = 1e-9
"""Relative; the last digits of a sum of float64 depend on the machine's instruction set."""
FIELD_TOLERANCES = {"p_value": 2e-6, "p_labels": 2e-6, "level": 2e-6}
"""Recorded to six digits."""


@dataclass(frozen=True)
class Replay:
    """What became of one verdict; `missing` says why it could not be run again, `unread` which steps have no rule here."""

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
        differs = [each.record() for each in self.differs]
        said = {"id": self.factor_id, "verdict": self.verdict, "trial": self.trial, "replay": self.word}
        return {**said, "differs": differs, "missing": self.missing, "unread": list(self.unread)}


def replay_verdict(archive: RunArchive, row: VerdictRow) -> Replay:
    """Run one verdict again from the ledger alone."""
    name, number = row.factor_id, row.metrics.get("trial")
    try:
        reasons, unread = _reasons(archive, row)
        found = list(_identity(archive, name))
        if not all(reason.passed for reason in reasons):
            found += _compare_verdict(row, Verdict(name, "rejected", tuple(reasons)))
            return Replay(name, row.verdict, number, tuple(found), "", unread)
        missing = _replay_trial(archive, row, reasons, found)
        return Replay(name, row.verdict, number, tuple(found), missing, unread)
    except (
        AlphaloomError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:  # its score, hypothesis or formula is gone or broken
        said = f"{type(error).__name__}: {error}"
        return Replay(name, row.verdict, number, (RecordDifference("record", name, f"cannot be read: {said}"),))


def _replay_trial(archive: RunArchive, row: VerdictRow, reasons: list[Reason], found: list[RecordDifference]) -> str:
    """Add what differs in the look and in the verdict that follows from it; return why it could not be taken again."""
    trial = archive.trial(row)
    if trial is None or trial.outcome is None:
        found.append(RecordDifference("trial", row.metrics["trial"], "no such look is in the ledger"))
        return ""
    found += check_stream(archive, trial)
    seen, missing = read_trial_evidence(archive, trial, found)
    outcome = dict(trial.outcome)
    if seen is not None and len(outcome["discoveries"]) < trial.number:
        again = decide_trial(seen, trial.number, len(outcome["discoveries"]))
        outcome |= {key: value for key, value in again.items() if key in outcome or key not in ADDED_KEYS}
        found += [*_check_trial(archive, trial, seen), *find_differences(trial.outcome, outcome, "look")]
    found += _compare_verdict(row, build_verdict(replace(trial, outcome=outcome), reasons))
    return missing


def _identity(archive: RunArchive, name: str) -> Iterator[RecordDifference]:
    again = archive.expression(name).id
    if again != name:
        yield RecordDifference("id", name, again)


def _reasons(archive: RunArchive, row: VerdictRow) -> tuple[list[Reason], tuple[str, ...]]:
    """Return every reason before statistics as it comes out now, and the steps of which only the record speaks."""
    case, rules = archive.case(row.factor_id), archive.rules
    computed = (
        {step.step: step for step in (*check_formula(case, rules), check_alignment(case, rules))} if rules else {}
    )
    if case.expression.code:  # only the panel, and the sandbox, can tell
        computed.pop("causal", None)
    kept = [Reason(one["step"], one["passed"], one["message"], one["numbers"]) for one in row.reasons]
    before = [remove_fault(reason) for reason in kept if reason.step != "statistics"]
    again = [computed.get(reason.step) or _decide_again(archive, row, reason, rules) for reason in before]
    lost = [
        Reason(step, False, "the ledger holds no such step")
        for step in REQUIRED_STEPS
        if step not in {r.step for r in kept}
    ]
    known = {*computed, "support", "originality", "published", "redundancy", "fresh"}
    return [*again, *lost], tuple(reason.step for reason in before if reason.step not in known)


def _decide_again(archive: RunArchive, row: VerdictRow, reason: Reason, rules: EvidenceSettings | None) -> Reason:
    """Decide a step again from its recorded ratio and the threshold of the settings."""
    if reason.step == "fresh":
        return replace(reason, passed=not _stale_members(archive, row, reason))
    limits = _limits(rules).get(reason.step)
    if limits is None:
        return reason
    ratio, bound, limit = limits
    numbers = {**reason.numbers, bound: limit if limit is not None else reason.numbers.get(bound)}
    if ratio not in reason.numbers:  # nothing known was like it
        return replace(reason, passed=True)
    value = reason.numbers[ratio]
    passed = value >= numbers[bound] if bound == "least" else abs(value) <= numbers[bound]
    return replace(reason, passed=passed, numbers=numbers)


def _limits(rules: EvidenceSettings | None) -> Mapping[str, tuple[str, str, float | None]]:
    """Return for each step the names of its ratio and of its bound, and the bound that the settings give."""
    return {
        "support": ("days", "least", MIN_RANKED_DAY_SHARE),
        "originality": ("ratio", "most", rules.max_similarity if rules else None),
        **dict.fromkeys(
            ("published", "redundancy"), ("rank_correlation", "most", rules.max_redundancy if rules else None)
        ),
    }


def _stale_members(archive: RunArchive, row: VerdictRow, reason: Reason) -> list[str]:
    """Return the members of a set that met the selection window before it did; of a refused set, those it names."""
    own, members = archive.trial(row), archive.members.get(row.factor_id, ())
    looked = {each.subject for each in archive.trials if own is None or each.id < own.id}
    return [name for name in members if name in looked and (own is not None or name in reason.message)]


def check_stream(archive: RunArchive, trial: Trial) -> Iterator[RecordDifference]:
    """Yield what is wrong with a trial's place in the stream: its number, and the discoveries before it."""
    shared = {each.id for each in archive.ledger.overlapping_trials(trial.window, trial.opened_at)}
    earlier = [each for each in archive.trials if each.id in shared and each.id < trial.id]
    declared = max([trial.prior, *(each.prior for each in earlier)])
    yield from find_differences(trial.number, 1 + declared + len(earlier), "look.number")
    if trial.outcome is None or "discoveries" not in trial.outcome:
        return
    found = {each.id: each for each in earlier if (each.outcome or {}).get("passed") is True}
    ties = [Tie(**each) for each in trial.outcome.get("ties", ())]
    known = {*trial.outcome["discoveries"], *(name for tie in ties for name in (tie.later, tie.earlier))} - {trial.id}
    # A look that was still open elsewhere then, and was closed since, is no discovery of that time.
    certain = {name for name, each in found.items() if each.closed_at < trial.opened_at}
    if not certain <= known <= {*found}:
        yield RecordDifference("look.discoveries", sorted(known), sorted(found))
    elif "ties" in trial.outcome:  # before there were ties, every discovery counted
        yield from find_differences(
            trial.outcome["discoveries"], select_family_heads(sorted(known), ties, trial.id), "look.discoveries"
        )
        yield from _check_ties(archive, [found[name] for name in sorted(known)], trial, ties)


def _check_ties(
    archive: RunArchive, found: Sequence[Trial], trial: Trial, ties: Sequence[Tie]
) -> Iterator[RecordDifference]:
    """Yield ties that the record does not bear out: shared members that are missing or made up, ranks that are not alike."""
    by_id = {each.id: list_parts(archive.ledger, each) for each in (*found, trial)}
    shared = {(b, a) for b in by_id for a in by_id if a < b and not by_id[a].isdisjoint(by_id[b])}
    yield from find_differences(
        sorted((tie.later, tie.earlier) for tie in ties if tie.members), sorted(shared), "look.ties"
    )
    limit = archive.rules.max_redundancy if archive.rules else 0.0
    for tie in ties:
        if tie.rank_correlation is not None and abs(tie.rank_correlation) <= limit:
            yield RecordDifference("look.ties", tie.rank_correlation, f"a rank correlation beyond {limit}")


def read_trial_evidence(
    archive: RunArchive, trial: Trial, found: list[RecordDifference]
) -> tuple[TrialEvidence | None, str]:
    """Return what the look saw, or why it cannot be read; an object that is damaged is a difference."""
    kept = (trial.outcome or {}).get("seen")
    if kept is None:
        return None, TOO_OLD_MESSAGE
    try:
        return TrialEvidence.read(archive.ledger.get(kept)), ""
    except AlphaloomError as error:
        found.append(RecordDifference("look.seen", kept, error.message))
        return None, ""


def _check_trial(archive: RunArchive, trial: Trial, seen: TrialEvidence) -> Iterator[RecordDifference]:
    """Yield where the kept series, the recorded sheet, the question and the settings do not agree with each other."""
    yield from find_differences(trial.question, compute_digest(dict(seen.asked)), "look.question")
    yield from find_differences((trial.outcome or {})["selection"], seen.sheet, "selection")
    yield from find_differences(seen.asked.get("test") == "held", seen.held is not None, "look.held")
    test = newey_west_t(seen.rank_ic, seen.lag)
    figures = {
        "days": test.days,
        "rank_ic": round_significant(test.mean),
        "t": round_significant(test.t),
        "net_sharpe": round_significant(annual_sharpe(seen.net)),
    }
    yield from find_differences({name: seen.sheet[name] for name in figures}, figures, "series")
    mine = archive.evaluations[trial.subject].sheet["rank_ic"] or 0.0
    yield from find_differences(seen.asked["sign"], 1 if mine > 0 else -1, "look.sign")
    if archive.rules is not None:
        asked = archive.rules.model_dump(mode="json", include={*seen.asked})
        yield from find_differences({name: seen.asked[name] for name in asked}, asked, "look.asked")
    if trial.run == archive.run.id:
        known = {*daily_sharpes(row.sheet for row in archive.evaluations.values())}
        strange = sorted({*seen.sharpes} - known)
        yield from find_differences(strange, [], "look.sharpes")


def _compare_verdict(row: VerdictRow, again: Verdict) -> Iterator[RecordDifference]:
    """Yield where a recorded verdict differs from one that came out again."""
    mine = again.row(row.run)
    yield from find_differences(row.verdict, mine.verdict, "verdict")
    yield from find_differences(_key_by_step(row.reasons), _key_by_step(mine.reasons), "reasons")
    yield from find_differences(row.metrics, mine.metrics, "metrics")


def _key_by_step(reasons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {reason["step"]: {name: reason[name] for name in ("passed", "message", "numbers")} for reason in reasons}


@dataclass(frozen=True)
class RecordDifference:
    """One place where what is recorded and what comes out again are not the same."""

    field: str
    recorded: Any
    recomputed: Any

    def record(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"field": self.field, "recorded": self.recorded, "recomputed": self.recomputed}


def find_differences(recorded: Any, recomputed: Any, field: str = "") -> Iterator[RecordDifference]:
    """Yield where two JSON values differ: numbers beyond rounding, all else exactly."""
    if isinstance(recorded, Mapping) and isinstance(recomputed, Mapping):
        for key in sorted({*recorded, *recomputed}):
            yield from find_differences(recorded.get(key), recomputed.get(key), f"{field}.{key}" if field else str(key))
    elif _is_list(recorded) and _is_list(recomputed) and len(recorded) == len(recomputed):
        for place, (one, other) in enumerate(zip(recorded, recomputed, strict=True)):
            yield from find_differences(one, other, f"{field}[{place}]")
    elif not _is_same(recorded, recomputed, FIELD_TOLERANCES.get(field.rpartition(".")[2], RELATIVE_TOLERANCE)):
        yield RecordDifference(field, recorded, recomputed)


def find_series_difference(field: str, recorded: NDArray[Any], recomputed: NDArray[Any]) -> Iterator[RecordDifference]:
    """Yield the first day on which two daily series `[D]` differ, or nothing; NaN equals NaN."""
    if recorded.shape != recomputed.shape:
        yield RecordDifference(f"{field} (days)", len(recorded), len(recomputed))
        return
    unlike = np.flatnonzero(~np.isclose(recorded, recomputed, rtol=RELATIVE_TOLERANCE, atol=1e-12, equal_nan=True))
    if unlike.size:
        day = int(unlike[0])
        yield RecordDifference(f"{field}[{day}]", _to_json_number(recorded[day]), _to_json_number(recomputed[day]))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_same(one: Any, other: Any, close: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    return math.isclose(one, other, rel_tol=close, abs_tol=1e-15) if numbers else bool(one == other)


def _to_json_number(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)
