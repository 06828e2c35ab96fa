"""Runs a campaign, or goes on with the one in the workspace, and logs each model call as it is sent and answered."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from alphaloom.campaign import Campaign, Settings
from alphaloom.ledger import AlphaloomError, read_settings
from alphaloom.router import Router


def log_calls(log: Path) -> None:
    """Write a line when a call leaves for a provider, and one when its answer is in the ledger."""
    send = Router._send

    async def logged(self: Router, turn: Any) -> Any:
        write(log, {"sent": turn.key})
        answered = await send(self, turn)
        write(log, {"answered": turn.key})
        return answered

    Router._send = logged  # type: ignore[method-assign]


def write(log: Path, line: dict[str, str]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def main(workspace: Path, log: Path, overrides: list[str]) -> None:
    log_calls(log)
    try:
        Campaign.resume("latest", workspace=workspace)
    except AlphaloomError as error:
        if error.code != "unknown_run":
            raise
        Campaign(read_settings(None, Settings, overrides), workspace).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
