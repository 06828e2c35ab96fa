"""How an interpreter is started behind a wall, and how it is ended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import SandboxUnavailable

__all__ = ["InterpreterLaunch", "Wall", "find_tool"]


def _do_nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class InterpreterLaunch:
    """One interpreter to be started.

    Attributes
    ----------
    command : tuple of str
        The whole command line; its standard input and output are the program's.
    paths : tuple of str
        Folders of numpy and pandas as they are seen behind the wall; none where they are found by themselves.
    descriptors : tuple of int
        Open files that the command inherits; they are closed here once it has started.
    environment : dict of str to str or None
        What the command itself is told; None: what this process is, for tools that pass nothing of it on.
    end : callable
        Ends what the command itself does not take along when it is killed.
    """

    command: tuple[str, ...]
    paths: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()
    environment: dict[str, str] | None = field(default_factory=dict)
    end: Callable[[], None] = field(default=_do_nothing)


class Wall(Protocol):
    """What stands around the interpreter."""

    @property
    def name(self) -> str:
        """Return the backend's name."""
        ...

    @property
    def stamp(self) -> str:
        """Return what goes with every value; empty unless there is no wall."""
        ...

    @property
    def hint(self) -> str:
        """Return what to do where it does not work."""
        ...

    def check(self) -> None:
        """Raise SandboxUnavailable where a tool is missing."""
        ...

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started."""
        ...


def find_tool(tool: str, hint: str) -> str:
    """Return where a tool is installed.

    Raises
    ------
    SandboxUnavailable
        It is not; `hint` says how to install it.
    """
    place = shutil.which(tool)
    if place is None:
        raise SandboxUnavailable(f"{tool} is not installed", field=tool, hint=hint)
    return place
