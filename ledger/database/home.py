"""Where a workspace keeps its record: in a file of its own, or in a PostgreSQL database that it names for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import WorkspaceError
from ..files.objects import Bodies, Objects, StoredObjects, read_json, write_json
from ..files.private import make_file, make_folder
from ..postgres.link import PostgresLink
from ..postgres.server import PostgresServer, check_address
from .protocol import Database
from .sqlite import SqliteDatabase

LEDGER_FILE, ADDRESS_FILE = "ledger.sqlite", "ledger.json"
"""The record itself, or the file that says which database holds it."""


CHECKPOINTS = "checkpoints.sqlite"
"""File of a run's folder: the state of its graph."""


def has_record(workspace: Path) -> bool:
    """Tell whether a folder is a workspace that has a record."""
    return any((workspace / name).is_file() for name in (LEDGER_FILE, ADDRESS_FILE))


@dataclass(frozen=True)
class Home:
    """A workspace and the address of its database; empty for the file."""

    workspace: Path
    address: str

    @classmethod
    def of(cls, workspace: Path, address: str = "") -> Home:
        """Return where a workspace keeps its record, or shall keep it from now on.

        Raises
        ------
        AddressError
            If the address cannot be used, or a secret is in it.
        WorkspaceError
            If the record is elsewhere already.
        """
        named = workspace / ADDRESS_FILE
        held = _address(named) if named.is_file() else ""
        if not address:
            return cls(workspace, held)
        if (workspace / LEDGER_FILE).is_file() or (held and held != check_address(address)):
            where = held or str(workspace / LEDGER_FILE)
            raise WorkspaceError(
                f"this workspace keeps its record at {where}", field="--ledger", got=check_address(address),
                hint=f"Leave --ledger out, name a new workspace with --workspace, or, if the database has moved, write its address into {named}.",
            )  # fmt: skip
        return cls(workspace, check_address(address))

    def opened(self) -> tuple[Database, Bodies]:
        """Open the record, making it if it is not there."""
        if not self.address:
            make_folder(self.workspace / "objects")
            make_file(self.workspace / LEDGER_FILE)
            return SqliteDatabase(self.workspace / LEDGER_FILE, self.refuse_lost), Objects(self.workspace / "objects")
        from ..postgres.connection import PostgresDatabase

        database = PostgresDatabase(PostgresServer(self.address), self.refuse_lost)
        if not (self.workspace / ADDRESS_FILE).is_file():
            write_json(self.workspace / ADDRESS_FILE, {"address": self.address})
        return database, StoredObjects(database)

    def refuse_lost(self) -> None:
        """Refuse to begin a new record beside runs: its trials and openings of sealed days would be counted from one again.

        Raises
        ------
        WorkspaceError
            If there are runs in the workspace, and their record is gone.
        """
        runs = self.workspace / "runs"
        found = sorted(each.name for each in runs.iterdir() if each.is_dir()) if runs.is_dir() else []
        if found:
            raise lost_record_error(self.workspace, self.address or self.workspace / LEDGER_FILE, found)

    def server_version(self) -> str:
        """Ask the server of the database what it is; `LedgerError` if it does not answer."""
        with closing(PostgresLink(PostgresServer(self.address))) as link:
            return f"PostgreSQL {link.connection.info.server_version // 10_000} answers"

    def checkpoints(self, folder: Path) -> Path | Callable[[], PostgresLink]:
        """Return where the graph of the run with this folder keeps its state: a file, or what opens a link to the server."""
        if self.address:
            return partial(PostgresLink, PostgresServer(self.address))
        make_folder(folder)
        make_file(folder / CHECKPOINTS)
        return folder / CHECKPOINTS


def lost_record_error(workspace: Path, record: Path | str, runs: Sequence[str]) -> WorkspaceError:
    """Return the error for a workspace with runs whose record is gone."""
    many = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    return WorkspaceError(
        f"{workspace} holds {many}, such as {runs[-1]}, and their record is gone: there is no ledger at {record}",
        field="workspace", hint="Restore the ledger from a copy. To begin anew, name another folder with --workspace and "
        "declare the trials made here with evidence.prior_trials: a new ledger would count them from one again.",
    )  # fmt: skip


def _address(named: Path) -> str:
    """Read the address that a workspace keeps, which a person may have changed."""
    try:
        return check_address(str(read_json(named)["address"]))
    except (ValueError, KeyError, TypeError):
        raise WorkspaceError(
            f"{named} does not say where the ledger is", field="workspace", allowed='{"address": "postgresql://..."}'
        ) from None
