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
from ..run_lookup import locate_run

if TYPE_CHECKING:
    from ....evidence import Replay, RunArchive

__all__ = ["verify"]

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
        archive = RunArchive(ledger, ledger.run(name))
        told = _verify_verdicts(archive, _choose_verdicts(archive, ids or ()), _PanelFiles(panel, sectors, ledger_only))
    if as_json:
        print_object(told)
    else:
        _print(told)
    _exit_with_code(told)


class _PanelFiles:
    """The given panel files, and whether to use the panel at all."""

    def __init__(self, panel: Path | None, sectors: Path | None, ledger_only: bool) -> None:
        self.panel, self.sectors, self.ledger_only = panel, sectors, ledger_only


def _choose_verdicts(archive: RunArchive, ids: Sequence[str]) -> list[str]:
    known = sorted(archive.verdicts)
    strange = [name for name in ids if name not in archive.verdicts]
    if strange:
        raise DeskError(
            f"Run {archive.run.id} holds no verdict on {strange[0]}.", field="ID", got=strange[0],
            allowed=known[:20], hint="Leave the ids away to verify every verdict of the run.", code="unknown_verdict",
        )  # fmt: skip
    return list(dict.fromkeys(ids)) or known


def _verify_verdicts(archive: RunArchive, ids: Sequence[str], files: _PanelFiles) -> dict[str, Any]:
    from ....evaluation.checks import find_loose_ends
    from ....evidence import replay_verdict

    found = [replay_verdict(archive, archive.verdicts[name]) for name in ids]
    said, depth = "", "ledger"
    if not files.ledger_only:
        found, said = _replay_with_panel(archive, ids, found, files)
        depth = "ledger" if said else "panel"
    words = [one.word for one in found]
    return {
        "run": archive.run.id,
        "depth": depth,
        "without_panel": said,
        "same": words.count("same"),
        "differ": words.count("differs"),
        "cannot": words.count("cannot be replayed"),
        "verdicts": [one.record() for one in found],
        "record": [each.record() for each in find_loose_ends(archive)],
    }


def _replay_with_panel(
    archive: RunArchive, ids: Sequence[str], found: list[Replay], files: _PanelFiles
) -> tuple[list[Replay], str]:
    """Return the replays with the panel's values, or why the panel could not be opened."""
    from ....campaign import Settings
    from ....evaluation import PanelContext
    from ....evaluation.checks import replay_on_panel
    from ....evidence.values import LazySandbox

    kept = archive.run.config.get("settings") or archive.run.config.get("rules")
    if not kept:
        return found, "the run did not write down where its panel is"
    settings = Settings.from_record(kept)
    market = settings.market.given(files.panel, files.sectors, None)
    if files.panel is None and market.panel is not None and not market.panel.is_file():
        return found, f"{market.panel} is not there: give the panel with --panel"
    stderr_console().print("reading the panel", style="dim")
    panel, dataset = market.open(settings.seed)
    known = str(archive.run.config["panel"])
    if panel.digest != known:
        raise DeskError(
            "The panel is not the one that this run began with.", field="--panel", got=panel.digest[:12],
            allowed=known[:12], hint="Give the file as it was then, or use --ledger-only.", code="other_panel",
        )  # fmt: skip
    rows = (archive.verdicts[name] for name in ids)
    with LazySandbox(settings.sandbox) as jail:
        bench = PanelContext.set_up(panel, archive.ledger, settings.evidence, dataset, store=False, runner=jail)
        evaluator = bench.evaluator(archive.run.id, settings.budget)
        return [replay_on_panel(archive, evaluator, row, one) for row, one in zip(rows, found, strict=True)], ""


def _exit_with_code(told: dict[str, Any]) -> None:
    if told["differ"] or told["record"]:
        raise typer.Exit(EXIT_DIFFERS)
    if told["cannot"]:
        raise typer.Exit(EXIT_CANNOT_VERIFY)


def _print(told: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(_headline(told), style="bold"))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("factor", "trial", "verdict", "run again"):
        table.add_column(title, no_wrap=True)
    table.add_column("what differs (recorded, computed again)", overflow="fold")
    for row in told["verdicts"]:
        trial = "" if row["trial"] is None else str(row["trial"])
        style = "green" if row["replay"] == "same" else "red" if row["differs"] else "yellow"
        table.add_row(row["id"], trial, row["verdict"], Text(row["replay"], style), Text(_describe_replay(row)))
    if told["verdicts"]:
        console.print(table)
    for each in told["record"]:
        console.print(Text(f"the run's record: {_line(each)}", style="red"))
    for line in _notes(told):
        console.print(Text(line, style="dim"))


def _headline(told: dict[str, Any]) -> str:
    how = "from the ledger and the panel" if told["depth"] == "panel" else "from the ledger alone"
    if not told["verdicts"]:
        return f"{told['run']} has no verdicts yet: nothing was put before the gate"
    counts = [f"{told['same']} the same", f"{told['differ']} differ"]
    counts += [f"{told['cannot']} cannot be run again"] if told["cannot"] else []
    return f"{plural(len(told['verdicts']), 'verdict')} of {told['run']}, {how}: {', '.join(counts)}"


def _describe_replay(row: dict[str, Any]) -> str:
    lines = [_line(each) for each in row["differs"][:MAX_DIFFERENCES_SHOWN]]
    more = len(row["differs"]) - len(lines)
    unread = [f"taken as recorded: {', '.join(row['unread'])}"] if row["unread"] else []
    missing = [row["missing"]] if row["missing"] else []
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else []), *missing, *unread])


def _line(each: dict[str, Any]) -> str:
    return f"{each['field']}: {each['recorded']}, {each['recomputed']}"


def _notes(told: dict[str, Any]) -> list[str]:
    if told["depth"] == "panel":
        return [RATIOS_NOTE] if told["verdicts"] else []
    why = f" ({told['without_panel']})" if told["without_panel"] else ""
    return [f"Values and daily series are taken as recorded; with the panel they would be computed again{why}."]
