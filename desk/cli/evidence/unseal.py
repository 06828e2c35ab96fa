"""The command that opens a run's sealed days, once, and records it before the test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import DeskError
from ...report.closing import describe_exam, exam_factor_rows, exam_rows
from ...report.report import SEALED_FILE, read_results, write_report
from ...report.sections.run_notes import read_run_notes
from ..console import print_object, print_plain, stderr_console, stdout_console
from ..options import AsJson, By, RunName, Workspace, signed_reason
from ..run_lookup import locate_run

if TYPE_CHECKING:
    from ....evaluation import Evaluator
    from ....evaluation.closing import SealedExam
    from ....evidence.values import LazySandbox
    from ....ledger import Ledger, Run


RESUMED_NOTE = (
    "Opening no. {number} of this run was written to the ledger and cut short before its result; this goes on with it, "
    "under the reason that was given then."
)
REPEATED_NOTE = (
    "This run's sealed days were opened before, as no. {number}. Its result is shown again: "
    "nothing is counted, and the reason given now is not kept."
)


@dataclass(frozen=True)
class UnsealResult:
    """The result of a run on sealed days; `note` is set if it was not a new opening."""

    run: str
    exam: SealedExam
    report: Path
    note: str


def open_seal(
    run: RunName,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger and shown in every later report.")],
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Open the sealed days for what a run accepted: once, numbered over all runs on this data, and never undone.

    The panel must be the one that the run was made on. The report is drawn again with the result.
    """
    if not reason.strip():
        raise typer.BadParameter("say why the sealed days are opened: the reason is kept", param_hint="--reason")
    name, place = locate_run(run, workspace)
    result = open_sealed_days(name, place, signed_reason(reason.strip(), by, place, "seal:open"))
    if result.note:
        stderr_console().out(result.note)
    if as_json:
        print_object(
            {"run": result.run, **result.exam.record(), "note": result.note, "report": str(result.report.resolve())}
        )
    else:
        _print(result)


def open_sealed_days(name: str, place: Path, reason: str) -> UnsealResult:
    """Return a run's result on the sealed days: the stored one, or that of an opening made now.

    Raises
    ------
    DeskError
        The run has not ended, or accepted nothing.
    AlphaloomError
        The panel is not the one of the run.
    """
    from ....evaluation import find_campaign
    from ....ledger import Ledger

    with Ledger.open(place, clock=lambda: datetime.now(UTC)) as ledger:
        row = find_campaign(ledger, name)
        _refuse_unfinished(row)
        folder = ledger.runs.folder(row.id)
        with ledger.runs.lock(row.id):
            ledger.artefacts.check(row.id)
            results, notes = read_results(folder), read_run_notes(ledger, row.id)
            if results.sealed:
                note = REPEATED_NOTE.format(number=results.sealed.number)
                return UnsealResult(row.id, results.sealed, write_report(folder, notes), note)
            exam, note = _write_opening(ledger, row, [entry.id for entry in results.accepted], reason)
            return UnsealResult(row.id, exam, write_report(folder, notes), note)


def _refuse_unfinished(row: Run) -> None:
    if row.status != "done":
        raise DeskError(
            f"Run {row.id} has not ended.",
            field="run",
            got=row.status,
            allowed="a run that is done",
            hint=f"Finish it first: alphaloom resume {row.id}",
            code="seal_refused",
            exit_code=1,
        )


def _write_opening(ledger: Ledger, row: Run, accepted: list[str], reason: str) -> tuple[SealedExam, str]:
    """Open the sealed days and write the result beside the run; return it with a note for the person."""
    from ....campaign import Settings
    from ....evaluation.closing import SealedExam, unseal
    from ....evidence.values import LazySandbox
    from ....ledger import write_json
    from ....portfolio import find_own_opening

    if not accepted:
        raise DeskError(
            f"Run {row.id} accepted nothing, so there is nothing to examine; the days stay sealed.",
            field="run",
            got="0 accepted",
            allowed="a run that accepted a factor or a set",
            code="seal_refused",
            exit_code=1,
        )
    with LazySandbox(Settings.from_record(row.config["settings"]).sandbox) as sandbox:
        evaluator = _make_evaluator(ledger, row, sandbox)
        before = find_own_opening(evaluator)
        record = unseal(evaluator, accepted, reason)
    body = write_json(ledger.runs.folder(row.id) / SEALED_FILE, record)
    ledger.artefacts.record(row.id, SEALED_FILE, ledger.objects.put(body))
    return SealedExam.read(record), RESUMED_NOTE.format(number=before.number) if before else ""


def _make_evaluator(ledger: Ledger, row: Run, sandbox: LazySandbox) -> Evaluator:
    """Return the evaluation service of a run on its own panel; another panel is refused before anything is written."""
    from ....campaign import Campaign, Settings
    from ....evaluation import PanelContext

    settings = Settings.from_record(row.config["settings"])
    panel, dataset = settings.market.open(settings.seed)
    Campaign(settings, ledger.workspace, row.id).check_panel(ledger, panel)
    context = PanelContext.set_up(panel, ledger, settings.evidence, dataset, runner=sandbox)
    return context.evaluator(row.id, settings.budget)


def _print(result: UnsealResult) -> None:
    from rich.table import Table
    from rich.text import Text

    console = stdout_console()
    console.print(Text(describe_exam(result.exam), style="bold"))
    table = Table.grid(padding=(0, 2))
    for name, value in exam_rows(result.exam):
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)
    for line in exam_factor_rows(result.exam):
        console.print(Text("  ".join(line)))
    print_plain("The report:")
    print_plain(str(result.report.resolve()))
