"""The commands on bearer tokens: for MCP servers, and for models through the gate."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ..console import print_object, print_plain, stderr_console, stdout_console
from ..options import AsJson, Workspace

if TYPE_CHECKING:
    from ....mcp_servers.access import TokenEntry


app = typer.Typer(
    no_args_is_help=True, help="Make, list and revoke bearer tokens of the MCP servers and the models' gate."
)
DAY_FORMATS = ["%Y-%m-%d"]
TokensFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="The file of tokens; tokens.yaml of the workspace by default."),
]


def _find_file(file: Path | None, workspace: Path | None) -> Path:
    return file or (workspace or DEFAULT_WORKSPACE) / "tokens.yaml"


def _split_names(names: str | None) -> tuple[str, ...] | None:
    """Return the names of a comma-separated list, or None."""
    return tuple(name.strip() for name in names.split(",") if name.strip()) if names is not None else None


@app.command(short_help="Make a token; it is printed this once.")
def create(
    scopes: Annotated[
        str, typer.Option("--scopes", metavar="SCOPE,...", help="What it allows, e.g. data:read,factor:write.")
    ],
    expires: Annotated[datetime, typer.Option("--expires", formats=DAY_FORMATS, help="Its last day, UTC.")],
    as_of: Annotated[
        datetime | None,
        typer.Option(
            "--as-of", formats=DAY_FORMATS, help="The last day that its bearer may know; the server's by default."
        ),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option("--fields", metavar="NAME,...", help="The only fields that it lets see; all by default."),
    ] = None,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Whose it is, for the list; one line.")] = "",
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="NAME", help="Who it is to `models gate`; its id by default.")
    ] = "",
    file: TokensFile = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Make a bearer token and print it on standard output: this once, and nowhere else.

    The secret is kept by nobody: the file holds its digest, and it is never logged nor repeated. One that is lost is
    revoked and replaced. Scopes: data:read, news:read, factor:read, factor:write, eval:run, gate:submit, rules:read,
    data:confidential, data:jurisdiction:XX; model:ask lets it ask models through `alphaloom models gate`, and
    model:operate lets it read the counts of all tenants there.
    """
    from ....ledger.files import make_folder
    from ....mcp_servers.access import Grant, create_token

    place = _find_file(file, workspace)
    if file is None:
        make_folder(place.parent)
    grant = Grant(
        _split_names(scopes) or (),
        expires.date(),
        as_of.date() if as_of else None,
        _split_names(fields),
        note.strip(),
        tenant.strip(),
    )
    issued = create_token(place, grant, now=datetime.now(UTC))
    if as_json:
        print_object({"token": issued.token, "file": str(place.resolve()), **_describe_token(issued.entry)})
        return
    stderr_console().out(f"Token {issued.entry.id}, accepted until the end of {issued.entry.expires} (UTC).")
    stderr_console().out("Keep it now: it is not shown again.")
    print_plain(issued.token)


@app.command(short_help="Refuse a token from now on.")
def revoke(
    name: Annotated[str, typer.Argument(metavar="ID", help="The part of a token after alt_; never the token.")],
    file: TokensFile = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token for good. Servers that run refuse it with the next call; it stays in the list."""
    from ....mcp_servers.access import revoke_token

    entry, new = revoke_token(_find_file(file, workspace), name, now=datetime.now(UTC))
    if as_json:
        print_object({"new": new, **_describe_token(entry)})
    else:
        print_plain(f"{entry.id}  {'revoked' if new else 'was revoked already'}: {entry.revoked:%Y-%m-%d %H:%M:%S} UTC")


@app.command("list", short_help="List the tokens and what each allows.")
def list_(file: TokensFile = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """List the tokens of a file, also those that are expired or revoked. Their secrets are nowhere."""
    from ....mcp_servers.access import list_tokens

    rows = [_describe_token(entry) for entry in list_tokens(_find_file(file, workspace))]
    if as_json:
        print_object({"count": len(rows), "tokens": rows})
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("id", "standing", "scopes", "fields", "as of", "last day", "tenant", "note"):
        table.add_column(column, overflow="fold")
    for row in rows:
        scopes, fields = " ".join(row["scopes"]), " ".join(row["fields"] or ["all"])
        cells = (
            row["id"], row["standing"], scopes, fields, row["as_of"] or "-", row["expires"], row["tenant"], row["note"]
        )  # fmt: skip  # a table
        table.add_row(*(Text(str(cell)) for cell in cells))
    stdout_console().print(table)


def _describe_token(entry: TokenEntry) -> dict[str, Any]:
    """Return the public facts of a token, without its digest."""
    from ....mcp_servers.access import describe_token_status

    facts = entry.model_dump(mode="json", exclude={"sha256"})
    return {**facts, "standing": describe_token_status(entry, datetime.now(UTC))}
