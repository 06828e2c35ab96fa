"""Who did something: the name that goes beside a person's act in the ledger."""

from __future__ import annotations

import getpass

from .cli.errors import NoName

__all__ = ["signer_name"]

MAX_NAME_CHARS = 100


def signer_name(given: str | None) -> str:
    """Return the name that a person gave, or the login name.

    Raises
    ------
    NoName
        Neither is there, or it is longer than a name.
    """
    try:
        name = (given if given is not None else getpass.getuser()).strip()
    except (KeyError, OSError):  # no entry of this user, and no variable that names one
        name = ""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise NoName(
            "Nobody would stand for this.", field="--by", got=name[:MAX_NAME_CHARS], allowed=f"a name of 1 to {MAX_NAME_CHARS} characters",
            hint="Give your name: --by NAME.",
        )  # fmt: skip
    return name
