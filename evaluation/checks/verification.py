"""Verify a run's record: recompute verdicts with the panel, and find records that the ledger lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evidence import (
    RecordDifference,
    Replay,
    RunArchive,
    find_differences,
    find_series_difference,
    read_trial_evidence,
)
from ...evidence.gate import SUCCEEDS, Case, TrialEvidence, Weighing
from ...evidence.scoring import round_significant
from ...ledger import Trial, VerdictRow, compute_digest
from ...library import MEMBER
from ..service import Evaluator
from ..submissions import WEIGHING_EVENT

NEEDED_VERDICT = {"accepted": "accepted", "member": "accepted", "promoted": "watchlist"}
"""The verdict that a library factor needs, by its origin, a member that of its combination; other origins need none."""


WORDED_KEYS = ("warnings",)
"""Keys of metrics that hold words, which a newer version may write differently."""


def replay_on_panel(archive: RunArchive, evaluator: Evaluator, row: VerdictRow, before: Replay) -> Replay:
    """Add to a replay the differences that need the panel: metrics of search and selection, and daily series."""
    if row.factor_id not in archive.evaluations:
        return before
    differences = tuple(_compare_with_panel(archive, evaluator, row))
    return replace(before, differs=(*before.differs, *differences))


def _compare_with_panel(archive: RunArchive, evaluator: Evaluator, row: VerdictRow) -> Iterator[RecordDifference]:
    scorer, windows, name = evaluator.scorer, evaluator.windows, row.factor_id
    recorded_sheet = archive.evaluations[name].sheet
    expression, trial = archive.expression(name), archive.trial(row)
    case = replace(archive.case(name), values=evaluator.values(expression))
    search_sheet = scorer.examine(case.values, windows.search).record()
    yield from _compare_metrics("panel: search", {key: recorded_sheet.get(key) for key in search_sheet}, search_sheet)
    support = evaluator.submissions.gate.support(case)
    recorded = next((reason for reason in row.reasons if reason["step"] == "support"), {})
    yield from find_differences(recorded.get("numbers"), dict(support.numbers), "panel: support")
    if trial is None or trial.outcome is None:
        return
    key = windows.key(windows.selection)
    yield from find_differences(
        [trial.window.first_day, trial.window.last_day], [key.first_day, key.last_day], "panel: window"
    )
    evidence, _ = read_trial_evidence(archive, trial, [])
    values = evaluator.values(expression, windows.selection)
    if evidence is not None and evidence.asked.get(SUCCEEDS):
        residual = evaluator.submissions.gate.succession.beyond(
            values, str(evidence.asked[SUCCEEDS]), windows.selection
        )
        values = values if residual is None else residual
    sheet = scorer.score(values, windows.selection, int(trial.outcome["sign"]))
    yield from _compare_metrics("panel: selection", trial.outcome["selection"], sheet.record())
    yield from _compare_ties(archive, evaluator, trial)
    if evidence is not None:
        yield from find_series_difference("panel: daily RankIC", evidence.rank_ic, sheet.daily)
        yield from _compare_holding(evidence, scorer.held(values, windows.selection))
        yield from find_series_difference("panel: daily return after costs", evidence.net, sheet.net_daily)
        yield from _compare_added(archive, evaluator, trial, evidence, replace(case, values=values))
        if evidence.net_on_search is not None:
            net = scorer.score(case.values, windows.search, case.sign).net_sharpe
            recorded_net = round_significant(evidence.net_on_search)
            yield from find_differences(recorded_net, round_significant(net), "panel: net Sharpe on search")
        yield from find_differences(evidence.asked["data"], evaluator.submissions.gate.data, "panel: data")


def _compare_ties(archive: RunArchive, evaluator: Evaluator, trial: Trial) -> Iterator[RecordDifference]:
    """Yield differences between the recorded ties of discoveries and those on the panel."""
    outcome = trial.outcome or {}
    if "ties" in outcome:
        named = {*outcome["discoveries"], *(tie[name] for tie in outcome["ties"] for name in ("later", "earlier"))}
        trials = [other for other in archive.trials if other.id in named | {trial.id}]
        families = replace(evaluator.submissions.gate.families, ledger=archive.ledger)
        recomputed = [tie.record() for tie in families.ties(trials)]
        yield from find_differences(outcome["ties"], recomputed, "panel: ties")


def _compare_added(
    archive: RunArchive, evaluator: Evaluator, trial: Trial, evidence: TrialEvidence, case: Case
) -> Iterator[RecordDifference]:
    """Yield differences in what the trial was judged beside, in what was left, and in the tests of members."""
    taken_by = str((trial.outcome or {}).get("taken_by", trial.run))
    gate = replace(evaluator.submissions.gate, ledger=archive.ledger, run=taken_by)
    residual = gate.earlier_looks.remove(case.values, case, trial)
    if evidence.net_on_search is None:
        return  # a trial of before it was judged beside others
    removed = [list(evidence.beside), list(evidence.not_removed)]
    yield from find_differences(removed, [*map(list, gate.earlier_looks.beside(case, trial))], "panel: beside")
    if evidence.added is not None and residual is not None:
        daily = evaluator.scorer.daily_rank_ic(residual, evaluator.windows.selection)
        yield from find_series_difference("panel: daily RankIC of what it adds", evidence.added, daily)
    if evidence.members:
        weighing = archive.ledger.events.get(archive.run.id, WEIGHING_EVENT, trial.subject)
        if weighing is None:
            yield RecordDifference("weighing", None, "the ledger holds no weights of this combination")
            return
        weighed = replace(case, weighing=Weighing(**weighing.body), members=_compute_members(evaluator, case))
        level = float((trial.outcome or {})["level"])
        yield from find_differences(
            [dict(member) for member in evidence.members], gate.prove_members(weighed, trial, level), "panel: members"
        )


def _compute_members(evaluator: Evaluator, case: Case) -> tuple[Case, ...]:
    """Return the members of a combination with their values."""
    return tuple(replace(member, values=evaluator.values(member.expression)) for member in case.members)


def _compare_holding(evidence: TrialEvidence, recomputed: NDArray[np.float64] | None) -> Iterator[RecordDifference]:
    """Yield the difference of the tested series, if one was recorded."""
    if evidence.held is not None and recomputed is not None:
        yield from find_series_difference("panel: daily RankIC of what is held", evidence.held, recomputed)


def _compare_metrics(
    field: str, recorded: Mapping[str, Any], recomputed: Mapping[str, Any]
) -> Iterator[RecordDifference]:
    """Yield differences between the figures of two records of metrics, words left out."""
    recorded_figures, recomputed_figures = (
        {key: value for key, value in sheet.items() if key not in WORDED_KEYS} for sheet in (recorded, recomputed)
    )
    yield from find_differences(recorded_figures, recomputed_figures, field)


def find_loose_ends(archive: RunArchive) -> Iterator[RecordDifference]:
    """Yield what a run's record lacks: verdicts, trials and openings that its results name, rows, and files."""
    if archive.run.status == "done":
        judged = {*archive.verdicts}
        for trial in archive.trials:
            if trial.run == archive.run.id and trial.outcome is not None and trial.subject not in judged:
                yield RecordDifference(f"trial {trial.number}", trial.subject, "the ledger holds no verdict on it")
    words = {name: row.verdict for name, row in archive.verdicts.items()}
    for row in archive.ledger.library.rows():
        needed = NEEDED_VERDICT.get(row.origin)
        homes = [name for name, members in archive.members.items() if row.factor_id in members]
        named = homes if row.origin == MEMBER else [row.factor_id]
        if row.run == archive.run.id and needed and needed not in {words.get(name) for name in named}:
            yield RecordDifference("library", row.factor_id, f"the run's verdict on it is not {needed}")
    for gap in archive.ledger.runs.breaks(archive.run):
        yield RecordDifference(gap.table, gap.recorded, gap.said)
    yield from _check_files(archive)
    yield from _check_named_trials(archive)


