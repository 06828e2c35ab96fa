"""The command that tells what happened in a run, in order, and goes on telling while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import print_object, print_plain, stderr_console
from ..options import RunName, Workspace
from .chronicle import Chronicle, ChronicleEntry
from .standing import STATE_INTERRUPTED, state_of

if TYPE_CHECKING:
    from ....ledger import Ledger, Run

__all__ = ["follow_chronicle", "log"]

LOG_POLL_SECONDS = 0.5
ACTOR_WIDTH = 7  # characters of the widest name


def log(
    run: RunName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends or rests.")] = False,
    workspace: Workspace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, and nothing else.")] = False,
) -> None:
    """Tell what happened in a run: hypotheses, formulas, refusals, scores, critiques, verdicts, what people said."""
    from .standing import open_run

    with open_run(run, workspace) as (ledger, row):
        chronicle = Chronicle(ledger, row.id)
        told = follow_chronicle(chronicle, lambda: ledger.holder(row.id) is not None) if follow else chronicle.read()
        day = ""
        for each in told:
            day = _print(each, day, as_json=as_json)
        if follow and not as_json:
            _print_interruption(ledger, ledger.run(row.id))


def follow_chronicle(
    chronicle: Chronicle, running: Callable[[], bool], wait: Callable[[float], None] = time.sleep
) -> Iterator[ChronicleEntry]:
    """Yield what happens until nobody works on the run any more, and everything that was written then."""
    while True:
        runs = running()
        yield from chronicle.read()
        if not runs:
            return
        wait(LOG_POLL_SECONDS)


def _print(each: ChronicleEntry, day: str, *, as_json: bool) -> str:
    """Print a happening, after its day where that is another; return the day."""
    if as_json:
        print_object(each.record())
        return day
    date, _, rest = each.at.partition("T")
    if date != day:
        print_plain(date)
    first, *more = each.lines
    print_plain(f"{rest[:8]}  {each.who:<{ACTOR_WIDTH}} {first}")
    for line in more:
        print_plain(f"{'':{8 + 2 + ACTOR_WIDTH}}   {line}")
    return date


def _print_interruption(ledger: Ledger, row: Run) -> None:
    """Say where a run stands that is followed no more, if its record does not."""
    if state_of(row.status, ledger.holder(row.id), ()) == STATE_INTERRUPTED:
        stderr_console().print(f"interrupted; resume with: alphaloom resume {row.id}", markup=False, soft_wrap=True)
