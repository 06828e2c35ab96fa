"""What a run's record promises and does not hold, and what in it cannot have been written as it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence import RunArchive
from ...evidence.replay import RecordDifference, differences
from ...ledger import compute_digest

NEEDED_VERDICT = {"accepted": "accepted", "promoted": "watchlist"}
"""The verdict that a library factor needs, by how it came in; the others came without one."""


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
        yield from differences(wanted, compute_digest(path.read_bytes()) if path.is_file() else None, name)


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
