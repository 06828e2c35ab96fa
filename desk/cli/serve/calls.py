"""The commands on the record of tool calls: read it, verify it, export it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...facts.verification import describe_calls
from ..console import print_object, print_plain
from ..options import AsJson, By, Workspace, refuse_existing, signer_name

if TYPE_CHECKING:
    from ....ledger.calls import Verified


app = typer.Typer(no_args_is_help=True, help="Read the record of what was asked of the MCP servers.")
TAIL_POLL_SECONDS = 0.25
HASH = re.compile(r"[0-9a-fA-F]{64}")


def _find_folder(workspace: Path | None) -> Path:
    """Return the folder of a workspace's record; a missing one is not created."""
    from ....ledger import WorkspaceError
    from ....ledger.calls import CALLS_FOLDER

    place = workspace or DEFAULT_WORKSPACE
    if not (place / CALLS_FOLDER).is_dir():
        raise WorkspaceError(
            f"There is no record of calls in {place}.",
            field="--workspace",
            hint="Name a workspace with --workspace DIR; an MCP server that is attached to begins the record.",
        )
    return place / CALLS_FOLDER


@app.command(short_help="Show the newest calls.")
def tail(
    count: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many.")] = 20,
    following: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with those that come, until Ctrl-C.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest calls of all servers, oldest first: when, who, which tool, what came of it, how much, how long.

    With --follow and --json each call is one object on a line of its own.
    """
    from ....ledger.calls import follow, read_latest

    folder = _find_folder(workspace)
    coming = follow(
        folder, lambda: time.sleep(TAIL_POLL_SECONDS)
    )  # before the newest are read: none is missed in between
    rows = read_latest(folder, count)
    if as_json and not following:
        print_object({"count": len(rows), "calls": rows})
        return
    for row in [*rows] if not following else _skip_repeated(rows, coming):
        if as_json:
            print_object(row)
        else:
            print_plain(_format_call(row))


def _skip_repeated(rows: list[dict[str, Any]], coming: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the existing and the coming calls, each once."""
    yield from rows
    hashes = {row["hash"] for row in rows}
    yield from (row for row in coming if row["hash"] not in hashes)


def _format_call(row: Mapping[str, Any]) -> str:
    """Return a call in a line, without unprintable characters: names come from the caller."""
    outcome = row["outcome"] + (f" ({row['code']})" if row["code"] else "")
    size = f"{row['bytes']} bytes" + (f", {row['rows']} rows" if row["rows"] is not None else "")
    ceiling = f", as of {row['as_of']}" if row["as_of"] else ""
    call = f"{row['time'][:19]}Z  {row['who']}  {row['server']}.{row['tool']}"
    text = f"{call}  {outcome}  {size}{ceiling}, {row['duration_ms']:g} ms"
    return "".join(character if character.isprintable() else "?" for character in text)


@app.command(short_help="Check the chain of the record, and compare it with a head noted earlier.")
def verify(
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary", metavar="FILE", help="What an earlier export wrote; shows also what was taken back since."
        ),
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(
            "--head", metavar="HASH", help="A head that you noted earlier, as this command prints it. Repeatable."
        ),
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Read the whole record again: every line's hash, their chain, and what each segment says of those before it.

    A line that was changed, removed, inserted or moved, and a segment that is gone, end with 1. The hashes have no
    key: whoever may write to the folder can take lines out and make the whole chain again, and the chain alone does
    not show it. So note the printed head elsewhere, or keep the summary of an export there, and compare: --head HASH,
    --summary FILE.
    """
    from ....ledger.calls import anchors_of, verify_calls

    folder = _find_folder(workspace)
    noted = _parse_heads(head or ())
    reading = verify_calls(folder, anchors_of(summary) if summary else (), noted)
    if as_json:
        print_object({"ok": not reading.findings, **reading.record()})
    else:
        _print(reading, compared=bool(noted or summary))
    if reading.findings:
        raise typer.Exit(1)


def _parse_heads(texts: Sequence[str]) -> frozenset[str]:
    """Return the heads that a person noted; a malformed one is refused, since it could never match."""
    for text in texts:
        if not HASH.fullmatch(text.strip()):
            raise typer.BadParameter(
                f"{text}: a head is 64 hexadecimal digits, as this command prints it", param_hint="--head"
            )
    return frozenset(text.strip().lower() for text in texts)


@app.command(short_help="Write the record into a file, with a summary to keep.")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="FILE.jsonl, FILE.csv or FILE.parquet.")],
    by: By = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write every call into a file, and beside it FILE.summary.json, which `audit verify --summary` reads.

    The summary says who stands for the export, when, the file's digest and how far each segment went. Kept where
    nobody can change it, it shows later whether the record still says the same. A damaged record is written too and
    ends with 1.
    """
    from ....ledger.calls import export_calls

    refuse_existing(file, force=force)
    name = signer_name(by, workspace, "supervise")
    exported = export_calls(_find_folder(workspace), file, by=name, now=datetime.now(UTC))
    if as_json:
        facts = {"file": str(file.resolve()), "summary": str(exported.summary.resolve())}
        print_object({**facts, "ok": not exported.reading.findings, **exported.reading.record()})
    else:
        _print(exported.reading, compared=False)
        print_plain(f"written to {file}; the summary to keep: {exported.summary}")
    if exported.reading.findings:
        raise typer.Exit(1)


def _print(reading: Verified, *, compared: bool) -> None:
    for line in describe_calls(reading, compared=compared):
        print_plain(line)
