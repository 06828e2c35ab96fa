"""Public names of a folder that are imported on first use, so that a refusal waits for no heavy import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, names: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """Return `__all__` and `__getattr__` of a package whose public names are in its modules.

    `names` maps each module to its public names, separated by blanks. A name is looked up once. No name may be that of
    a module of the same folder: whichever was imported last would hide the other. Type checkers read the imports
    beside the call; a house test compares the two lists.
    """
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{modules[name]}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(modules), find
