"""Verifies the record of a workspace with what the desk keeps of it outside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..digest import compute_digest
from ..errors import AlphaloomError, DamagedObject
from ..files.objects import Bodies
from ..registers import RECORDED_FILES
from .checkpoint import Checkpoint, CheckpointPolicy
from .comparison import LogFinding
from .keys import COSIGNED, SIGNED, WITNESS_LIST, WORKSPACES, KeyFolder
from .note import SignedNote
from .reader import RunQuery, read_record
from .upkeep.erasure import find_lost_bodies, read_erasures
from .verification import LogReading, OutsideCheckpoint, verify_record


def verify_workspace(
    workspace: Path,
    keys: KeyFolder,
    given: Sequence[OutsideCheckpoint] = (),
    policy: CheckpointPolicy | None = None,
) -> LogReading:
    """Verify the record of a workspace, against the checkpoints that this desk keeps and those that are given.

    Raises
    ------
    WorkspaceError
        If there is no record, or it cannot be read.
    """

    def find_outside(origins: Sequence[str]) -> list[OutsideCheckpoint]:
        return [*_recall(workspace, keys, origins), *given]

    def work(run_query: RunQuery, objects: Bodies) -> LogReading:
        def read_object(digest: str) -> bytes | None:
            try:
                return objects.get(digest)
            except DamagedObject:
                return None

        reading = verify_record(run_query, read_object, find_outside, keys.trusted(WITNESS_LIST), policy)
        lost = [
            LogFinding("dropped", f"calls {number}", f"its stored text {digest} is gone, and nobody erased it")
            for number, digest in find_lost_bodies(run_query, objects, read_erasures(run_query))
        ]
        return replace(reading, findings=(*reading.findings, *_check_files(workspace, run_query), *lost))

    return read_record(workspace, work)


def _check_files(workspace: Path, run_query: RunQuery) -> Iterator[LogFinding]:
    """Yield the recorded files of the runs of this workspace that are gone or changed."""
    for run, name, body in run_query("SELECT run, name, body FROM artefacts ORDER BY seq"):
        folder = workspace / "runs" / run
        path = folder / name
        if name not in RECORDED_FILES or not folder.is_dir():  # the run may be of another workspace on the database
            continue
        if not path.is_file():
            yield LogFinding("dropped", f"runs/{run}/{name}", "the file is gone")
        elif compute_digest(path.read_bytes()) != json.loads(body).get("digest"):
            yield LogFinding("edited", f"runs/{run}/{name}", "the file is not the one that was recorded")


def _recall(workspace: Path, keys: KeyFolder, origins: Sequence[str]) -> list[OutsideCheckpoint]:
    """Return what the desk keeps of logs with these names, and of the log that it signed last in this workspace.

    A workspace may be copied, and both may go on. What this desk signed in another folder is therefore asked of this
    record only where nothing was signed here and the other folder no longer holds it.
    """
    here = str(workspace.resolve())
    signed = [kept for name in origins for kept in keys.recall_by_place(SIGNED, name)]
    has_signed_here = any(folder == here for folder, _ in signed)
    kept = [
        OutsideCheckpoint(
            note,
            "kept beside this desk's key",
            folder if folder != here and (has_signed_here or _holds_checkpoint(Path(folder), note)) else "",
        )
        for folder, note in signed
    ]
    kept += [OutsideCheckpoint(note, "signed by a witness") for name in origins for note in keys.recall(COSIGNED, name)]
    texts = {one.note.text for one in kept}
    last = keys.recall(WORKSPACES, here)
    kept += [
        OutsideCheckpoint(note, "signed by this desk in this workspace") for note in last if note.text not in texts
    ]
    return kept


def _holds_checkpoint(workspace: Path, note: SignedNote) -> bool:
    """Return whether the record of a workspace holds a checkpoint; False if there is none that can be read."""
    query = f"SELECT note FROM log_checkpoints WHERE size = {Checkpoint.parse(note.text).size}"

    def work(run_query: RunQuery, objects: Bodies) -> bool:
        return any(SignedNote.parse(stored).text == note.text for (stored,) in run_query(query))

    try:
        return read_record(workspace, work)
    except (AlphaloomError, OSError):
        return False
