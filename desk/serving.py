"""The command that serves the rooms' tools to any MCP client."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .options import AsOf, CampaignFile, PanelFile, SectorsFile, Workspace
from .place import Place

__all__ = ["app", "mcp"]

app = typer.Typer(no_args_is_help=True, help="Serve tools to other programs.")


class Server(StrEnum):
    """The servers that agents use."""

    market = "market"
    factors = "factors"
    evaluation = "evaluation"


@app.command(short_help="Serve an MCP server over stdio.")
def mcp(
    server: Annotated[Server, typer.Argument(help="Which of the agents' servers.")],
    campaign: CampaignFile = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    workspace: Workspace = None,
) -> None:
    """Serve one of the agents' MCP servers over standard input and output, until the client hangs up.

    One connection is one campaign: ids, evaluations and budget begin anew with the next; trials stay counted for good.
    """
    from .research import serve

    serve(server.value, Place(campaign, panel, sectors, as_of.date() if as_of else None, workspace))
