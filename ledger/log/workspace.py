"""Verifies the record of a workspace with what the desk keeps of it outside."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..database.home import Home
from ..database.schema import SCHEMA_PART_GONE
from ..digest import compute_digest
from ..errors import DamagedObject
from ..files.objects import Bodies
from ..registers import RECORDED_FILES
from .checkpoint import CheckpointPolicy
from .comparison import LogFinding
from .keys import ACKNOWLEDGED, COSIGNED, SIGNED, WITNESS_LIST, WORKSPACES, KeyFolder, RememberedCheckpoint
from .note import SignedNote
from .reader import RunQuery, holds_checkpoint, read_record, spell_path
from .signing import MAX_LOGS_NAMED
from .upkeep.erasure import find_lost_bodies, sort_erasures
from .verification import LogReading, OutsideCheckpoint, verify_record

if TYPE_CHECKING:
    from ..calls.heads import Head

KEPT_HERE = "signed by this desk in this folder"


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

        erasures, unsigned, untold = sort_erasures(run_query, keys)
        reading = verify_record(run_query, read_object, find_outside, keys.trusted(WITNESS_LIST), policy, erasures)
        more = [
            LogFinding("log", f"erasure {one.number}", f"no key of this desk signed it: {one.describe()}")
            for one in unsigned
        ]
        more += [
            LogFinding("dropped", f"calls {number}", f"its stored text {digest} is gone, and nobody erased it")
            for number, digest in find_lost_bodies(run_query, objects, erasures)
        ]
        more += [*_check_schema(workspace, run_query), *_check_files(workspace, run_query)]
        notes = (*reading.notes, untold) if untold else reading.notes
        return replace(reading, findings=(*map(partial(_add_hint, workspace), reading.findings), *more), notes=notes)

    return read_record(workspace, work)


def _add_hint(workspace: Path, finding: LogFinding) -> LogFinding:
    """Return a finding with what to do if the record is here on purpose."""
    if finding.kind not in ("older copy", "rewritten") or "signed by this desk" not in finding.what:
        return finding
    command = f"alphaloom record acknowledge {spell_path(workspace)} --reason TEXT"
    return replace(finding, message=f"{finding.message}. If you put this record here on purpose: {command}")


def _check_schema(workspace: Path, run_query: RunQuery) -> Iterator[LogFinding]:
    """Yield the parts of the database that are not as this version makes them."""
    if Home.of(workspace).address:
        from ..postgres.connection import list_schema_changes as list_changes
    else:
        from ..database.sqlite import list_schema_changes as list_changes
    gone = []
    for what, message in list_changes(run_query):
        if message == SCHEMA_PART_GONE:
            gone.append(what)
        else:
            yield LogFinding("schema", what, message)
    if gone:
        more = f" and {len(gone) - MAX_LOGS_NAMED} more" if gone[MAX_LOGS_NAMED:] else ""
        yield LogFinding("schema", ", ".join(gone[:MAX_LOGS_NAMED]) + more, SCHEMA_PART_GONE)


def _check_files(workspace: Path, run_query: RunQuery) -> Iterator[LogFinding]:
    """Yield the recorded files of the runs of this workspace that are gone or changed."""
    is_shared = bool(Home.of(workspace).address)
    gone: set[str] = set()
    for run, name, body in run_query("SELECT run, name, body FROM artefacts ORDER BY seq"):
        folder = workspace / "runs" / run
        path = folder / name
        if name not in RECORDED_FILES or run in gone or (is_shared and not folder.is_dir()):
            continue  # a run without a folder may be of another workspace on the database
        if not folder.is_dir():
            gone.add(run)
            yield LogFinding("dropped", f"runs/{run}", "the folder of the run is gone")
        elif not path.is_file():
            yield LogFinding("dropped", f"runs/{run}/{name}", "the file is gone")
        elif compute_digest(path.read_bytes()) != _read_digest(body):
            yield LogFinding("edited", f"runs/{run}/{name}", "the file is not the one that was recorded")


def _read_digest(body: str) -> object:
    try:
        row = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return row.get("digest") if isinstance(row, dict) else None


def _recall(workspace: Path, keys: KeyFolder, origins: Sequence[str]) -> Iterator[OutsideCheckpoint]:
    """Yield what the desk keeps of logs with these names, and of the logs that belong to this folder.

    A workspace may be copied, and both may go on. What this desk signed in another folder may therefore be missing
    here as long as that folder holds it; but not where this folder had the log itself, before it was moved there.
    """
    here = str(workspace.resolve())
    homes = {one.checkpoint.origin: one for one in keys.recall(WORKSPACES, here)}
    for name in dict.fromkeys([*origins, *homes]):
        signed = keys.recall(SIGNED, name)
        for one in signed:
            if one.about == here:
                yield OutsideCheckpoint(one.note, KEPT_HERE, is_home=name in homes, is_branch=one.is_branch)
            elif name in origins:
                find_copy = None if name in homes else partial(_find_holder, [one], one.note)
                kept = f"signed by this desk in {spell_path(one.about)}"
                yield OutsideCheckpoint(one.note, kept, is_branch=one.is_branch, find_copy=find_copy)
        if name in homes and all(one.note.text != homes[name].note.text for one in signed if one.about == here):
            yield OutsideCheckpoint(homes[name].note, KEPT_HERE, is_home=True)
        others = [one for one in signed if one.about != here]
        for one in keys.recall(COSIGNED, name):
            find_copy = None if name in homes else partial(_find_holder, others, one.note)
            yield OutsideCheckpoint(one.note, "signed by a witness", is_home=name in homes, find_copy=find_copy)
        for one in keys.recall(ACKNOWLEDGED, name):
            yield OutsideCheckpoint(one.note, "accepted by a person", is_home=name in homes, is_acknowledged=True)


def _find_holder(places: Sequence[RememberedCheckpoint], note: SignedNote) -> str:
    """Return the first of these folders whose record holds a checkpoint now; "" if none does."""
    return next((spell_path(one.about) for one in places if holds_checkpoint(Path(one.about), note)), "")


def read_call_heads(workspace: Path) -> list[Head]:
    """Return the lines of tool calls that the record names: each must still be there.

    Raises
    ------
    WorkspaceError
        If there is no record, or it cannot be read.
    """
    from ..calls import CALLS_FOLDER
    from ..calls.heads import Head

    query = "SELECT segment, sequence, hash FROM call_heads ORDER BY id"

    def work(run_query: RunQuery, _: object) -> list[Head]:
        return [Head(str(segment), int(sequence), str(digest)) for segment, sequence, digest in run_query(query)]

    heads = read_record(workspace, work)
    if Home.of(workspace).address:  # other workspaces on the database have tool calls of their own
        heads = [head for head in heads if (workspace / CALLS_FOLDER / head.segment).is_file()]
    return heads
