"""The modules that run a call, as text: what is sent to an interpreter that does not have Alphaloom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["OPTIONS", "modules", "program_text"]


OPTIONS = ("-s", "-P", "-B", "-X", "utf8", "-c")
"""Of the interpreter: no user's packages, no current folder, no bytecode; the seed of hashes is in the environment."""

_ROOM = Path(__file__).parents[1]
_ROOM_PACKAGE = "alphaloom.sandbox"
_ENTRY_MODULES = ("jail", "jail.server", "jail.child", "jail.channel", "jail.frames")


@cache
def program_text() -> str:
    """Return the text of the program that runs behind the wall."""
    return (Path(__file__).parent / "program.py").read_text(encoding="utf-8")


@cache
def modules() -> dict[str, str]:
    """Return the text of what `program_text` imports and of what that imports at its top, by full name."""
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
