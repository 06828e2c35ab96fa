"""How an interpreter is started behind a wall, and how it is ended."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from ..errors import SandboxUnavailable

_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")
_SHARED_FILES = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
OPTIONS = ("-s", "-P", "-B", "-X", "utf8", "-c")
"""Of the interpreter: no user's packages, no current folder, no bytecode; the seed of hashes is in the environment."""
_ROOM = Path(__file__).parents[1]
_ROOM_PACKAGE = "alphaloom.sandbox"
_ENTRY_MODULES = ("jail", "jail.server", "jail.child", "jail.channel", "jail.frames")


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


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python to be shown behind a wall, read-only, at the places where it stands here.

    Attributes
    ----------
    program : str
        The executable, free of links.
    paths : tuple of str
        Folders of numpy and pandas, for `sys.path`.
    links : tuple of (str, str)
        Links that the loader goes through, and what they point to.
    readable : tuple of str
        Files and folders that must be readable; none lies in another.
    """

    program: str
    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    readable: tuple[str, ...]


@cache
def find_interpreter() -> Interpreter:
    """Return the interpreter that runs this process; of home, of /etc and of the environment nothing else is shown."""
    program = os.path.realpath(sys.executable)
    packages = {str(Path(_find_origin(name)).parents[1]) for name in ("numpy", "pandas")}
    links = tuple((place, os.readlink(place)) for place in _LIBRARIES if os.path.islink(place))
    libraries = [place for place in _LIBRARIES if os.path.isdir(place) and not os.path.islink(place)]
    files = [place for place in _SHARED_FILES if os.path.exists(place)]
    return Interpreter(
        program,
        tuple(sorted(packages)),
        links,
        _drop_nested([*libraries, *files, *_installation_paths(program), *packages]),
    )


def _find_origin(name: str) -> str:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin


def _installation_paths(program: str) -> list[str]:
    """Return the installation's folder; of a system's Python only the program and its library."""
    if sys.base_prefix not in ("/", "/usr"):
        return [os.path.realpath(sys.base_prefix), sys.base_prefix]
    return [program, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]


def _drop_nested(places: list[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for place in sorted(set(places)):
        if not any(Path(place).is_relative_to(other) for other in kept):
            kept.append(place)
    return tuple(kept)


@cache
def read_program() -> str:
    """Return the text of the program that runs behind the wall."""
    return (Path(__file__).parent / "program.py").read_text(encoding="utf-8")


@cache
def collect_modules() -> dict[str, str]:
    """Return the text of what `read_program` imports and of what that imports at its top, by full name."""
    found = {"alphaloom": "", _ROOM_PACKAGE: ""}
    waiting = [f"{_ROOM_PACKAGE}.{name}" for name in _ENTRY_MODULES]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        place = _ROOM.joinpath(*name.removeprefix(f"{_ROOM_PACKAGE}.").split("."))
        package = place.is_dir()
        found[name] = (place / "__init__.py" if package else place.with_suffix(".py")).read_text(encoding="utf-8")
        waiting.extend(_find_imports(name if package else name.rpartition(".")[0], found[name]))
    return dict(sorted(found.items()))


def _find_imports(package: str, text: str) -> Iterator[str]:
    """Yield the modules of this room that a text imports when it is imported, and the packages that they lie in."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
            whole = f"{base}.{node.module}" if node.module else base
            for name in (whole, *(f"{whole}.{alias.name}" for alias in node.names)):
                if _exists(name):
                    yield name


def _exists(name: str) -> bool:
    if not name.startswith(f"{_ROOM_PACKAGE}."):
        return False
    place = _ROOM.joinpath(*name.removeprefix(f"{_ROOM_PACKAGE}.").split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
