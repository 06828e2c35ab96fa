"""The command that serves the rooms' tools to any MCP client."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .options import PanelFile, SectorsFile, Workspace

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
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    workspace: Workspace = None,
) -> None:
    """Serve one of the agents' MCP servers over standard input and output, until the client hangs up."""
    from .research import serve

    serve(server.value, panel=panel, sectors=sectors, workspace=workspace)
