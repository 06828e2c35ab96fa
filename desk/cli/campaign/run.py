"""The commands that write a campaign file, run, resume or stop a campaign, and write its report again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import EXIT_BUDGET_ENDED
from ...facts.standing import STATE_DONE, STATE_RUNNING, RunStanding
from ..console import print_object, print_plain, stderr_console
from ..failures import InterruptionReported
from ..options import (
    AsJson,
    AsOf,
    By,
    Executor,
    LedgerAddress,
    Overrides,
    PanelFile,
    RunName,
    SandboxBackend,
    SectorsFile,
    Seed,
    Workspace,
    check_campaign_file,
)
from ..run_lookup import read_run
from .progress import Show, show_progress
from .status import open_run

if TYPE_CHECKING:
    from ....evaluation import CampaignResult
    from ....ledger import Ledger, Run


WHAT_A_CASE_IS = (
    "A case passed every step of the gate, and is accepted once a person approves it. A watched factor came close in "
    "its test, and is not proven."
)
DEMO = Path(__file__).with_name("demo.yaml")


def run(
    campaign: Annotated[
        Path | None,
        typer.Argument(
            metavar="CAMPAIGN.yaml", callback=check_campaign_file, help="The campaign; the demo by default."
        ),
    ] = None,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    as_of: AsOf = None,
    seed: Seed = None,
    workspace: Workspace = None,
    ledger: LedgerAddress = "",
    overrides: Overrides = None,
    executor: Executor = None,
    sandbox_backend: SandboxBackend = None,
    as_json: AsJson = False,
) -> None:
    """Run a campaign: agents propose factors, the gate judges them, a report tells the outcome."""
    from .reported import Campaign

    ready = Campaign.from_yaml(
        campaign or DEMO,
        panel=panel,
        sectors=sectors,
        as_of=as_of.date() if as_of else None,
        seed=seed,
        workspace=workspace,
        overrides=tuple(overrides or ()),
        ledger=ledger,
    ).contained(executor, sandbox_backend)
    _follow(lambda show: ready.run(progress=show), workspace, as_json=as_json)


def resume(
    run: RunName,
    workspace: Workspace = None,
    executor: Executor = None,
    sandbox_backend: SandboxBackend = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was interrupted or killed; nothing that was paid for is done twice."""
    with open_run(run, workspace) as (ledger, row):
        name, place = row.id, ledger.workspace
    from .reported import Campaign

    where = (executor, sandbox_backend)
    _follow(
        lambda show: Campaign.resume(name, workspace=place, progress=show, where=where),
        workspace,
        as_json=as_json,
    )


def report(
    run: RunName,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Write a folder instead: index.html, a page each for factors, book."
        ),
    ] = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a finished run again: one HTML file, or a folder of pages."""
    from ...report.report import write_report, write_report_folder

    files, notes = read_run(run, workspace)
    path = write_report_folder(files, folder, notes) if folder else write_report(files, notes)
    if as_json:
        print_object({"report": str(path.resolve())})
    else:
        print_plain(str(path.resolve()))


def _follow(start: Callable[[Show], CampaignResult], workspace: Path | None, *, as_json: bool) -> None:
    from ....evidence import RunHalted

    try:
        with show_progress() as show:
            result = start(show)
    except KeyboardInterrupt:
        _print_resume_hint("interrupted", "interrupted", "resume latest", workspace, as_json=as_json)
        raise InterruptionReported from None
    except RunHalted as halt:
        after = {"paused": "review", "paused_for_seal": "evidence seal"}.get(halt.code, "resume")
        _print_resume_hint(halt.code, halt.message, f"{after} {halt.got}", workspace, as_json=as_json)
        raise typer.Exit(halt.exit_code) from None
    _print_result(result, as_json=as_json)
    from ....campaign import CLOSED_BY_HAND

    if result.results.ended not in (None, CLOSED_BY_HAND):
        raise typer.Exit(EXIT_BUDGET_ENDED)


def _print_resume_hint(code: str, message: str, after: str, workspace: Path | None, *, as_json: bool) -> None:
    """Print why a run pauses, and the command that continues it."""
    command, _, got = after.rpartition(" ")
    option = f" --workspace {workspace}" if workspace else ""
    hint = f"alphaloom {after}{option}"
    if as_json:
        facts = {"code": code, "field": "run", "got": got, "allowed": None}
        print_object({**facts, "hint": f"{command} with: {hint}", "message": message})
        return
    lines = [f"{message}; {command} with: {hint}"]
    if command == "review":
        lines = [message, WHAT_A_CASE_IS, f"Decide in a browser: alphaloom desk{option}", f"Or here: {hint}"]
    for line in lines:
        stderr_console().print(line, markup=False, soft_wrap=True)


def _print_result(result: CampaignResult, *, as_json: bool) -> None:
    report = str(result.report.resolve()) if result.report else ""
    if as_json:
        print_object(_build_json(result, report))
        return
    from .verdicts import print_verdicts

    print_verdicts(result.results)
    if result.report:
        workspace = result.report.resolve().parents[2]
        print_plain(f"Each step: alphaloom log {result.run} --workspace {workspace}")
    print_plain("The report:")
    print_plain(report)


def _build_json(result: CampaignResult, report: str) -> dict[str, Any]:
    """Return the results with the run's id, and files by their full path."""
    file = str(result.combination.resolve()) if result.combination else None
    return {"run": result.run, **result.record, "combination": file, "report": report or None}


