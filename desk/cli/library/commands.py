"""The commands on the library: its factors, their results on new days, and changes by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...facts.standing import DEFAULT_WORKSPACE
from ...figures import plural
from ...formula_views import summarise_formula
from ..console import print_object, print_plain
from ..formula_source import read_formula_source
from ..options import (
    AsJson,
    AsOf,
    By,
    CampaignFile,
    DataOptions,
    DialectOption,
    FieldsOption,
    FormulaCommand,
    GroupsOption,
    PanelFile,
    SectorsFile,
    Workspace,
    refuse_existing,
    signed_reason,
    signer_name,
)
from ..run_lookup import open_record

if TYPE_CHECKING:
    from ....evaluation import AdmittedFactor
    from ....evidence import LibrarySettings
    from ....ledger import Ledger
    from ....library import Entry, FactorReading


app = typer.Typer(no_args_is_help=True, help="Keep, watch and retire factors.")
FactorName = Annotated[
    str, typer.Argument(metavar="ID", help="A factor's id, the start of one, or its formula in quotes.")
]


@contextmanager
def _open_library(workspace: Path | None, *, make: bool = False) -> Iterator[Ledger]:
    """Open the ledger of a workspace; a missing one is created only with `make`."""
    from ....ledger import Ledger

    place = workspace or DEFAULT_WORKSPACE
    with Ledger.open(place, clock=_read_clock) if make else open_record(place) as ledger:
        yield ledger


def _read_clock() -> datetime:
    return datetime.now(UTC)


def _today() -> str:
    return _read_clock().date().isoformat()


def _read_rules(campaign: Path | None) -> LibrarySettings:
    """Return the library rules of a campaign file, or the default ones."""
    from ....evidence import LibrarySettings

    if campaign is None:
        return LibrarySettings()
    from ..evaluator import settings_at

    return settings_at(DataOptions(campaign)).evidence.library


@app.command("list", short_help="List the factors and how they do.")
def list_(workspace: Workspace = None, campaign: CampaignFile = None, as_json: AsJson = False) -> None:
    """List the factors of the library and the watchlist: the sealed (hold-out) result first, then the other windows.

    Search, selection and the days since stand beside it. RankICs are in the direction in which a factor is held, fixed
    on its search window.
    """
    from ....library import list_conditions
    from ...facts.library import list_rows
    from .table import print_conditions

    with _open_library(workspace) as ledger:
        rows = list_rows(ledger, list_conditions(ledger, _read_rules(campaign)))
    if as_json:
        print_object({"count": len(rows), "factors": rows})
    else:
        print_conditions(rows)
        due = [row["id"] for row in rows if row["revalidate_by"] and row["revalidate_by"] <= _today()]
        if due:
            print_plain(f"To be looked at again by a person (library revalidate or retire): {', '.join(due)}")


@app.command(short_help="Show all that is known of one factor.")
def show(
    factor: FactorName, workspace: Workspace = None, campaign: CampaignFile = None, as_json: AsJson = False
) -> None:
    """Show a factor's verdict, its RankIC quarter by quarter since, and every change of its status."""
    from ....library import find_condition
    from ...facts.library import describe_fully
    from .table import print_condition

    with _open_library(workspace) as ledger:
        condition = find_condition(ledger, factor, _read_rules(campaign))
        facts = describe_fully(ledger, condition)
    if as_json:
        print_object(facts)
    else:
        print_condition(facts)


