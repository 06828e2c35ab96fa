"""What the interpreter of this machine needs to run numpy and pandas elsewhere: its program, and folders to read."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Interpreter", "this_interpreter"]

_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64")
_SHARED_FILES = ("/etc/ld.so.cache", "/usr/share/zoneinfo")


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
def this_interpreter() -> Interpreter:
    """Return the interpreter that runs this process; of home, of /etc and of the environment nothing else is shown."""
    program = os.path.realpath(sys.executable)
    packages = {str(Path(_origin(name)).parents[1]) for name in ("numpy", "pandas")}
    links = tuple((place, os.readlink(place)) for place in _LIBRARIES if os.path.islink(place))
    libraries = [place for place in _LIBRARIES if os.path.isdir(place) and not os.path.islink(place)]
    files = [place for place in _SHARED_FILES if os.path.exists(place)]
    return Interpreter(
        program,
        tuple(sorted(packages)),
        links,
        _drop_nested([*libraries, *files, *_installation_paths(program), *packages]),
    )


def _origin(name: str) -> str:
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
