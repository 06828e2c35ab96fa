"""Output of the desk: answers on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


PIPED_WIDTH = 140  # of tables that go into a file or another program


def stdout_console() -> Console:
    """Return the console of standard output."""
    make_console = _masking_console()
    console = make_console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else make_console(highlight=False, width=PIPED_WIDTH)


def stderr_console() -> Console:
    """Return the console of standard error."""
    return _masking_console()(stderr=True, highlight=False)


@contextmanager
def tell_long_work(what: str) -> Iterator[None]:
    """Show a line on a terminal while something is done that may take long; it goes away at the end."""
    console = stderr_console()
    if not console.is_terminal:
        yield
        return
    with console.status(mask_unprintable(what)):
        yield


def _masking_console() -> type[Console]:
    """Return the kind of console that masks what is printed on it but the cells of tables; rich is slow to import."""
    from rich.console import Console
    from rich.text import Text

    class MaskingConsole(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            super().print(*map(mask, objects), **options)

    def mask(value: Any) -> Any:
        if isinstance(value, Text):
            value = value.copy()
            value.plain = mask_unprintable(value.plain)  # as long as before, so the styles stay in place
        return mask_unprintable(value) if isinstance(value, str) else value

    return MaskingConsole


def print_object(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """Print one JSON value on a line of standard output; the only output of a command with `--json`."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, allow_nan=False, default=str) + "\n")
    sys.stdout.flush()


def mask_unprintable(text: str) -> str:
    """Return a text without the characters that steer a terminal or cannot be seen; line breaks and tabs stay."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)


def make_text(text: str) -> Text:
    """Return the cell of a table: a text that neither steers the terminal nor is read as markup."""
    from rich.text import Text

    return Text(mask_unprintable(text))


def print_plain(text: str) -> None:
    """Print a line that is never wrapped, coloured or cut, such as a path, and that steers no terminal."""
    sys.stdout.write(f"{mask_unprintable(text)}\n")
    sys.stdout.flush()