@app.command(cls=FormulaCommand, short_help="Take in what a run accepted, or a formula, unproven.")
def add(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN ID | EXPR", help="A run and the id of what it accepted; or a formula in quotes; or FILE.py."
        ),
    ],
    dialect: DialectOption = "alphaloom",
    fields: FieldsOption = None,
    groups: GroupsOption = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Take in a factor. Campaigns put in by themselves what they accept.

    A formula that is added by hand is marked as unproven for good. It counts for originality and redundancy: the gate
    takes it for known, so that it can never be accepted here. Put it to the gate first if it is to be proven.
    """
    from ....evaluation import add_accepted, add_by_hand

    if len(words) > 2:
        raise typer.BadParameter("give a run and an id, or one formula in quotes")
    if len(words) == 2:
        with _open_library(workspace) as ledger:
            _print_added(add_accepted(ledger, *words), as_json=as_json)
        return
    if words[0] == "latest":
        raise typer.BadParameter("a run needs the id of what it accepted: alphaloom library add latest ID")
    from ....factors import parse
    from ..factor.formulas import readable_names

    expression = parse(read_formula_source(words[0]), dialect=dialect, **readable_names(fields, groups))
    with _open_library(workspace, make=True) as ledger:
        _print_added(add_by_hand(ledger, expression, _today()), as_json=as_json)


def _print_added(admitted: AdmittedFactor, *, as_json: bool) -> None:
    entry = admitted.entry
    facts = {"id": entry.factor_id, "text": entry.canonical, "new": admitted.new}
    if as_json:
        print_object({**facts, "status": entry.status, "proof": entry.proof})
        return
    print_plain(f"{entry.factor_id}  {summarise_formula(entry.canonical)}")
    print_plain(f"{'added' if admitted.new else 'there already'}: {entry.status}; {entry.proof}")


@app.command(short_help="Score the library on new days.")
def watch(
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    as_of: AsOf = None,
    revised: Annotated[
        str,
        typer.Option(
            "--revised", metavar="REASON", help="Go on although the panel tells other values of days that were seen."
        ),
    ] = "",
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Score live factors and the watchlist on the days that came after the panel on which each was judged.

    Sealed days are never read. Statuses change at the ends of quarters of 63 scored days: a factor is flagged as
    decaying, retired, or proven, by the rules of the campaign file (evidence.library).
    """
    if panel is None and campaign is None:
        raise typer.BadParameter("--panel: name the file with the new days, or a --campaign that names one")
    if revised and not revised.strip():
        raise typer.BadParameter("say why another reading is used: the reason is kept", param_hint="--revised")
    place = DataOptions(campaign, panel, sectors, as_of.date() if as_of else None, workspace)
    with _open_library(workspace) as ledger:
        facts = _watch_library(ledger, place, revised.strip())
    if as_json:
        print_object(facts)
    else:
        from .table import print_watch

        print_watch(facts)


def _watch_library(ledger: Ledger, place: DataOptions, revised: str) -> dict[str, Any]:
    """Watch the library on a panel; return each factor's condition, the number of new days, and the changes."""
    from ....evidence.values import LazySandbox
    from ....library import PROMOTED, Condition, LibraryWatch, list_entries
    from ...facts.library import list_rows
    from ..evaluator import settings_at

    settings = settings_at(place)
    panel, dataset = settings.market.open(settings.seed)
    with LazySandbox(settings.sandbox) as sandbox:
        readings = LibraryWatch(ledger, panel, dataset, settings.evidence, sandbox).run(revised)
    entries = {entry.factor_id: entry for entry in list_entries(ledger)}
    promoted = sum(entry.origin == PROMOTED for entry in entries.values())
    rows = []
    for reading in readings:
        entry = entries[reading.entry.factor_id]
        condition = Condition.of(entry, ledger, settings.evidence.library, promoted)
        (row,) = list_rows(ledger, [condition])
        rows.append({**row, **_describe_reading(reading), "lacking": reading.lacking or None})
    return {
        "panel": panel.digest,
        "first_day": str(panel.dates[0]),
        "last_day": str(panel.dates[-1]),
        "new_days": max((row["new_days"] for row in rows), default=0),
        "changed": sum(bool(row["changes"]) for row in rows),
        "factors": rows,
    }


def _describe_reading(reading: FactorReading) -> dict[str, Any]:
    changes = [
        {"day": change.day, "status": change.status, "by": change.by, "reason": change.reason}
        for change in reading.changes
        if change.key != "watched"
    ]
    days = {"new_days": len(reading.new), "unlike_days": len(reading.unlike)}
    return {**days, "changes": changes, "left_out": None if reading.lacking else reading.left_out or None}


