"""The command that serves the rooms' tools to any MCP client."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..options import CampaignFile, Ceiling, DataOptions, PanelFile, SectorsFile, Workspace
from .listen import address

app = typer.Typer(no_args_is_help=True, help="Serve tools to other programs.")

Hosts = Annotated[
    str | None,
    typer.Option(
        "--hosts", metavar="NAME,...", help="Names it is reached under behind a proxy, e.g. mcp.desk.example."
    ),
]
PerMinute = Annotated[
    int, typer.Option("--per-minute", min=1, max=1_000_000, help="Requests that one caller may make in a minute.")
]


class ServerName(StrEnum):
    """The servers that agents use, and that of supervisors."""

    market = "market"
    factors = "factors"
    evaluation = "evaluation"
    news = "news"
    compliance = "compliance"


@app.command(short_help="Serve MCP servers over stdio or HTTP.")
def mcp(
    server: Annotated[ServerName | None, typer.Argument(help="Which one, over stdio.")] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="All of them: as one over stdio; over HTTP each at /NAME/mcp, and as one at /all/mcp."
        ),
    ] = False,
    http: Annotated[
        str | None, typer.Option("--http", metavar="HOST:PORT", help="Listen there; port 0: any that is free.")
    ] = None,
    auth: Annotated[
        Path | None,
        typer.Option("--auth", metavar="FILE", help="Bearer tokens, as `alphaloom token create` writes them."),
    ] = None,
    oauth: Annotated[
        Path | None, typer.Option("--oauth", metavar="FILE", help="An OAuth server whose tokens are believed: YAML.")
    ] = None,
    as_of: Ceiling = None,
    scopes: Annotated[
        str | None,
        typer.Option(
            "--scopes",
            metavar="SCOPE,...",
            help="What a client on stdio may do; by default all but data:confidential, and supervise for compliance.",
        ),
    ] = None,
    hosts: Hosts = None,
    per_minute: PerMinute = 600,
    campaign: CampaignFile = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    workspace: Workspace = None,
) -> None:
    """Serve the rooms as MCP tools: one server, or all of them as one, over standard input and output; or over HTTP.

    `compliance` is for supervisors: it explains and proves decisions from the record, and writes nothing there but a
    line for each call. --all over stdio leaves it out; over HTTP it needs a token with the scope supervise.

    Without data of yours they serve a synthetic market. Every caller gets data as they were known on its last day, the
    search window of them only, a budget of its own, and a line on record for every call; trials stay counted for good.
    Over HTTP each bearer token is a caller; SIGTERM or Ctrl-C ends the servers; calls under way have 2 seconds.
    """
    place = DataOptions(campaign, panel, sectors, None, workspace)
    day = as_of.date() if as_of else None
    if http is None:
        _refuse_http_options(auth, oauth, hosts)
        from .host import serve_stdio

        name = _find_server_name(server, everything)
        serve_stdio(name, place, _parse_scopes(scopes, name), day)
        return
    _check_http_options(server, everything, scopes, (auth, oauth))
    from ....mcp_servers import CallerLimits
    from .host import ServerDoor, serve_http

    host, port = address(http, "--http")
    names = tuple(_parse_host(name.strip()) for name in (hosts or "").split(",") if name.strip())
    serve_http(place, ServerDoor(host, port, auth, oauth, CallerLimits.reached_as(names, per_minute)), day)


def _find_server_name(server: ServerName | None, everything: bool) -> str:
    if (server is None) != everything:
        raise typer.BadParameter(f"name one of {', '.join(ServerName)}, or write --all", param_hint="SERVER")
    return server.value if server else "all"


def _refuse_http_options(auth: Path | None, oauth: Path | None, hosts: str | None) -> None:
    options = {"--auth": auth, "--oauth": oauth, "--hosts": hosts}
    for name, value in options.items():
        if value:
            raise typer.BadParameter("is for servers over HTTP: add --http 127.0.0.1:8765", param_hint=name)


def _check_http_options(
    server: ServerName | None, everything: bool, scopes: str | None, ways: tuple[Path | None, Path | None]
) -> None:
    if server is not None or not everything:
        raise typer.BadParameter("serves all servers: write --all, and no name", param_hint="--http")
    if scopes is not None:
        raise typer.BadParameter("is for stdio; over HTTP each token has its own scopes", param_hint="--scopes")
    if not any(ways):
        raise typer.BadParameter(
            "needs --auth FILE or --oauth FILE: make a token with "
            "`alphaloom token create --scopes data:read,factor:read "
            "--expires YYYY-MM-DD --file tokens.yaml`",
            param_hint="--http",
        )


def _parse_scopes(text: str | None, server: str) -> frozenset[str]:
    from ....mcp_servers.access import DEFAULT_SCOPES, SUPERVISOR_SCOPES, parse_scope

    if text is None:
        return SUPERVISOR_SCOPES if server == ServerName.compliance else DEFAULT_SCOPES
    try:
        return frozenset(parse_scope(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--scopes") from None


def _parse_host(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", text) is None:
        message = f"{text!r} is no name of a host such as mcp.desk.example: no https://, no port, no path"
        raise typer.BadParameter(message, param_hint="--hosts")
    return text
