"""Runs or resumes a campaign with a model that takes its time and charges for each call."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import traceback
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from alphaloom.agents.offline import OfflineResearcher
from alphaloom.campaign import Campaign, Settings, campaign
from alphaloom.ledger import AlphaloomError, Ledger, read_settings
from alphaloom.router.calls.recorded_calls import Calls

LONGEST_SECONDS = 0.06


def log_answers(log: Path) -> None:
    """Write a line when a call leaves for a provider, and one when its answer is in the ledger."""
    send = Calls._send

    async def logged(self: Calls, turn: Any) -> Any:
        write(log, {"sent": turn.key})
        answered = await send(self, turn)
        write(log, {"answered": turn.key})
        return answered

    Calls._send = logged  # type: ignore[method-assign]


def paid_researcher(log: Path) -> Any:
    """Return the offline researcher as a service: each call that arrives is charged, and answered in its own time.

    How long a call takes hangs on the process: branches answer in another order each time.
    """
    provider: Any = OfflineResearcher()
    answer = provider.complete

    async def later(model: str, messages: Any, parameters: Any) -> Any:
        question = sha256(json.dumps([messages, parameters], default=str).encode()).hexdigest()
        write(log, {"charged": question})
        draw = sha256(f"{os.getpid()} {question}".encode()).digest()[0]
        await asyncio.sleep(draw / 255 * LONGEST_SECONDS)
        reply = await answer(model, messages, parameters)
        write(log, {"delivered": question})
        return reply

    provider.complete = later
    return provider


def write(log: Path, line: dict[str, str]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def main(workspace: Path, log: Path, overrides: list[str]) -> None:
    """Work in a workspace; the first override may be the address of its ledger."""
    log_answers(log)
    campaign.OfflineResearcher = lambda: paid_researcher(log)  # type: ignore[attr-defined, assignment]
    ledger = overrides.pop(0) if overrides[0].startswith("postgresql:") else ""
    Ledger.open(workspace, clock=lambda: datetime.now(UTC), address=ledger).close()
    try:
        Campaign.resume("latest", workspace=workspace)
    except AlphaloomError as error:
        if error.code != "unknown_run":
            raise
        Campaign(read_settings(None, Settings, overrides), workspace, ledger=ledger).run()


def nurse() -> None:
    """Fork a worker for each line on stdin, with everything loaded; print its process id, then its exit code."""
    importlib.import_module("alphaloom.agents.checkpoints")
    for line in sys.stdin:
        workspace, log, *overrides = json.loads(line)
        child = os.fork()
        if not child:
            work(Path(workspace), Path(log), overrides)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def work(workspace: Path, log: Path, overrides: list[str]) -> NoReturn:
    """Run a campaign in a process that was forked, and end the process."""
    with log.with_suffix(".said").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        try:
            main(workspace, log, overrides)
        except BaseException:  # noqa: BLE001 - the process ends here, and says why
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--nurse"]:
        nurse()
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