@app.command(short_help="Retire a factor by hand.")
def retire(
    factor: FactorName,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the factor.")],
    successor: Annotated[
        str, typer.Option("--successor", metavar="ID", help="The accepted successor that takes its place.")
    ] = "",
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Retire a factor: it is watched no more and makes nothing redundant, but its formula is never original again.

    A decaying factor may be succeeded: by a live factor of the library that was proposed and judged as its successor.
    """
    from ....evaluation import retire_factor

    _require_reason(reason, "why it is retired")
    with _open_library(workspace) as ledger:
        reason = signed_reason(reason, by, workspace, "library:write")
        entry = retire_factor(ledger, factor, reason, _today(), successor)
    _print_status(entry, "retired", reason, as_json=as_json)


@app.command("revalidate", short_help="Say that an accepted factor stays.")
def revalidate_(
    factor: FactorName,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="What you looked at, and why it stays.")],
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Record that a person has looked at an accepted factor again, and that it stays; its status does not change.

    An accepted factor is due 365 days after the library took it in, or after its last re-validation; policy.yaml sets
    other days (revalidate_after_days), or null for never. One that does not stay: alphaloom library retire.
    """
    from ....library import find_condition
    from ...facts.library import describe_fully
    from ...revalidation import read_revalidation_dates, revalidate

    _require_reason(reason, "why it stays")
    with _open_library(workspace) as ledger:
        name = signer_name(by, ledger.workspace, "library:write")
        condition = find_condition(ledger, factor, _read_rules(None))
        facts = describe_fully(ledger, condition)
        revalidate(ledger, condition.entry, facts, (reason, name), _read_clock())
        found = read_revalidation_dates(ledger)[condition.entry.factor_id]
    if as_json:
        print_object({"id": condition.entry.factor_id, "text": condition.entry.canonical, **found.record()})
        return
    print_plain(f"{condition.entry.factor_id}  {summarise_formula(condition.entry.canonical)}")
    print_plain(f"stays, says {name}: {reason.strip()}{f'; to be looked at again by {found.due}' if found.due else ''}")


@app.command(short_help="Bring a retired factor back.")
def restore(
    factor: FactorName,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the factor.")],
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Bring a retired factor back to where it stood: it is watched again. Its retirement stays in its history.

    Where the rule retired it, the end of the next quarter may do so again: its record is not wiped.
    """
    from ....evaluation import restore_factor

    _require_reason(reason, "why it comes back")
    with _open_library(workspace) as ledger:
        reason = signed_reason(reason, by, workspace, "library:write")
        entry = restore_factor(ledger, factor, reason, _today())
    _print_status(entry, f"{entry.status} again", reason, as_json=as_json)


def _require_reason(reason: str, what: str) -> None:
    """Refuse an empty reason before anything is opened."""
    if not reason.strip():
        raise typer.BadParameter(f"say {what}: the reason is kept", param_hint="--reason")


def _print_status(entry: Entry, now: str, reason: str, *, as_json: bool) -> None:
    if as_json:
        print_object({"id": entry.factor_id, "text": entry.canonical, "status": entry.status, "reason": reason.strip()})
    else:
        print_plain(f"{entry.factor_id}  {summarise_formula(entry.canonical)}")
        print_plain(f"{now}: {reason.strip()}")


@app.command(short_help="Write the library into a file.")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The JSON file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write the library, retired factors too, into one JSON file for another workspace."""
    from ....ledger import write_json
    from ....ledger.files import PUBLIC_FILE_MODE
    from ....library import export_library

    if file.is_dir() or not file.parent.is_dir():
        reason = f"{file} is a folder" if file.is_dir() else f"there is no folder {file.parent}"
        raise typer.BadParameter(f"{reason}: name a file in a folder that is there", param_hint="FILE")
    refuse_existing(file, force=force)
    with _open_library(workspace) as ledger:
        record = export_library(ledger)
    write_json(file, record, mode=PUBLIC_FILE_MODE)
    amount = len(record["factors"])
    if as_json:
        print_object({"file": str(file.resolve()), "factors": amount})
    else:
        print_plain(f"{plural(amount, 'factor')} written to {file}")


@app.command("import", short_help="Take in a library file.")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What library export wrote.")],
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Take in the factors of a file, marked as judged elsewhere: known to the gate, never proven here.

    The file is checked whole before anything is written; what is in the library already stays as it is.
    """
    from ....library import import_library, read_library_file

    read_library_file(file)  # first, so that a refused file creates no workspace
    with _open_library(workspace, make=True) as ledger:
        facts: dict[str, Any] = import_library(ledger, file, _today())
    if as_json:
        print_object(facts)
        return
    print_plain(f"{plural(facts['added'], 'factor')} added, {plural(facts['known'], 'factor')} known before")
    for name in facts["on_watchlist"]:
        print_plain(f"{name} stays on the watchlist: only new days can prove it here")
