"""The commands on paper books: open one, take it through new days, show it, and compute it again."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..figures import count, number, percent, plural
from .console import print_object, print_plain, stdout_console
from .options import AsJson, CampaignFile, DataOptions, PanelFile, SectorsFile, Workspace, refuse_existing
from .run_lookup import DEFAULT_WORKSPACE, open_record

if TYPE_CHECKING:
    from ...campaign import BookStep

app = typer.Typer(no_args_is_help=True, help="Keep a paper book that lives: one step a day, through the risk gate.")
BookName = Annotated[str, typer.Argument(metavar="NAME", help="The book's name.")]
STEP_COLUMNS = (
    "day", "window", "equity", "ungated_equity", "pnl", "gross", "net", "fills", "approved", "refused", "late",
)  # fmt: skip  # a table


def _read_clock() -> datetime:
    return datetime.now(UTC)


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
    from ...campaign import BookSettings, open_book
    from ...evaluation import find_campaign

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        settings = BookSettings(
            run=find_campaign(ledger, run).id if run else "",
            cash=cash,
            bps_per_side=bps_per_side,
            borrow_bps_per_year=borrow_bps_per_year,
            max_volume_share=max_volume_share,
        )
        open_book(ledger, name, settings, _read_clock())
    print_plain(f"Open: {name}. The first step: alphaloom book step {name} --panel FILE")


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
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Take a book through every new day: fill yesterday's targets, value it, and ask the gate for tomorrow's.

    The same day twice changes nothing, and a step that was killed goes on.
    """
    from ...campaign import BookData, find_book, step_book
    from ...evidence.values import LazySandbox
    from .targets import find_settings

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        place = DataOptions(campaign, panel, sectors, None, workspace)
        settings = find_settings(ledger, find_book(ledger, name)[1].run, place)
        read, dataset = settings.market.open(settings.seed)
        with LazySandbox(settings.sandbox) as sandbox:
            data = BookData(read, dataset, sandbox, since.date() if since else None)
            steps = step_book(ledger, name, data, _read_clock, lambda one: None if as_json else print_plain(_say(one)))
    if as_json:
        print_object({"book": name, "steps": [_tell(one) for one in steps]})
    elif not steps:
        print_plain(f"Nothing new: the panel ends on {read.dates[-1]}.")


