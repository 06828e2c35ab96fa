"""The lookup of RUN: an id, a folder, or `latest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..facts.model_spend import REMARK_MODELS
from ..facts.standing import DEFAULT_WORKSPACE
from ..report.sections.run_notes import RunNotes, read_run_notes
from .console import stderr_console

if TYPE_CHECKING:
    from ...ledger import Ledger, Run

T = TypeVar("T")


def locate_run(run: str, workspace: Path | None) -> tuple[str, Path]:
    """Return a run's name and its workspace; a run's folder gives both.

    Raises
    ------
    UnknownRun
        There is no such workspace; a lookup creates none.
    """
    folder = Path(run).resolve()
    if folder.is_dir() and folder.parent.name == "runs":
        return folder.name, folder.parent.parent
    place = workspace or DEFAULT_WORKSPACE
    if not place.is_dir():
        from ...ledger import UnknownRun

        hint = "Name the workspace with --workspace DIR, or give the run's folder."
        raise UnknownRun(f"There is no workspace at {place}, so no run either.", field="run", got=run, hint=hint)
    _refuse_folder_of_workspaces(run, place)
    return run, place


def find_run(ledger: Ledger, name: str) -> Run:
    """Return a run by its id, its folder or `latest`: the last but models' remarks and benches, if there is one."""
    beside = {REMARK_MODELS, "bench"}
    runs = [run for run in ledger.runs.all() if not beside & {*run.config}] if name == "latest" else []
    return runs[-1] if runs else ledger.runs.find(name)


def _refuse_folder_of_workspaces(run: str, place: Path) -> None:
    """Refuse a folder that only contains workspaces and name them: `make demo` creates a new one for each run."""
    from ...ledger import UnknownRun
    from ...ledger.database import has_record

    workspaces = (
        []
        if has_record(place)
        else sorted(folder for folder in place.iterdir() if folder.is_dir() and has_record(folder))
    )
    if workspaces:
        names = ", ".join(folder.name for folder in workspaces[-3:])
        raise UnknownRun(
            f"{place} is no workspace, but holds {len(workspaces)}: {names}.",
            field="run",
            got=run,
            hint=f"Name one, such as the newest: --workspace {workspaces[-1]}",
        )


def run_folder(run: str, workspace: Path | None) -> Path:
    """Return the folder of a run after comparing its files with the ledger's digests; see `read_run`."""
    folder, _ = read_run(run, workspace)
    return folder


def read_run(run: str, workspace: Path | None) -> tuple[Path, RunNotes]:
    """Return the folder of a run after comparing its files with the ledger's digests, and the record's notes on it.

    A file without a recorded digest, and a folder outside any workspace, are read as they are, with a notice.

    Raises
    ------
    UnknownRun
        The workspace has no such campaign.
    ChangedFile
        A file of the run is not the one whose digest the ledger recorded.
    """
    from ...evaluation import find_campaign
    from ...ledger import Ledger

    folder = Path(run)
    if (folder / "results.json").is_file() and not _is_in_workspace(folder.resolve()):
        stderr_console().print(
            f"note: {folder} lies in no workspace: its files were compared with no record", soft_wrap=True
        )
        return folder, RunNotes()
    name, place = locate_run(run, workspace)
    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        run_id = find_campaign(ledger, name).id
        for file in ledger.artefacts.check(run_id):
            stderr_console().print(f"note: {file}: no digest recorded by the version that wrote it", soft_wrap=True)
        return ledger.runs.files(run_id), read_run_notes(ledger, run_id)


def _is_in_workspace(folder: Path) -> bool:
    """Return whether a run's folder is in a workspace that has a record."""
    from ...ledger.database import has_record

    return folder.parent.name == "runs" and has_record(folder.parent.parent)


@contextmanager
def open_record(place: Path) -> Iterator[Ledger]:
    """Open the ledger of a workspace that is there; a look creates none.

    Raises
    ------
    WorkspaceError
        The folder holds no record.
    """
    from ...ledger import Ledger

    with Ledger.open(_find_record(place), clock=lambda: datetime.now(UTC)) as ledger:
        yield ledger


def read_ledger(place: Path, work: Callable[[Ledger], T]) -> T:
    """Return what a function reads from the record of a workspace, in which nothing is written.

    A record of a version without the log gets it before.

    Raises
    ------
    WorkspaceError
        The folder holds no record.
    """
    from ...ledger import Ledger
    from ...ledger.log import is_logged

    if not is_logged(_find_record(place)):
        Ledger.open(place, clock=lambda: datetime.now(UTC)).close()
    return Ledger.read(place, work)


def require_folder(place: Path) -> Path:
    """Return the folder of a workspace, with or without a record, or raise `WorkspaceError`."""
    from ...ledger import WorkspaceError

    if not place.is_dir():
        hint = "Name the folder of a workspace with --workspace DIR."
        raise WorkspaceError(f"There is no workspace at {place}.", field="--workspace", got=str(place), hint=hint)
    return place


def _find_record(place: Path) -> Path:
    """Return a folder that holds a record, or raise `WorkspaceError`."""
    from ...ledger import WorkspaceError
    from ...ledger.database import has_record

    if not has_record(place):
        reason = "there is no ledger in it" if place.is_dir() else "the folder does not exist"
        hint = "Name a workspace with --workspace DIR, or begin one: alphaloom run, or alphaloom library add."
        raise WorkspaceError(f"There is no record at {place}: {reason}.", field="--workspace", hint=hint)
    return place
