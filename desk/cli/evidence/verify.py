"""The command that replays recorded verdicts: from the ledger alone, and with the panel if it is available."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import DeskError
from ...figures import plural
from ..console import print_object, stderr_console, stdout_console
from ..options import AsJson, PanelFile, RunName, SectorsFile, Workspace
from ..run_lookup import find_run, locate_run

if TYPE_CHECKING:
    from ....evidence import Replay, RunArchive


EXIT_DIFFERS, EXIT_CANNOT_VERIFY = 1, 3
RATIOS_NOTE = (
    "Values, sheets and daily series were computed again from the panel. "
    "The ratios of originality and redundancy were not: "
    "they are taken as recorded, and only held against their thresholds again."
)
MAX_DIFFERENCES_SHOWN = 8
"""Differences of one verdict that are printed; `--json` has all."""


def verify(
    run: RunName,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Factors or sets; all by default.")] = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    ledger_only: Annotated[
        bool, typer.Option("--ledger-only", help="Do not look for the panel: decide from the ledger alone.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Run recorded verdicts again and say where one differs: from the ledger alone, then with the panel if it is there.

    Exit code 1 if a verdict differs, 3 if one cannot be run again because its look kept no daily series.
    """
    from ....evidence import RunArchive
    from ....ledger import Ledger

    name, place = locate_run(run, workspace)
    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        archive = RunArchive(ledger, find_run(ledger, name))
        facts = _verify_verdicts(
            archive, _choose_verdicts(archive, ids or ()), _PanelFiles(panel, sectors, ledger_only)
        )
    if as_json:
        print_object(facts)
    else:
        _print(facts)
    _exit_with_code(facts)


class _PanelFiles:
    """The given panel files, and whether to use the panel at all."""

    def __init__(self, panel: Path | None, sectors: Path | None, ledger_only: bool) -> None:
        self.panel, self.sectors, self.ledger_only = panel, sectors, ledger_only


def _choose_verdicts(archive: RunArchive, ids: Sequence[str]) -> list[str]:
    names = sorted(archive.verdicts)
    strange = [name for name in ids if name not in archive.verdicts]
    if strange:
        raise DeskError(
            f"Run {archive.run.id} holds no verdict on {strange[0]}.",
            field="ID",
            got=strange[0],
            allowed=names[:20],
            hint="Leave the ids away to verify every verdict of the run.",
            code="unknown_verdict",
        )
    return list(dict.fromkeys(ids)) or names


def _verify_verdicts(archive: RunArchive, ids: Sequence[str], files: _PanelFiles) -> dict[str, Any]:
    from ....evaluation.checks import find_loose_ends
    from ....evidence import replay_verdict

    replays = [replay_verdict(archive, archive.verdicts[name]) for name in ids]
    obstacle, depth = "", "ledger"
    if not files.ledger_only:
        replays, obstacle = _replay_with_panel(archive, ids, replays, files)
        depth = "ledger" if obstacle else "panel"
    words = [replay.word for replay in replays]
    return {
        "run": archive.run.id,
        "depth": depth,
        "without_panel": obstacle,
        "same": words.count("same"),
        "differ": words.count("differs"),
        "cannot": words.count("cannot be replayed"),
        "verdicts": [replay.record() for replay in replays],
        "record": [end.record() for end in find_loose_ends(archive)],
    }


def _replay_with_panel(
    archive: RunArchive, ids: Sequence[str], replays: list[Replay], files: _PanelFiles
) -> tuple[list[Replay], str]:
    """Return the replays with the panel's values, or why the panel could not be opened."""
    from ....campaign import Settings
    from ....evaluation import PanelContext
    from ....evaluation.checks import replay_on_panel
    from ....evidence.values import LazySandbox

    recorded = archive.run.config.get("settings") or archive.run.config.get("rules")
    if not recorded:
        return replays, "the run did not write down where its panel is"
    settings = Settings.from_record(recorded)
    market = settings.market.given(files.panel, files.sectors, None)
    if files.panel is None and market.panel is not None and not market.panel.is_file():
        return replays, f"{market.panel} is not there: give the panel with --panel"
    stderr_console().print("reading the panel", style="dim")
    panel, dataset = market.open(settings.seed)
    digest = str(archive.run.config["panel"])
    if panel.digest != digest:
        raise DeskError(
            "The panel is not the one that this run began with.",
            field="--panel",
            got=panel.digest[:12],
            allowed=digest[:12],
            hint="Give the file as it was then, or use --ledger-only.",
            code="other_panel",
        )
    rows = (archive.verdicts[name] for name in ids)
    with LazySandbox(settings.sandbox) as sandbox:
        context = PanelContext.set_up(panel, archive.ledger, settings.evidence, dataset, store=False, runner=sandbox)
        evaluator = context.evaluator(archive.run.id, settings.budget)
        return [replay_on_panel(archive, evaluator, row, replay) for row, replay in zip(rows, replays, strict=True)], ""


def _exit_with_code(facts: dict[str, Any]) -> None:
    if facts["differ"] or facts["record"]:
        raise typer.Exit(EXIT_DIFFERS)
    if facts["cannot"]:
        raise typer.Exit(EXIT_CANNOT_VERIFY)


def _print(facts: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(_format_headline(facts), style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("factor", "trial", "verdict", "run again"):
        table.add_column(title, no_wrap=True)
    table.add_column("what differs (recorded, computed again)", overflow="fold")
    for row in facts["verdicts"]:
        trial = "" if row["trial"] is None else str(row["trial"])
        style = "green" if row["replay"] == "same" else "red" if row["differs"] else "yellow"
        table.add_row(row["id"], trial, row["verdict"], Text(row["replay"], style), Text(_describe_replay(row)))
    if facts["verdicts"]:
        console.print(table)
    for end in facts["record"]:
        console.print(Text(f"the run's record: {_format_difference(end)}", style="red"))
    for line in _list_notes(facts):
        console.print(Text(line, style="dim"))


def _format_headline(facts: dict[str, Any]) -> str:
    basis = "from the ledger and the panel" if facts["depth"] == "panel" else "from the ledger alone"
    if not facts["verdicts"]:
        return f"{facts['run']} has no verdicts yet: nothing was put before the gate"
    counts = [f"{facts['same']} the same", f"{facts['differ']} differ"]
    counts += [f"{facts['cannot']} cannot be run again"] if facts["cannot"] else []
    return f"{plural(len(facts['verdicts']), 'verdict')} of {facts['run']}, {basis}: {', '.join(counts)}"


def _describe_replay(row: dict[str, Any]) -> str:
    lines = [_format_difference(difference) for difference in row["differs"][:MAX_DIFFERENCES_SHOWN]]
    more = len(row["differs"]) - len(lines)
    unread = [f"taken as recorded: {', '.join(row['unread'])}"] if row["unread"] else []
    missing = [row["missing"]] if row["missing"] else []
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else []), *missing, *unread])


def _format_difference(difference: dict[str, Any]) -> str:
    return f"{difference['field']}: {difference['recorded']}, {difference['recomputed']}"


def _list_notes(facts: dict[str, Any]) -> list[str]:
    if facts["depth"] == "panel":
        return [RATIOS_NOTE] if facts["verdicts"] else []
    why = f" ({facts['without_panel']})" if facts["without_panel"] else ""
    return [f"Values and daily series are taken as recorded; with the panel they would be computed again{why}."]
