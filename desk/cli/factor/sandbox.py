"""The commands on Python factors: what this machine can contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ..console import print_object, stdout_console
from ..options import AsJson

if TYPE_CHECKING:
    from ....sandbox import Status

__all__ = ["app", "status"]

EXIT_MISSING_WALL = 3
app = typer.Typer(no_args_is_help=True, help="Run generated Python, contained.")


@app.callback()
def _sandbox() -> None:
    """Run generated Python, contained."""


@app.command(short_help="Say which walls work on this machine.")
def status(as_json: AsJson = False) -> None:
    """Try each wall of the sandbox, then five ways out of a real jail; what is missing is named with what to do."""
    from ....sandbox import probe_sandbox

    found = probe_sandbox()
    if as_json:
        print_object(found.record())
    else:
        _print(found)
    if not found.available:
        raise typer.Exit(EXIT_MISSING_WALL)


def _print(found: Status) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text("walls", style="bold"))
    walls = Table.grid(padding=(0, 2))
    for wall in found.primitives:
        word, style = ("ok", "green") if wall.works else ("missing", "bold red") if wall.required else ("no", "yellow")
        walls.add_row(Text(f"  {wall.name}"), Text(word, style), Text(wall.found), Text(wall.stops))
    console.print(walls)
    if found.escapes:
        console.print(Text("ways out, tried in a real jail", style="bold"))
        ways = Table.grid(padding=(0, 2))
        for way in found.escapes:
            ways.add_row(
                Text(f"  {way.name}"), Text("held", "green") if way.contained else Text("OPEN", "bold red"),
                Text(way.found),
            )  # fmt: skip
        console.print(ways)
    able = "generated Python can be run here" if found.available else f"nothing is run here: {found.problem}"
    console.print(Text(able, style="bold green" if found.available else "bold red"), soft_wrap=True)
    for hint in dict.fromkeys([wall.hint for wall in found.primitives if wall.hint] + [found.hint]):
        if hint:
            console.print(Text(f"  to do: {hint}"), soft_wrap=True)
