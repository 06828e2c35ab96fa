"""A run's record verified: verdicts run again with the panel, and whatever its results name but the ledger does not hold."""

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
from ...evidence.gate import SUCCEEDS, TrialEvidence
from ...ledger import Trial, VerdictRow, compute_digest
from ..service import Evaluator

NEEDED_VERDICT = {"accepted": "accepted", "promoted": "watchlist"}
"""The verdict that a library factor needs, by how it came in; the others came without one."""


WORDED_KEYS = ("warnings",)
"""Keys of a sheet that hold words."""


def replay_on_panel(archive: RunArchive, evaluator: Evaluator, row: VerdictRow, before: Replay) -> Replay:
    """Add to a replay from the ledger what the panel tells: the sheets of search and selection, and the daily series."""
    if row.factor_id not in archive.evaluations:
        return before
    found = tuple(_compare_with_panel(archive, evaluator, row))
    return replace(before, differs=(*before.differs, *found))


def _compare_with_panel(archive: RunArchive, evaluator: Evaluator, row: VerdictRow) -> Iterator[RecordDifference]:
    scorer, windows, name = evaluator.scorer, evaluator.windows, row.factor_id
    scored = archive.evaluations[name].sheet
    expression, trial = archive.expression(name), archive.trial(row)
    case = replace(archive.case(name), values=evaluator.values(expression))
    searched = scorer.examine(case.values, windows.search).record()
    yield from _sheets("panel: search", {key: scored.get(key) for key in searched}, searched)
    support = evaluator.gate.support(case)
    recorded = next((one for one in row.reasons if one["step"] == "support"), {})
    yield from find_differences(recorded.get("numbers"), dict(support.numbers), "panel: support")
    if trial is None or trial.outcome is None:
        return
    key = windows.key(windows.selection)
    yield from find_differences(
        [trial.window.first_day, trial.window.last_day], [key.first_day, key.last_day], "panel: window"
    )
    seen, _ = read_trial_evidence(archive, trial, [])
    values = evaluator.values(expression, windows.selection)
    if seen is not None and seen.asked.get(SUCCEEDS):
        left = evaluator.gate.succession.beyond(values, str(seen.asked[SUCCEEDS]), windows.selection)
        values = values if left is None else left
    sheet = scorer.score(values, windows.selection, int(trial.outcome["sign"]))
    yield from _sheets("panel: selection", trial.outcome["selection"], sheet.record())
    yield from _ties(archive, evaluator, trial)
    if seen is not None:
        yield from find_series_difference("panel: daily RankIC", seen.rank_ic, sheet.daily)
        yield from _compare_holding(seen, scorer.held(values, windows.selection))
        yield from find_series_difference("panel: daily return after costs", seen.net, sheet.net_daily)
        yield from find_differences(seen.asked["data"], evaluator.gate.data, "panel: data")


def _ties(archive: RunArchive, evaluator: Evaluator, trial: Trial) -> Iterator[RecordDifference]:
    """Yield where the discoveries before a trial are tied otherwise than is recorded."""
    outcome = trial.outcome or {}
    if "ties" in outcome:
        known = {*outcome["discoveries"], *(tie[name] for tie in outcome["ties"] for name in ("later", "earlier"))}
        found = [each for each in archive.trials if each.id in known | {trial.id}]
        families = replace(evaluator.gate.families, ledger=archive.ledger)
        again = [tie.record() for tie in families.ties(found)]
        yield from find_differences(outcome["ties"], again, "panel: ties")


def _compare_holding(seen: TrialEvidence, again: NDArray[np.float64] | None) -> Iterator[RecordDifference]:
    """Yield where the series that was tested differs, if one was kept."""
    if seen.held is not None and again is not None:
        yield from find_series_difference("panel: daily RankIC of what is held", seen.held, again)


def _sheets(field: str, recorded: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[RecordDifference]:
    """Yield where the figures of two sheets differ; what they say in words may be said better by a newer version."""
    mine, theirs = (
        {key: value for key, value in sheet.items() if key not in WORDED_KEYS} for sheet in (recorded, again)
    )
    yield from find_differences(mine, theirs, field)


def find_loose_ends(archive: RunArchive) -> Iterator[RecordDifference]:
    """Yield what a run's record lacks: verdicts, proofs, looks and openings that its results name, rows, and files."""
    if archive.run.status == "done":
        judged = {*archive.verdicts}
        for trial in archive.trials:
            if trial.run == archive.run.id and trial.outcome is not None and trial.subject not in judged:
                yield RecordDifference(f"trial {trial.number}", trial.subject, "the ledger holds no verdict on it")
    words = {name: row.verdict for name, row in archive.verdicts.items()}
    for row in archive.ledger.library():
        needed = NEEDED_VERDICT.get(row.origin)
        if row.run == archive.run.id and needed and words.get(row.factor_id) != needed:
            yield RecordDifference("library", row.factor_id, f"the run's verdict on it is not {needed}")
    for each in archive.ledger.breaks(archive.run):
        yield RecordDifference(each.table, each.recorded, each.said)
    yield from _files(archive)
    yield from _check_named_trials(archive)


def _files(archive: RunArchive) -> Iterator[RecordDifference]:
    """Yield the files of the run that are no longer those that the ledger knows."""
    folder = archive.ledger.run_folder(archive.run.id)
    known = archive.ledger.artefacts(archive.run.id)
    if archive.run.status == "done" and "results.json" not in known and (folder / "results.json").is_file():
        yield RecordDifference("results.json", None, "a run that is done has its digest on record")
    for name, wanted in sorted(known.items()):
        path = folder / name
        yield from find_differences(wanted, compute_digest(path.read_bytes()) if path.is_file() else None, name)


def _check_named_trials(archive: RunArchive) -> Iterator[RecordDifference]:
    """Yield the looks, verdicts and openings that the recorded results name and the ledger no longer holds."""
    for name in ("results.json", "sealed.json"):
        record = _read_recorded(archive, name)
        sealed = record if name == "sealed.json" else record.get("sealed") or {}
        if sealed.get("opened") and sealed["number"] not in archive.ledger.openings_of(archive.run.id):
            yield RecordDifference(
                name, f"opening {sealed['number']} of the sealed days", "the ledger does not hold it"
            )
        for word in ("accepted", "watchlist", "rejected"):
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
    """Return what a file of the run held when it was recorded, whatever it holds now."""
    body = archive.ledger.recorded(archive.run.id, name)
    return json.loads(body) if body else {}
