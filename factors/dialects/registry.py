"""Find the dialects by name; each is a module of this folder with a `DIALECT`."""

from __future__ import annotations

import functools
from importlib import import_module

from ..errors import ParseError, nearest
from .dialect import Dialect

OWN = "alphaloom"
NAMES: tuple[str, ...] = ("alphaagent", "alphagen", OWN, "factorminer", "qlib", "worldquant")
"""The languages that formulas can be read from and written to."""
SAME = {
    "quantaalpha": "alphaagent",
    "alpha101": "worldquant",
    "alpha158": "qlib",
    "alphabench": "qlib",
    "alphaforge": "alphagen",
}
"""What else people call them."""


@functools.cache
def dialect_named(name: str) -> Dialect:
    """Return a foreign dialect.

    Raises
    ------
    ParseError
        Where there is none of that name.
    """
    name = SAME.get(name.lower(), name.lower())
    if name not in NAMES or name == OWN:
        guess = nearest(name, NAMES)
        meant = f"Did you mean {guess}? " if guess else ""
        raise ParseError(f"unknown dialect '{name}'", stage="dialect", hint=f"{meant}Dialects: {', '.join(NAMES)}.")
    found: Dialect = import_module(f".{name}", __package__).DIALECT
    return found
