"""Run one part of a folder of benchmarks, or list them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

__all__ = ["run_part"]


def run_part(package: str, about: str | None, parts: Mapping[str, str], given: Sequence[str]) -> int:
    """Run a module's `main` with the rest of the command line; without its name say which there are."""
    if not given or given[0] not in parts:
        print(about)
        print("\n".join(f"{name:10} {what}" for name, what in parts.items()))
        return 0 if not given or given[0] in ("-h", "--help") else 2
    return int(import_module(f"{package}.{given[0]}").main(given[1:]))
