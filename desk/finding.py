"""Which folder a person means by RUN."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

__all__ = ["WORKSPACE", "run_folder"]

WORKSPACE = Path(".alphaloom")


def run_folder(run: str, workspace: Path | None) -> Path:
    """Return the folder of a run named by its id, its folder, or `latest`.

    Raises
    ------
    UnknownRun
        When the workspace has no such run.
    """
    given = Path(run)
    if (given / "results.json").is_file():
        return given
    from ..ledger import Ledger, UnknownRun

    place = workspace or WORKSPACE
    if not place.is_dir():
        raise UnknownRun(f"there is no workspace at {place}", field="run", got=run, hint="name it with --workspace DIR")
    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        return ledger.run_folder(ledger.run(run).id)
