"""The steps of books in the workspace's log of calls: an append-only file beside the database, chained by hashes.

A row that is deleted from the end of a table leaves no gap there. So each step is also a line of the log
(`audit/calls-*.jsonl`), with its day and the digests of its record and inputs, and `replay_book` compares the two. Each
step call adds the lines that the log of this workspace lacks: where several machines step one book, each has its own
log. A person who may write to both places can change both; a head that was noted elsewhere
(`alphaloom audit export`, `alphaloom audit verify`) detects that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from ..ledger import Ledger, compute_digest
from ..ledger.calls import CALLS_FOLDER, CallLog, CallOutcome, ToolCall, list_calls
from .book_record import STEP_EVENT

NOT_LOGGED: Final = "not in the log of calls"
LoggedSteps = Mapping[str, Sequence[str]]
"""The digests under which the log has each day's step, the oldest first."""


def read_logged_steps(workspace: Path, book: str) -> dict[str, list[str]]:
    """Return the digests of a book's steps by day, as the log of a workspace has them."""
    logged: dict[str, list[str]] = {}
    for line in list_calls(workspace / CALLS_FOLDER, book, STEP_EVENT):
        logged.setdefault(line["as_of"], []).append(line["result"])
    return logged


def log_steps(ledger: Ledger, book: str, steps: Sequence[Mapping[str, Any]], clock: Callable[[], datetime]) -> None:
    """Add the steps that the log lacks, and wait until they are on the disk."""
    logged = read_logged_steps(ledger.workspace, book)
    missing = [body for body in steps if body["day"] not in logged]
    if not missing:
        return
    with CallLog.open(ledger.workspace / CALLS_FOLDER, clock=clock) as log:
        for body in missing:
            call = ToolCall(
                who=STEP_EVENT,
                server=book,
                tool=STEP_EVENT,
                outcome=CallOutcome.OK,
                arguments=body["inputs"],
                as_of=date.fromisoformat(body["day"]),
                result=compute_digest(body),
            )
            log.append(call)
        log.flush()


def compare_with_log(logged: LoggedSteps, body: Mapping[str, Any]) -> list[str]:
    """Return what the log says against a step of the record; empty where it says the same."""
    digests = logged.get(body["day"], ())
    if not digests:
        return [NOT_LOGGED]
    return [] if digests[0] == compute_digest(body) else ["its line in the log of calls"]
