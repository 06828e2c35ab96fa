"""Output of the desk: answers on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


PIPED_WIDTH = 140  # of tables that go into a file or another program


def stdout_console() -> Console:
    """Return the console of standard output."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def stderr_console() -> Console:
    """Return the console of standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_object(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print one JSON value on a line of standard output; the only output of a command with `--json`."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str) + "\n")
    sys.stdout.flush()


def mask_unprintable(text: str) -> str:
    """Return a text without the characters that steer a terminal or cannot be seen; line breaks stay."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


def print_plain(text: str) -> None:
    """Print a line that is never wrapped, coloured or cut, such as a path."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
