"""Where a workspace stores its record: in a SQLite file, or in a PostgreSQL database whose address it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import WorkspaceError
from ..files.objects import Bodies, Objects, StoredObjects, put_object, read_json, write_json
from ..files.private import make_file, make_folder
from ..postgres.connection import PostgresLink
from ..postgres.server import PostgresServer, check_address
from .protocol import Database, Transaction
from .sqlite import SqliteDatabase

LEDGER_FILE, ADDRESS_FILE = "ledger.sqlite", "ledger.json"
"""The record itself, or the file with the address of its database."""
CHECKPOINTS = "checkpoints.sqlite"
"""File of a run's folder with the state of its graph."""


def has_record(workspace: Path) -> bool:
    """Return whether a folder is a workspace that has a record."""
    return any((workspace / name).is_file() for name in (LEDGER_FILE, ADDRESS_FILE))


@dataclass(frozen=True)
class Home:
    """A workspace and the address of its database; the address is empty for a SQLite file."""

    workspace: Path
    address: str

    @classmethod
    def of(cls, workspace: Path, address: str = "") -> Home:
        """Return where a workspace stores its record; `address` chooses a database for a new workspace.

        Raises
        ------
        AddressError
            If the address cannot be used or contains a secret.
        WorkspaceError
            If the workspace already has its record elsewhere.
        """
        address_file = workspace / ADDRESS_FILE
        stored = _read_address(address_file) if address_file.is_file() else ""
        if not address:
            return cls(workspace, stored)
        if (workspace / LEDGER_FILE).is_file() or (stored and stored != check_address(address)):
            where = stored or str(workspace / LEDGER_FILE)
            raise WorkspaceError(
                f"this workspace keeps its record at {where}",
                field="--ledger",
                got=check_address(address),
                hint="Leave --ledger out, name a new workspace with --workspace, or, if the database has moved, "
                f"write its address into {address_file}.",
            )
        return cls(workspace, check_address(address))

    def opened(self, upgraded: Callable[[Transaction, Callable[[bytes], object]], None]) -> tuple[Database, Bodies]:
        """Open the record, creating it if necessary; return the database and the store of objects.

        `upgraded` is called when a record of an earlier version gets what it lacks: with the transaction, and with a
        function that stores an object in it.
        """
        if not self.address:
            make_folder(self.workspace / "objects")
            make_file(self.workspace / LEDGER_FILE)
            objects = Objects(self.workspace / "objects")
            file = self.workspace / LEDGER_FILE
            return SqliteDatabase(file, self.refuse_lost, lambda session: upgraded(session, objects.put)), objects
        from ..postgres.connection import PostgresDatabase

        database = PostgresDatabase(
            PostgresServer(self.address),
            self.refuse_lost,
            lambda session: upgraded(session, partial(put_object, session)),
        )
        if not (self.workspace / ADDRESS_FILE).is_file():
            write_json(self.workspace / ADDRESS_FILE, {"address": self.address})
        return database, StoredObjects(database)

    def refuse_lost(self) -> None:
        """Refuse to create a record in a workspace that has runs.

        A new record would count trials and openings of sealed days from one again.

        Raises
        ------
        WorkspaceError
            If the workspace has runs whose record is gone.
        """
        runs = self.workspace / "runs"
        names = sorted(folder.name for folder in runs.iterdir() if folder.is_dir()) if runs.is_dir() else []
        if names:
            raise lost_record_error(self.workspace, self.address or self.workspace / LEDGER_FILE, names)

    def server_version(self) -> str:
        """Return a line with the version of the database server; `LedgerError` if it does not answer."""
        with closing(PostgresLink(PostgresServer(self.address))) as link:
            return f"PostgreSQL {link.connection.info.server_version // 10_000} answers"

    def checkpoints(self, folder: Path) -> Path | Callable[[], PostgresLink]:
        """Return the store of the graph of the run with this folder: a file, or a function that opens a link."""
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
        field="workspace",
        hint="Restore the ledger from a copy. To begin anew, name another folder with --workspace and declare "
        "the trials made here with evidence.prior_trials: a new ledger would count them from one again.",
    )


def _read_address(file: Path) -> str:
    """Read the address file of a workspace, which a person may have edited."""
    try:
        return check_address(str(read_json(file)["address"]))
    except (ValueError, KeyError, TypeError):
        raise WorkspaceError(
            f"{file} does not say where the ledger is", field="workspace", allowed='{"address": "postgresql://..."}'
        ) from None
