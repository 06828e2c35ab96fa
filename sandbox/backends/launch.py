"""Start an interpreter behind a wall, and end it."""

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
"""Options of the interpreter: no user packages, no current folder, no bytecode; the hash seed is in the environment."""
_ROOM = Path(__file__).parents[1]
_ROOM_PACKAGE = "alphaloom.sandbox"
_ENTRY_MODULES = ("jail", "jail.server", "jail.child", "jail.channel", "jail.frames")


def _do_nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class InterpreterLaunch:
    """How one interpreter is started.

    Attributes
    ----------
    command : tuple of str
        The whole command line; its standard input and output are the program's.
    paths : tuple of str
        Folders of numpy and pandas behind the wall; empty where the interpreter finds them by itself.
    descriptors : tuple of int
        Open files that the command inherits; they are closed here once it has started.
    environment : dict of str to str or None
        Environment of the command; None: that of this process, for tools that pass nothing of it on.
    end : callable
        Ends what survives when the command is killed.
    """

    command: tuple[str, ...]
    paths: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()
    environment: dict[str, str] | None = field(default_factory=dict)
    end: Callable[[], None] = field(default=_do_nothing)


class Wall(Protocol):
    """The isolation around an interpreter."""

    @property
    def name(self) -> str:
        """Return the backend's name."""
        ...

    @property
    def stamp(self) -> str:
        """Return the warning that stays with every value; empty unless there is no isolation."""
        ...

    @property
    def hint(self) -> str:
        """Return what to do where the wall does not work."""
        ...

    def check(self) -> None:
        """Raise SandboxUnavailable where a tool is missing."""
        ...

    def launch(self) -> InterpreterLaunch:
        """Return how one interpreter is started."""
        ...


def find_tool(tool: str, hint: str) -> str:
    """Return the path of a tool.

    Raises
    ------
    SandboxUnavailable
        It is not installed; `hint` says how to install it.
    """
    place = shutil.which(tool)
    if place is None:
        raise SandboxUnavailable(f"{tool} is not installed", field=tool, hint=hint)
    return place


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that is mounted read-only behind a wall, at the same paths as here.

    Attributes
    ----------
    program : str
        The executable, with links resolved.
    paths : tuple of str
        Folders of numpy and pandas, for `sys.path`.
    links : tuple of (str, str)
        Links that the loader follows, and their targets.
    readable : tuple of str
        Files and folders that must be readable; none is inside another.
    """

    program: str
    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    readable: tuple[str, ...]


@cache
def find_interpreter() -> Interpreter:
    """Return the interpreter of this process; no other part of home, /etc or the environment is visible."""
    program = os.path.realpath(sys.executable)
    packages = {str(Path(_find_origin(name)).parents[1]) for name in ("numpy", "pandas")}
    links = tuple((place, os.readlink(place)) for place in _LIBRARIES if os.path.islink(place))
    libraries = [place for place in _LIBRARIES if os.path.isdir(place) and not os.path.islink(place)]
    files = [place for place in _SHARED_FILES if os.path.exists(place)]
    return Interpreter(
        program,
        tuple(sorted(packages)),
        links,
        _drop_nested([*libraries, *files, *_list_installation(program), *packages]),
    )


def _find_origin(name: str) -> str:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin


def _list_installation(program: str) -> list[str]:
    """Return the folders of the installation; of a system Python only the program and its library."""
    if sys.base_prefix not in ("/", "/usr"):
        return [os.path.realpath(sys.base_prefix), sys.base_prefix]
    return [program, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]


def _drop_nested(places: list[str]) -> tuple[str, ...]:
    outermost: list[str] = []
    for place in sorted(set(places)):
        if not any(Path(place).is_relative_to(other) for other in outermost):
            outermost.append(place)
    return tuple(outermost)


@cache
def read_program() -> str:
    """Return the text of the program that runs behind the wall."""
    return (Path(__file__).parent / "program.py").read_text(encoding="utf-8")


@cache
def collect_modules() -> dict[str, str]:
    """Return the source of the modules that the program needs, with their top-level imports, by full name."""
    sources = {"alphaloom": "", _ROOM_PACKAGE: ""}
    waiting = [f"{_ROOM_PACKAGE}.{name}" for name in _ENTRY_MODULES]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        place = _ROOM.joinpath(*name.removeprefix(f"{_ROOM_PACKAGE}.").split("."))
        package = place.is_dir()
        sources[name] = (place / "__init__.py" if package else place.with_suffix(".py")).read_text(encoding="utf-8")
        waiting.extend(_find_imports(name if package else name.rpartition(".")[0], sources[name]))
    return dict(sorted(sources.items()))


def _find_imports(package: str, text: str) -> Iterator[str]:
    """Yield the modules of this room that a source imports at its top, and their packages."""
    relative = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) and node.level]
    for node in relative:
        base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
        module = f"{base}.{node.module}" if node.module else base
        yield from filter(_is_module, (module, *(f"{module}.{alias.name}" for alias in node.names)))


def _is_module(name: str) -> bool:
    if not name.startswith(f"{_ROOM_PACKAGE}."):
        return False
    place = _ROOM.joinpath(*name.removeprefix(f"{_ROOM_PACKAGE}.").split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
