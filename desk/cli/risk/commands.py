"""The command that asks the risk gate for the signals of a file, and the group of those on policies."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from ..console import print_object
from ..options import AsJson, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace, check_file_exists
from . import audit as audit_commands, policy as policy_commands

app = typer.Typer(no_args_is_help=True, help="Read the limits of the risk gate, and ask it without trading.")
app.add_typer(policy_commands.app, name="policy")
app.command()(audit_commands.audit)


@app.command()
def check(
    signals: Annotated[
        Path,
        typer.Argument(
            metavar="SIGNALS", help="Table as alphaloom targets --out writes it: symbol, weight, evidence, valid_until."
        ),
    ],
    book: Annotated[str, typer.Option("--book", metavar="BOOK", help="A paper book; an empty one by default.")] = "",
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="Limits in place of the workspace's policy.yaml.")
    ] = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    day: Annotated[
        datetime | None,
        typer.Option("--day", formats=["%Y-%m-%d"], help="The day whose close is known; the panel's last by default."),
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Ask the risk gate for the signals of a file, rule by rule, and say what each refused one needs to pass.

    Nothing is recorded or traded. Exit code 1: a signal is refused.
    """
    from .page import print_check
    from .signal_check import compute_check

    check_file_exists(signals)
    facts = compute_check(signals, book, policy, DataOptions(campaign, panel, sectors, None, workspace), day)
    if as_json:
        print_object(facts)
    else:
        print_check(facts)
    if facts["refused"]:
        raise typer.Exit(1)
