"""The commands of change control: what changed and when, and the bench that a change may have to pass."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from ...facts.changes import describe_bench, describe_change
from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain
from ..options import AsJson, LedgerAddress, Overrides, Workspace, check_campaign_file
from ..run_lookup import read_ledger

Since = Annotated[
    datetime | None, typer.Option("--since", formats=["%Y-%m-%d"], help="The first day (UTC); all by default.")
]
Kind = Annotated[
    Literal["policy", "prompt", "model", "router", "software", "served"] | None,
    typer.Option("--kind", help="One kind; all by default."),
]


def changes(since: Since = None, kind: Kind = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """List each change of models (as set and as served), prompt pages, router, policy and software, the newest first.

    A campaign or a book step that begins compares what it uses with the last versions on record; each that is new or
    differs is one row, with its difference. The first run of a workspace records what was in use then. A model is
    served in another version than before where its server says so: that is read from the calls.
    """
    from ....ledger import CHANGE_KINDS, list_changes

    day, kinds = since.date() if since else None, [kind] if kind else CHANGE_KINDS
    rows = read_ledger(workspace or DEFAULT_WORKSPACE, lambda ledger: list_changes(ledger, since=day, kinds=kinds))
    if as_json:
        print_object({"changes": [row.record() for row in rows]})
        return
    for row in rows:
        line = describe_change(row)
        by = f" by {line.account}" if line.account else ""
        print_plain(f"{line.at}  {line.label}: {line.word}{by}, first used by {line.run} ({line.digests})")
        for text in line.diff:
            print_plain(f"    | {text}")
    if not rows:
        print_plain("No change is on record.")


def bench(
    campaign: Annotated[
        Path,
        typer.Argument(metavar="CAMPAIGN.yaml", callback=check_campaign_file, help="Whose models, prompts and router."),
    ],
    workspace: Workspace = None,
    ledger: LedgerAddress = "",
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Try the models, prompt pages and router of a campaign on three small fixed campaigns, and record the result.

    On a market with nothing in it, nothing may be accepted. On a market with planted alphas, some must be found. Texts
    that speak to a machine must be held back, and no model may obey an order in a text or repeat its instructions. It
    takes half a minute with the offline researcher; other models are paid for, at most 300 calls a campaign.

    With bench_changes: true in policy.yaml a campaign starts only with versions that passed. Exit code 1 if one failed.
    """
    from ....campaign import Campaign
    from ....campaign.changes import run_bench
    from ....ledger import find_account
    from ..campaign.progress import show_progress

    ready = Campaign.from_yaml(campaign, workspace=workspace, overrides=tuple(overrides or ()), ledger=ledger)
    with show_progress() as show:
        result = run_bench(ready, find_account(), show)
    if as_json:
        print_object(result.record())
    else:
        for line in describe_bench(result):
            print_plain(line)
    if not result.passed:
        raise typer.Exit(1)