STOP_POLL_SECONDS = 0.1


def stop(
    run: RunName,
    close: Annotated[
        bool, typer.Option("--close", help="End the search and let the run close, with a report, instead.")
    ] = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="How long to wait for the step under way.")
    ] = 60.0,
    by: By = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Stop a run that another process works on: it finishes the step under way, loses nothing, and can be resumed."""
    with open_run(run, workspace) as (ledger, row):
        process = ledger.runs.holder(row.id)
        _record_request(ledger, row, close=close, process=process, by=by)
        if process is not None:
            _await_release(ledger, row.id, wait)
        standing = RunStanding.of(ledger, ledger.runs.find(row.id), workspace)
    facts = {"run": row.id, "was_running": process is not None, "state": standing.state, "next": standing.next}
    if as_json:
        print_object(facts)
    else:
        print_plain(_describe_outcome(facts, close=close))


def _record_request(ledger: Ledger, row: Run, *, close: bool, process: str | None, by: str | None) -> None:
    """Record the request: to close a run that is not done, or to stop one that a process works on."""
    from ....ledger import ask_to_close, ask_to_stop
    from ..options import signer_name

    if close and row.status != "done":
        ask_to_close(ledger.events, row.id, signer_name(by, ledger.workspace, "run:control"))
    elif process is not None:
        ask_to_stop(ledger.events, row.id, signer_name(by, ledger.workspace, "run:control"))


def _await_release(ledger: Ledger, run: str, seconds: float) -> None:
    """Wait until no process holds the run, or the time is up."""
    end = time.monotonic() + seconds
    while ledger.runs.holder(run) is not None and time.monotonic() < end:
        time.sleep(STOP_POLL_SECONDS)


def _describe_outcome(facts: dict[str, Any], *, close: bool) -> str:
    run, state = facts["run"], facts["state"]
    if state == STATE_RUNNING:
        request = "asked to end its search and close" if close else "asked to stop"
        return f"{run} is {request}; it is still at the step under way; next: {facts['next']}"
    if facts["was_running"]:
        return f"{run}: {state}; next: {facts['next']}"
    if close and state != STATE_DONE:
        return f"Nothing works on {run} now ({state}); it closes when it is resumed; next: {facts['next']}"
    return f"Nothing works on {run}: there is nothing to stop. It is {state}; next: {facts['next']}"


CAMPAIGN_TEMPLATE = Path(__file__).with_name("template.yaml")


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("campaign.yaml"), as_json: AsJson = False
) -> None:
    """Write a campaign file with a comment on every setting; a file that exists is left alone."""
    from ...errors import DeskError

    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(CAMPAIGN_TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise DeskError(
            f"{file} exists and is left as it is",
            field="file",
            got=str(file),
            hint="choose another name",
            code="file_exists",
            exit_code=1,
        ) from None
    if as_json:
        print_object({"file": str(file.resolve())})
    else:
        print_plain(f"wrote {file}; run it with: alphaloom run {file} --panel PRICES.parquet")
