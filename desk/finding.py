"""Which run a person means by RUN: an id, a folder, or `latest`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

__all__ = ["WORKSPACE", "located", "run_folder"]

WORKSPACE = Path(".alphaloom")


def located(run: str, workspace: Path | None) -> tuple[str, Path]:
    """Return a run's name and the workspace to look in; a run's folder names both.

    Raises
    ------
    UnknownRun
        When there is no such workspace; none is made by asking.
    """
    folder = Path(run).resolve()
    if folder.is_dir() and folder.parent.name == "runs":
        return folder.name, folder.parent.parent
    place = workspace or WORKSPACE
    if not place.is_dir():
        from ..ledger import UnknownRun

        hint = "Name the workspace with --workspace DIR, or give the run's folder."
        raise UnknownRun(f"There is no workspace at {place}, so no run either.", field="run", got=run, hint=hint)
    return run, place


def run_folder(run: str, workspace: Path | None) -> Path:
    """Return the folder of a run.

    Raises
    ------
    UnknownRun
        When the workspace has no such campaign.
    """
    given = Path(run)
    if (given / "results.json").is_file():
        return given
    from ..evidence import named
    from ..ledger import Ledger

    name, place = located(run, workspace)
    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        return ledger.files(named(ledger, name).id)
