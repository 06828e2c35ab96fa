"""The command that stops a run, or ends its search, from another process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import print_object, print_plain
from ..options import AsJson, By, RunName, Workspace
from .standing import STATE_DONE, STATE_RUNNING, RunStanding, open_run

if TYPE_CHECKING:
    from ....ledger import Ledger, Run

__all__ = ["stop"]

STOP_POLL_SECONDS = 0.1


def stop(
    run: RunName,
    close: Annotated[
        bool, typer.Option("--close", help="End the search and let the run close, with a report, instead.")
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for the step under way.")
    ] = 60.0,
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Stop a run that another process works on: it finishes the step under way, loses nothing, and can be resumed."""
    with open_run(run, workspace) as (ledger, row):
        process = ledger.holder(row.id)
        _ask(ledger, row, close=close, process=process, by=by)
        if process is not None:
            _await(ledger, row.id, wait)
        standing = RunStanding.of(ledger, ledger.run(row.id), workspace)
    told = {"run": row.id, "was_running": process is not None, "state": standing.state, "next": standing.next}
    if as_json:
        print_object(told)
    else:
        print_plain(_describe_outcome(told, close=close))


def _ask(ledger: Ledger, row: Run, *, close: bool, process: str | None, by: str | None) -> None:
    """Write the request down; there is nothing to stop where nothing runs, but a run may be closed when it is resumed."""
    from ....ledger import ask_to_close, ask_to_stop
    from ...signing import signer_name

    if close and row.status != "done":
        ask_to_close(ledger, row.id, signer_name(by))
    elif process is not None:
        ask_to_stop(ledger, row.id, signer_name(by))


def _await(ledger: Ledger, run: str, seconds: float) -> None:
    """Wait until nobody holds the run, or the time is up."""
    end = time.monotonic() + seconds
    while ledger.holder(run) is not None and time.monotonic() < end:
        time.sleep(STOP_POLL_SECONDS)


def _describe_outcome(told: dict[str, Any], *, close: bool) -> str:
    run, state = told["run"], told["state"]
    if state == STATE_RUNNING:
        asked = "asked to end its search and close" if close else "asked to stop"
        return f"{run} is {asked}; it is still at the step under way; next: {told['next']}"
    if told["was_running"]:
        return f"{run}: {state}; next: {told['next']}"
    if close and state != STATE_DONE:
        return f"Nothing works on {run} now ({state}); it closes when it is resumed; next: {told['next']}"
    return f"Nothing works on {run}: there is nothing to stop. It is {state}; next: {told['next']}"