def _check_files(archive: RunArchive) -> Iterator[RecordDifference]:
    """Yield the files of the run that differ from the digests in the ledger."""
    folder = archive.ledger.runs.folder(archive.run.id)
    digests = archive.ledger.artefacts.digests(archive.run.id)
    if archive.run.status == "done" and "results.json" not in digests and (folder / "results.json").is_file():
        yield RecordDifference("results.json", None, "a run that is done has its digest on record")
    for name, digest in sorted(digests.items()):
        path = folder / name
        yield from find_differences(digest, compute_digest(path.read_bytes()) if path.is_file() else None, name)


def _check_named_trials(archive: RunArchive) -> Iterator[RecordDifference]:
    """Yield the trials, verdicts and openings that the recorded results name and the ledger lacks."""
    for name in ("results.json", "sealed.json"):
        record = _read_recorded(archive, name)
        sealed = record if name == "sealed.json" else record.get("sealed") or {}
        if sealed.get("opened") and sealed["number"] not in archive.ledger.trials.openings_of(archive.run.id):
            yield RecordDifference(
                name, f"opening {sealed['number']} of the sealed days", "the ledger does not hold it"
            )
        for word in ("accepted", "proven", "watchlist", "rejected", "members", "untested"):
            yield from _check_entries(archive, record.get(word) or (), name)


def _check_entries(archive: RunArchive, entries: Any, name: str) -> Iterator[RecordDifference]:
    looks = {(trial.subject, trial.number) for trial in archive.trials}
    for entry in entries:
        if entry["trial"] is None:
            continue
        if entry["id"] not in archive.verdicts:
            yield RecordDifference(name, f"a verdict on {entry['id']}", "the ledger does not hold it")
        if (entry["id"], entry["trial"]) not in looks:
            yield RecordDifference(name, f"trial {entry['trial']} of {entry['id']}", "the ledger does not hold it")


def _read_recorded(archive: RunArchive, name: str) -> Mapping[str, Any]:
    """Return the contents of a file of the run as it was recorded, whatever it holds now."""
    body = archive.ledger.artefacts.read(archive.run.id, name)
    return json.loads(body) if body else {}