@app.command()
def show(name: BookName, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Show a book: what it holds and is worth, beside what it would be had the gate approved everything."""
    facts = _summarise(name, _read_steps(name, workspace))
    if as_json:
        print_object(facts)
    else:
        _print(facts)


@app.command()
def replay(name: BookName, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Compute every step again from what it had read, and say where a byte differs; exit code 1 where one does."""
    from ...campaign import replay_book

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        told = dict(replay_book(ledger, name))
    differing = {day: parts for day, parts in told.items() if parts}
    if as_json:
        print_object({"steps": len(told), "differing": differing})
    else:
        for day, parts in differing.items():
            print_plain(f"{day}: {', '.join(parts)}")
        said = f"{len(differing)} differ" if differing else "every byte is the same" if told else "there is none yet"
        print_plain(f"{plural(len(told), 'step')} computed again: {said}.")
    if differing:
        raise typer.Exit(1)


@app.command()
def export(
    name: BookName,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.csv", help="One line for each step.")],
    workspace: Workspace = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a line for each step: equity, gated and ungated, exposures, fills, approvals."""
    from ...ledger.files import write_whole

    refuse_existing(out, force=force)
    lines = io.StringIO()
    writer = csv.DictWriter(lines, STEP_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_tell(one) for one in _read_steps(name, workspace))
    write_whole(out, lines.getvalue().encode())
    print_plain(f"Written: {out}")


def _read_steps(name: str, workspace: Path | None) -> list[BookStep]:
    from ...campaign import find_book, list_steps, read_step

    with open_record(workspace or DEFAULT_WORKSPACE) as ledger:
        return [read_step(body) for body in list_steps(ledger, find_book(ledger, name)[0])]


def _tell(one: BookStep) -> dict[str, Any]:
    """Return a step as plain facts; money in the prices' currency, exposures as shares of equity."""
    weights = one.account.weights().values()
    rulings = one.decision["rulings"]
    facts = (
        one.day,
        one.window,
        one.account.equity,
        one.ungated.equity,
        one.account.pnl,
        math.fsum(abs(weight) for weight in weights),
        math.fsum(weights),
        len(one.fills),
        sum(ruling["approved"] for ruling in rulings),
        sum(not ruling["approved"] for ruling in rulings),
        one.late,
    )
    return dict(zip(STEP_COLUMNS, facts, strict=True))


def _say(one: BookStep) -> str:
    facts = _tell(one)
    return (
        f"{one.day}: equity {number(facts['equity'], 2)}, {plural(facts['fills'], 'fill')}; for {one.decided_for} "
        f"{count(facts['approved'])} approved, {count(facts['refused'])} refused{'; late' if one.late else ''}"
    )


def _summarise(name: str, steps: Sequence[BookStep]) -> dict[str, Any]:
    refusals = Counter(rule for one in steps for ruling in one.decision["rulings"] for rule in ruling["refusals"])
    last = steps[-1] if steps else None
    return {
        "book": name,
        "steps": len(steps),
        "first_day": steps[0].day if steps else None,
        "last": _tell(last) if last else None,
        "forward_days": sum(not one.late for one in steps),
        "gated": _measure([one.account.equity for one in steps]),
        "ungated": _measure([one.ungated.equity for one in steps]),
        "days_by_window": dict(sorted(Counter(one.window or "later" for one in steps).items())),
        "costs": math.fsum(fill.cost for one in steps for fill in one.fills),
        "refusals_by_rule": dict(sorted(refusals.items())),
        "holdings": {} if last is None else dict(sorted(last.account.weights().items())),
        "for": last.decided_for if last else None,
    }


def _measure(equity: Sequence[float]) -> dict[str, float | None]:
    """Return return, largest drawdown and yearly Sharpe ratio of a book valued at its closes; None where undefined."""
    import numpy as np

    from ...evidence.scoring import annual_sharpe

    values = np.array(equity)
    if len(values) < 2 or (values <= 0).any():
        return {"return": None, "drawdown": None, "sharpe": None}
    sharpe = annual_sharpe(values[1:] / values[:-1] - 1.0)
    fall = values / np.maximum.accumulate(values) - 1.0
    return {
        "return": float(values[-1] / values[0] - 1.0),
        "drawdown": float(fall.min()),
        "sharpe": None if np.isnan(sharpe) else float(sharpe),
    }


def _print(facts: Mapping[str, Any]) -> None:
    from rich.table import Table

    if facts["last"] is None:
        print_plain(f"{facts['book']} has made no step: alphaloom book step {facts['book']} --panel FILE")
        return
    last = facts["last"]
    days = f"{plural(facts['steps'], 'step')} from {facts['first_day']} to {last['day']}"
    print_plain(f"{facts['book']}: {days}, {count(facts['forward_days'])} of them on record before their session.")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("", "return", "largest drawdown", "Sharpe, yearly"):
        table.add_column(head, justify="left" if not head else "right")
    for kind in ("gated", "ungated"):
        row = facts[kind]
        figures = [percent(row["return"], 2), percent(row["drawdown"], 2), number(row["sharpe"], 2)]
        table.add_row(kind, *figures)
    stdout_console().print(table)
    if in_sample := facts["days_by_window"].get("search", 0):
        print_plain(f"{count(in_sample)} of these days are search days, on which the factors were found: expect less.")
    print_plain(
        f"Equity {number(last['equity'], 2)}; gross {percent(last['gross'], 1)}, net {percent(last['net'], 1)} of it; "
        f"{count(len(facts['holdings']))} held; costs so far {number(facts['costs'], 2)}."
    )
    rules = ", ".join(f"{rule.replace('_', ' ')} {count(times)}" for rule, times in facts["refusals_by_rule"].items())
    print_plain(f"Refusals by rule, over all steps: {rules or 'none'}.")
    print_plain(f"For {facts['for']}: {count(last['approved'])} targets approved, {count(last['refused'])} refused.")
