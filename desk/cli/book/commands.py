"""The commands on paper books: open one, take it through new days, show it, and compute it again."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import DeskError
from ...facts.books import STEP_COLUMNS, read_book_facts, say_step, tell_step
from ...facts.standing import DEFAULT_WORKSPACE, workspace_option
from ...figures import currency, plural
from ..console import make_text, print_object, print_plain, stderr_console
from ..options import (
    PASSWORD_FILE_VARIABLE,
    SECOND_PASSWORD_FILE_VARIABLE,
    AsJson,
    CampaignFile,
    DataOptions,
    PanelFile,
    SectorsFile,
    Workspace,
    check_file_exists,
    refuse_existing,
    signer_name,
)
from ..run_lookup import open_record

if TYPE_CHECKING:
    from ....campaign import BookStep
    from ....ledger import Ledger

app = typer.Typer(no_args_is_help=True, help="Keep a paper book that lives: one step a day, through the risk gate.")
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides on it; it is kept with the record.")]
Money = Annotated[float, typer.Argument(metavar="AMOUNT", min=0.0, help="Money in the prices' currency.")]
BookName = Annotated[str, typer.Argument(metavar="NAME", help="The book's name.")]


def _read_clock() -> datetime:
    return datetime.now(UTC)


def _note(line: str) -> None:
    stderr_console().print(make_text(line), style="dim")


@app.command("open")
def open_new(
    name: BookName,
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="Only what this run accepted.")] = "",
    cash: Annotated[float, typer.Option("--cash", min=1.0, max=1e15, help="Money at the start.")] = 1_000_000.0,
    bps_per_side: Annotated[
        float, typer.Option("--bps-per-side", min=0.0, max=1_000.0, help="Cost of trading.")
    ] = 10.0,
    borrow_bps_per_year: Annotated[
        float, typer.Option("--borrow-bps", min=0.0, max=10_000.0, help="Cost of being short.")
    ] = 50.0,
    max_volume_share: Annotated[
        float, typer.Option("--max-volume-share", min=0.0, max=1.0, help="Of a day's volume; 0: no limit.")
    ] = 0.05,
    workspace: Workspace = None,
) -> None:
    """Open a paper book; its settings are fixed from then on, and the same command again changes nothing."""
    from ....campaign import BookSettings, open_book
    from ....evaluation import find_campaign

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        settings = BookSettings(
            run=find_campaign(ledger, run).id if run else "",
            cash=cash,
            bps_per_side=bps_per_side,
            borrow_bps_per_year=borrow_bps_per_year,
            max_volume_share=max_volume_share,
        )
        open_book(ledger, name, settings, _read_clock())
    print_plain(f"Open: {name}. The first step: alphaloom book step {name} --panel FILE{workspace_option(workspace)}")


Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the record.")]


@app.command()
def halt(
    name: BookName,
    reason: Reason,
    by: By,
    reducing: Annotated[bool, typer.Option("--reducing", help="Positions may still be reduced.")] = False,
    second: Annotated[
        str, typer.Option("--second", metavar="NAME", help="Who agrees, where a halted book may reduce again.")
    ] = "",
    workspace: Workspace = None,
) -> None:
    """Stop a book's trading from its next day on, until two people resume it."""
    from ....campaign import order_mode

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        signed = (reason, _sign(by, ledger), _sign(second, ledger, first=False) if second else "")
        order = order_mode(ledger, name, "reducing" if reducing else "halted", signed, _read_clock())
    passes = "only what reduces passes" if reducing else "nothing passes"
    people = ", ".join(filter(None, (order.by, order.second)))
    print_plain(f"From the first day after {order.at[:10]} on, {passes} in {name}: {order.reason} ({people}).")


