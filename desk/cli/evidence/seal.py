"""The command by which a person decides on a campaign's request to open its sealed (hold-out) days."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ...decisions import decide_seal, find_seal_request, list_seal_facts
from ...errors import DeskError
from ...facts.standing import workspace_option
from ..campaign.status import open_run
from ..console import print_object, print_plain, stdout_console
from ..options import AsJson, By, RunName, Workspace, signer_name

if TYPE_CHECKING:
    from ....evaluation.closing import SealDecision, SealRequest


def seal(
    run: RunName,
    agree: Annotated[bool, typer.Option("--agree", help="Let the campaign open them at its close.")] = False,
    refuse: Annotated[bool, typer.Option("--refuse", help="Let it close without the sealed exam.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the decision.")] = "",
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show a campaign's request to open its sealed days, or decide on it; then go on with resume.

    A campaign asks where policy.yaml of the workspace sets approve_seal. Until it is resumed, whoever decided may
    decide anew.
    """
    if (agree and refuse) or (reason.strip() and not (agree or refuse)):
        raise DeskError(
            "A reason needs one decision.", field="--reason", allowed="with --agree or with --refuse", code="decision"
        )
    with open_run(run, workspace) as (ledger, row):
        seals, request = find_seal_request(ledger, row.id)
        if agree or refuse:
            name = signer_name(by, ledger.workspace, "seal:open")
            at = datetime.now(UTC).isoformat(timespec="seconds")
            decide_seal(seals, (agree, reason.strip()), (name, at))
        decision = seals.decision()
    if as_json:
        facts = {"run": row.id, "request": asdict(request), "digest": request.digest}
        print_object(facts | {"decision": asdict(decision) if decision else None})
        return
    _print(request, decision)
    place = workspace_option(workspace)
    command = f"alphaloom evidence seal {row.id}{place} --agree|--refuse --reason TEXT"
    print_plain(f"Next: alphaloom resume {row.id}{place}" if decision else f"Decide: {command}")


def _print(request: SealRequest, decision: SealDecision | None) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    facts = list_seal_facts(request)
    facts += [("decision", decision.sentence)] if decision else []
    for label, text in facts:
        grid.add_row(f"  {label}", Text(text))
    print_plain("Asks to open its sealed (hold-out) days:")
    stdout_console().print(grid)
