"""Find the dialects by name; each is a module of this folder with a `DIALECT`."""

from __future__ import annotations

import functools
from importlib import import_module

from ..errors import ParseError, nearest_name
from .dialect import Dialect

OWN_DIALECT = "alphaloom"
DIALECT_NAMES: tuple[str, ...] = ("alphaagent", "alphagen", OWN_DIALECT, "factorminer", "qlib", "worldquant")
"""The languages that formulas can be read from and written to."""
DIALECT_ALIASES = {
    "quantaalpha": "alphaagent",
    "alpha101": "worldquant",
    "alpha158": "qlib",
    "alphabench": "qlib",
    "alphaforge": "alphagen",
}
"""What else people call them."""


@functools.cache
def find_dialect(name: str) -> Dialect:
    """Return a foreign dialect.

    Raises
    ------
    ParseError
        Where there is none of that name.
    """
    name = DIALECT_ALIASES.get(name.lower(), name.lower())
    if name not in DIALECT_NAMES or name == OWN_DIALECT:
        guess = nearest_name(name, DIALECT_NAMES)
        meant = f"Did you mean {guess}? " if guess else ""
        raise ParseError(
            f"unknown dialect '{name}'", stage="dialect", hint=f"{meant}Dialects: {', '.join(DIALECT_NAMES)}."
        )
    found: Dialect = import_module(f".{name}", __package__).DIALECT
    return found