@app.command()
def resume(
    name: BookName,
    reason: Reason,
    by: By,
    second: Annotated[str, typer.Option("--second", metavar="NAME", help="The other person who agrees.")],
    workspace: Workspace = None,
) -> None:
    """Resume a book that was halted, or that its drawdown holds to reductions; falls count from where it stands."""
    from ....campaign import order_mode

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        signed = (reason, _sign(by, ledger), _sign(second, ledger, first=False))
        order = order_mode(ledger, name, "active", signed, _read_clock())
    people = f"{order.by}, {order.second}"
    print_plain(f"{name} trades again from the first day after {order.at[:10]} on: {order.reason} ({people}).")


@app.command()
def step(
    name: BookName,
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    since: Annotated[
        datetime | None,
        typer.Option("--since", formats=["%Y-%m-%d"], help="First day of a new book; the panel's last by default."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option("--until", formats=["%Y-%m-%d"], help="Last day that is stepped; the panel's last by default."),
    ] = None,
    revised: Annotated[
        str, typer.Option("--revised", metavar="REASON", help="Go on although the panel lacks the last step's day.")
    ] = "",
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who says so; it is kept with the step.")] = "",
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Take a book through every new day: fill yesterday's targets, value it, and ask the gate for tomorrow's.

    The library is watched on the new days first (alphaloom library watch). The same day twice changes nothing, and a
    step that was killed goes on. While another process steps the book, this one waits.
    """
    from ....campaign import BookData, find_book, step_book
    from ....evidence.values import LazySandbox
    from ..targets import cut_panel, find_settings

    if bool(revised.strip()) != bool(by.strip()):
        field = "--by" if revised.strip() else "--revised"
        hint = "Nothing was stepped."
        raise DeskError("A revision needs a reason and a person.", field=field, allowed="a text", hint=hint)
    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        place = DataOptions(campaign, panel, sectors, None, workspace)
        settings = find_settings(ledger, find_book(ledger, name)[1].run, place)
        read, dataset = settings.market.open(settings.seed)
        read = cut_panel(read, until, "--until")
        with LazySandbox(settings.sandbox) as sandbox:
            data = BookData(read, dataset, sandbox, since.date() if since else None, settings.evidence)
            limits = settings.risk if campaign else None
            says = (revised.strip(), _sign(by.strip(), ledger)) if revised else None
            data = replace(data, limits=limits, revised=says)
            steps = step_book(
                ledger, name, data, _read_clock, lambda one: None if as_json else print_plain(say_step(one)), _note
            )
    if as_json:
        print_object({"book": name, "steps": [tell_step(one) for one in steps]})
    elif not steps:
        print_plain(f"Nothing new: the panel ends on {read.dates[-1]}.")


@app.command()
def deposit(name: BookName, amount: Money, by: By, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Pay money into a book: the first step of a later day has it, and no return counts it as a gain."""
    _pay(name, amount, by, workspace, as_json=as_json)


@app.command()
def withdraw(name: BookName, amount: Money, by: By, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Take money out of a book, by the first step of a later day; no return counts it as a loss."""
    _pay(name, -amount, by, workspace, as_json=as_json)


def _sign(name: str, ledger: Ledger, *, first: bool = True) -> str:
    """Return the name of a person who decides on a book; where the workspace has users, it must be theirs."""
    field, variable = ("--by", PASSWORD_FILE_VARIABLE) if first else ("--second", SECOND_PASSWORD_FILE_VARIABLE)
    return signer_name(name, ledger.workspace, "risk:approve", field=field, variable=variable)


def _pay(name: str, amount: float, by: str, workspace: Path | None, *, as_json: bool) -> None:
    from ....campaign import pay_book

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        flow = pay_book(ledger, name, amount, _sign(by, ledger), _read_clock())
    if as_json:
        print_object({"book": name, "flow": flow.key, "amount": flow.amount, "by": flow.by, "at": flow.at})
        return
    said = "paid in" if amount > 0 else "to be paid out"
    when = f"with the first step of a day after {flow.at[:10]}"
    print_plain(f"Recorded as flow {flow.key}: {currency(abs(amount))} {said} by {flow.by}, {when}.")


@app.command()
def show(
    name: BookName,
    attribution: Annotated[
        bool, typer.Option("--attribution", help="Its profit by run, factor, sector, symbol and cost.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Show a book: what it holds and is worth, beside what it would be had the gate approved everything."""
    from ....campaign import attribute_profit

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        facts = read_book_facts(ledger, name)
        profit = attribute_profit(ledger, name) if attribution else None
    facts |= {"attribution": profit.record()} if profit else {}
    if as_json:
        print_object(facts)
    else:
        from .page import print_book

        print_book(facts, workspace_option(workspace))


@app.command()
def replay(name: BookName, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Compute every step again from what it had read, and say where a byte differs; exit code 1 where one does.

    Steps that the log of calls has and the record does not are named, and those that the log lacks are counted.
    """
    from ....campaign import GONE, NOT_LOGGED, replay_book
    from ....ledger.calls import CALLS_FOLDER, verify_calls

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        told = dict(replay_book(ledger, name))
        damage = [finding.message for finding in verify_calls(ledger.workspace / CALLS_FOLDER).findings]
    differing = {day: parts for day, parts in told.items() if parts}
    unlogged = sum(NOT_LOGGED in parts for parts in told.values())
    computed = sum(GONE not in parts for parts in told.values())
    if as_json:
        print_object({"steps": computed, "differing": differing, "log": damage})
    else:
        for day, parts in differing.items():
            if parts != [NOT_LOGGED]:
                print_plain(f"{day}: {', '.join(parts)}")
        if unlogged:
            print_plain(f"{plural(unlogged, 'step')} {'is' if unlogged == 1 else 'are'} {NOT_LOGGED}.")
        for message in damage:
            print_plain(f"The log of calls, which has the steps, was changed: {message}")
        said = f"{len(differing)} differ" if differing else "every byte is the same" if told else "there is none yet"
        print_plain(f"{plural(computed, 'step')} computed again: {said}.")
    if differing or damage:
        raise typer.Exit(1)


@app.command()
def export(
    name: BookName,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.csv", help="One line for each step.")],
    workspace: Workspace = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a line for each step: equity, gated and ungated, flows, exposures, costs, approvals, refusals by rule."""
    from ....ledger.files import write_whole

    refuse_existing(out, force=force)
    lines = io.StringIO()
    writer = csv.DictWriter(lines, STEP_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(tell_step(one) for one in _read_steps(name, workspace))
    write_whole(out, lines.getvalue().encode())
    print_plain(f"Written: {out}")


@app.command()
def reconcile(
    name: BookName,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.csv", callback=check_file_exists, help="What the broker holds: symbol, shares."),
    ],
    cash: Annotated[float | None, typer.Option("--cash", help="The broker's cash; compared where it is given.")] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", min=0.0, metavar="BP", help="Largest difference, of the book's equity.")
    ] = 1.0,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Compare a broker's positions and cash with the book's last close; exit code 1 where one differs too much."""
    from ....portfolio import compare_positions
    from .positions import read_positions

    if cash is not None and not math.isfinite(cash):
        raise DeskError("Cash must be a number.", field="--cash", got=str(cash), allowed="a finite number")
    positions, steps = read_positions(file), _read_steps(name, workspace)
    if not steps:
        raise DeskError(
            "The book has made no step, so it holds nothing.",
            field="NAME",
            got=name,
            hint=f"alphaloom book step {name} --panel FILE",
            code="no_steps",
        )
    found = compare_positions(steps[-1].account, positions, cash)
    beyond = [one for one in found if one.exceeds(tolerance)]
    if as_json:
        rows = [{**asdict(one), "exceeds": one in beyond} for one in found]
        print_object({"book": name, "day": steps[-1].day, "tolerance_bp": tolerance, "differences": rows})
    else:
        from .page import print_differences

        print_differences(found, beyond, steps[-1].day, tolerance)
    if beyond:
        raise typer.Exit(1)


def _read_steps(name: str, workspace: Path | None) -> list[BookStep]:
    from ....campaign import find_book, list_steps, read_step

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        return [read_step(body) for body in list_steps(ledger, find_book(ledger, name)[0])]
