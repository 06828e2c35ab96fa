"""The commands that erase personal data and old texts from the record, while its log stays whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import plural
from ..console import print_object, print_plain
from ..options import AsJson, By, Workspace, signer_name
from ..run_lookup import open_record

if TYPE_CHECKING:
    from ....ledger.log import Erasure, Mention

SCOPE = "risk:approve"
MAX_PLACES_SHOWN = 20
MAX_READ_BYTES = 64 << 20
"""Larger files of runs are not searched for a name."""
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the erasure.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be erased; change nothing.")]


def erase(
    reason: Reason,
    person: Annotated[
        str | None, typer.Option("--person", metavar="NAME", help="Erase this name from decisions and comments.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="DIGEST", help="Erase a stored text: the start of its SHA-256."),
    ] = None,
    by: By = None,
    dry_run: DryRun = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Erase a person's name, or a stored text, for good; the leaves of the log keep their digests.

    A name is replaced in the bodies of decisions, comments, requests and changes of status. It stays where a leaf holds
    it as it is, and where verdicts or accounts rest on it: those places are listed, and so are the files of runs, which
    are not touched. A text is a prompt, a reply or another object that only model calls refer to. Who erased it, when
    and why is a row of its own, which `record verify` shows.
    """
    if (person is None) == (text is None):
        raise DeskError(
            "Name a person or a text.", field="--person", allowed="--person NAME or --text DIGEST", code="nothing_named"
        )
    place = workspace or DEFAULT_WORKSPACE
    with open_record(place) as ledger:
        name = signer_name(by, place, SCOPE)
        if text is not None:
            digest = ledger.erasures.find_text(text)
            done = None if dry_run else ledger.erasures.erase_objects([digest], name, reason)
            _show(done, {"objects": 1}, [], [], as_json=as_json)
            return
        assert person is not None
        found, mentions = ledger.erasures.find_person(person)
        done = None if dry_run else ledger.erasures.erase_person(person, name, reason)
    files = list(_find_files(place, person))
    _show(done, {"rows": len(found)}, mentions, files, as_json=as_json)


def retain(
    before: Annotated[
        datetime,
        typer.Option("--before", metavar="DAY", formats=["%Y-%m-%d"], help="Calls of earlier days lose their texts."),
    ],
    apply: Annotated[bool, typer.Option("--apply/--dry-run", help="Erase; without it, only count.")] = False,
    reason: Reason = "older than the retention period",
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Erase the prompts and replies of old model calls; their digests, tokens and costs stay.

    Only runs that are done lose their texts: another one would need them to go on. A text that a later call uses too
    stays. A campaign that repeats an erased call pays for it again.
    """
    place = workspace or DEFAULT_WORKSPACE
    with open_record(place) as ledger:
        name = signer_name(by, place, SCOPE) if apply else ""
        digests, runs = ledger.erasures.find_bodies(before.date().isoformat())
        done = ledger.erasures.erase_objects(digests, name, reason) if apply else None
    if as_json:
        print_object({"objects": len(digests), "kept_for": runs, "erasure": done.record() if done else None})
        return
    texts = plural(len(digests), "stored text")
    print_plain(done.describe() if done else f"{texts} of model calls before {before.date()} would be erased")
    if runs:
        print_plain(f"kept, because their runs are not done: {', '.join(runs)}")


def _show(
    done: Erasure | None, counts: dict[str, int], mentions: list[Mention], files: list[str], *, as_json: bool
) -> None:
    """Print what was erased, or would be, and where a name stays."""
    if as_json:
        stays: list[dict[str, Any]] = [
            {"table": one.table, "number": one.number, "reason": one.reason} for one in mentions
        ]
        print_object({**counts, "erasure": done.record() if done else None, "stays": stays, "files": files})
        return
    (what, count), *_ = counts.items()
    nothing = f"{count} {what} would be erased" if count else "the record holds nothing to erase"
    print_plain(done.describe() if done else nothing)
    for one in mentions[:MAX_PLACES_SHOWN]:
        print_plain(f"stays: {one.table} {one.number}: {one.reason}")
    for file in files[:MAX_PLACES_SHOWN]:
        print_plain(f"not touched: {file}")
    if len(mentions) > MAX_PLACES_SHOWN or len(files) > MAX_PLACES_SHOWN:
        print_plain(f"{len(mentions)} rows and {len(files)} files in all; --json lists every one")


def _find_files(workspace: Path, person: str) -> Iterator[str]:
    """Yield the files of runs in which a name stands: reports, results and tables that were written already."""
    pattern = re.compile(rb"(?<!\w)" + re.escape(person.strip().encode()) + rb"(?!\w)", re.IGNORECASE)
    for path in sorted((workspace / "runs").rglob("*")):
        is_readable = path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_READ_BYTES
        if is_readable and pattern.search(path.read_bytes()):
            yield path.relative_to(workspace).as_posix()
