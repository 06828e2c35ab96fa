"""Shows every other process that this one lives; the system takes the sign down when it dies, however it dies."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

from .locks import hold_lock, holder
from .protocol import Database


class Presence:
    """A lock under a name that nobody else ever has: a file of the workspace, and what other workspaces see of it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder
        self._name = ""
        self._signs = ExitStack()

    @property
    def name(self) -> str:
        """The name of this process's sign, which stands from the first time that it is asked for."""
        if not self._name:
            name = uuid4().hex
            self._signs.enter_context(hold_lock(self._path(name), name))
            self._signs.enter_context(self._database.held(_lock_name(name)))
            self._name = name
        return self._name

    def own(self, name: str) -> bool:
        """Tell whether a sign is ours."""
        return name == self._name

    def absent(self, name: str) -> bool:
        """Tell whether nobody shows a sign of this name, and clear away what a killed process left of it."""
        path = self._path(name)
        if holder(path) is not None or self._database.holder(_lock_name(name)) is not None:
            return False
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Take the sign down; a second time does nothing."""
        if self._name:
            with suppress(OSError):
                self._path(self._name).unlink(missing_ok=True)
        self._signs.close()
        self._name = ""

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _lock_name(name: str) -> str:
    return f"caller {name}"
