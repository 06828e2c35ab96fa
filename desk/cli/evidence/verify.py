"""The command that replays recorded verdicts: from the ledger alone, and with the panel if it is available."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from ...facts.verification import (
    MAX_DIFFERENCES_SHOWN,
    PanelFiles,
    choose_verdicts,
    describe_difference,
    describe_log,
    describe_replay,
    describe_verdicts,
    list_verification_notes,
    verify_verdicts,
)
from ..console import print_object, stderr_console, stdout_console
from ..options import AsJson, PanelFile, RunName, SectorsFile, Workspace
from ..run_lookup import find_run, locate_run

EXIT_DIFFERS, EXIT_CANNOT_VERIFY = 1, 3


def verify(
    run: RunName,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Factors or sets; all by default.")] = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    ledger_only: Annotated[
        bool, typer.Option("--ledger-only", help="Do not look for the panel: decide from the ledger alone.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Run recorded verdicts again and say where one differs: from the ledger alone, then with the panel if it is there.

    The record itself is compared with its log first, as `alphaloom record verify` does, because a verdict that follows
    from an edited record proves nothing. Exit code 1 if a verdict or the record differs, 3 if a verdict cannot be run
    again because its look kept no daily series.
    """
    from ....evidence import RunArchive
    from ....ledger import Ledger
    from ....ledger.log import KeyFolder, is_logged, verify_workspace

    name, place = locate_run(run, workspace)
    keys = KeyFolder.of_user()
    log = verify_workspace(place, keys) if is_logged(place) else None
    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        archive = RunArchive(ledger, find_run(ledger, name))
        log = log or verify_workspace(place, keys)  # opening an older record has begun its log
        files = PanelFiles(panel, sectors, ledger_only, lambda line: stderr_console().print(line, style="dim"))
        facts = verify_verdicts(archive, choose_verdicts(archive, ids or ()), files) | {"log": log.record()}
    if as_json:
        print_object(facts)
    else:
        _print(facts)
    _exit_with_code(facts)


def _exit_with_code(facts: dict[str, Any]) -> None:
    if facts["differ"] or facts["record"] or facts["log"]["findings"]:
        raise typer.Exit(EXIT_DIFFERS)
    if facts["cannot"]:
        raise typer.Exit(EXIT_CANNOT_VERIFY)


def _print(facts: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(describe_verdicts(facts), style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("factor", "trial", "verdict", "run again"):
        table.add_column(title, no_wrap=True)
    table.add_column("what differs (recorded, computed again)", overflow="fold")
    for row in facts["verdicts"]:
        trial = "" if row["trial"] is None else str(row["trial"])
        style = "green" if row["replay"] == "same" else "red" if row["differs"] else "yellow"
        table.add_row(row["id"], trial, row["verdict"], Text(row["replay"], style), Text(describe_replay(row)))
    if facts["verdicts"]:
        console.print(table)
    for end in facts["record"]:
        console.print(Text(f"the run's record: {describe_difference(end)}", style="red"))
    for finding in facts["log"]["findings"][:MAX_DIFFERENCES_SHOWN]:
        console.print(Text("the record: {kind}: {what}: {message}".format_map(finding), style="red"))
    console.print(Text(describe_log(facts["log"]["findings"]), style="dim"))
    for line in list_verification_notes(facts):
        console.print(Text(line, style="dim"))
