"""The command that says what the accepted factors would hold today, and what the risk gate says to it."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DeskError
from ..facts.standing import DEFAULT_WORKSPACE
from ..figures import count, number, percent, plural, short_id
from .console import mask_unprintable, print_object, print_plain, stdout_console
from .options import (
    AsJson,
    CampaignFile,
    DataOptions,
    PanelFile,
    SectorsFile,
    Workspace,
    check_file_exists,
    data_line,
    refuse_existing,
)
from .run_lookup import locate_run, open_record

if TYPE_CHECKING:
    from ...campaign import Settings, Targets
    from ...ledger import Ledger
    from ...market import Panel

TARGET_COLUMNS = ("date", "symbol", "weight", "low", "high", "evidence", "valid_until", "decision", "reasons")
FORMATS = (".csv", ".parquet", ".json")
MAX_SHOWN = 12
"""Targets of each side that the terminal shows; the file has all."""


def targets(
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="Only what this run accepted; the whole library by default.")
    ] = "",
    panel: PanelFile = None,
    sectors: SectorsFile = None,
    campaign: CampaignFile = None,
    day: Annotated[
        datetime | None,
        typer.Option("--day", formats=["%Y-%m-%d"], help="The day whose close is known; the panel's last by default."),
    ] = None,
    held: Annotated[
        Path | None,
        typer.Option(
            "--held",
            metavar="FILE",
            callback=check_file_exists,
            help="What you hold, a table: symbol, weight of equity.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write every target: .csv, .parquet or .json.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Say what the accepted and live factors would hold after a day, sized to the policy and asked of the risk gate.

    Nothing is sent anywhere. Weights are shares of equity, negative for short, for the next trading day.
    """
    _refuse_format(out)
    if out is not None:
        refuse_existing(out, force=force)
    facts = compute_targets(run, DataOptions(campaign, panel, sectors, None, workspace), day, held)
    if out is not None:
        _write(out, facts["targets"])
    if as_json:
        print_object(facts)
    else:
        _print(facts, out)


def _refuse_format(out: Path | None) -> None:
    if out is not None and out.suffix not in FORMATS:
        raise DeskError(
            "The file's ending says its format.", field="--out", got=out.name, allowed=", ".join(FORMATS), code="format"
        )


def compute_targets(run: str, place: DataOptions, day: datetime | None, held: Path | None) -> dict[str, Any]:
    """Return the targets with their decision, the books behind them, and what is left out."""
    from ...campaign import build_targets
    from ...evaluation import find_campaign
    from ...evidence.values import LazySandbox
    from .evaluator import describe_data

    name, workspace = locate_run(run, place.workspace) if run else ("", place.workspace or DEFAULT_WORKSPACE)
    with open_record(workspace) as ledger:
        name = find_campaign(ledger, name).id if name else ""
        settings = find_settings(ledger, name, place)
        panel = cut_panel(settings.market.open(settings.seed)[0], day)
        with LazySandbox(settings.sandbox) as sandbox:
            limits = settings.risk if place.campaign else None
            built = build_targets(ledger, panel, sandbox, name, _read_held(held, panel), limits)
    return {"data": describe_data(settings, panel), **_tell(built, panel)}


def find_settings(ledger: Ledger, run: str, place: DataOptions) -> Settings:
    """Return the settings that name the data: of a campaign file, or of the run, or of the newest run.

    Files that the person names take the place of those of the run.
    """
    from ..facts.stress import find_recorded_settings
    from .evaluator import settings_at

    recorded = find_recorded_settings(ledger, run) if place.campaign is None else None
    if recorded is not None:
        return recorded.on(recorded.market.given(place.panel, place.sectors, place.as_of))
    if place.campaign is None and place.panel is None:
        raise DeskError(
            "No campaign of this workspace says which data is meant.",
            field="--panel",
            allowed="a file with the newest prices",
            hint="Add --panel FILE, or --campaign FILE whose market names one.",
            code="no_data",
        )
    return settings_at(place)


def cut_panel(panel: Panel, day: datetime | None, field: str = "--day") -> Panel:
    """Return the panel up to a day, which must be one of its days."""
    if day is None:
        return panel
    import numpy as np

    rows = int(np.searchsorted(panel.dates, np.datetime64(day.date(), "D"), side="right"))
    if rows == 0 or panel.dates[rows - 1] != np.datetime64(day.date(), "D"):
        raise DeskError(
            "The panel does not have this day.",
            field=field,
            got=str(day.date()),
            allowed=f"a trading day from {panel.dates[0]} to {panel.dates[-1]}",
            code="day",
        )
    return panel.rows(0, rows)


def _read_held(file: Path | None, panel: Panel) -> dict[str, int]:
    """Return what is held, in 1e-8 of equity; every mistake of the file names its line."""
    from ...risk import UNITS_PER_EQUITY
    from .table_file import MistakeList, parse_text_cell, parse_weight_cell, read_table_file

    if file is None:
        return {}
    mistakes, known = MistakeList(file), {*panel.symbols}
    held: dict[str, int] = {}
    for line, row in read_table_file(file, ("symbol", "weight"), "--held"):
        symbol = mistakes.read(line, row, "symbol", parse_text_cell)
        weight = mistakes.read(line, row, "weight", parse_weight_cell)
        if symbol in held:
            mistakes.add(line, "symbol", f"{symbol} is there twice")
        elif symbol is not None and symbol not in known:
            mistakes.add(line, "symbol", f"the panel does not have {symbol}")
        elif symbol is not None and weight is not None:
            held[symbol] = round(weight * UNITS_PER_EQUITY)
    mistakes.refuse()
    return held


def _tell(built: Targets, panel: Panel) -> dict[str, Any]:
    """Return targets as plain facts, the table first in order of the symbols."""
    from ...risk import UNITS_PER_BP, UNITS_PER_EQUITY

    decision = built.trade.decision
    rows = []
    for ruling in decision.rulings:
        signal: dict[str, Any] = dict(ruling.signal)
        low, target, high = (signal[f"{name}_e8"] / UNITS_PER_EQUITY for name in ("lo", "target", "hi"))
        decided = "approved" if ruling.approved else "refused"
        said = (decision.day, ruling.asset, target, low, high, signal["evidence"], decision.day, decided)
        rows.append(dict(zip(TARGET_COLUMNS, (*said, ", ".join(ruling.refusals)), strict=True)))
    books = [
        {"run": book.run, "share": share, "evidence": list(book.evidence), "tested": book.tested, "rate": book.rate,
         "factors": dict(book.weights)}
        for book, share in built.live.books.values()
    ]  # fmt: skip  # a table
    return {
        "day": str(panel.dates[-1]),
        "for": decision.day,
        "decision": decision.id,
        "policy": decision.policy,
        "policy_notes": list(built.trade.notes),
        "scale": float(built.trade.book.scale),
        "rounding_bp": built.trade.book.rounding_e8(built.trade.weights) / UNITS_PER_BP,
        "approved": len(decision.approved),
        "refused": len(decision.rulings) - len(decision.approved),
        "books": books,
        "left_out": dict(built.live.left_out),
        "standings": dict(decision.standings),
        "book": [check.told() for check in decision.book],
        "targets": rows,
    }


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Write the table whole or not at all."""
    from ...ledger.calls import escape_formula
    from ...ledger.files import write_whole

    if out.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows), sink)
        write_whole(out, sink.getvalue().to_pybytes())
        return
    if out.suffix == ".json":
        write_whole(out, (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode())
        return
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(TARGET_COLUMNS)
    for row in rows:
        cells = (row[name] for name in TARGET_COLUMNS)
        writer.writerow(f"{cell:.8f}" if isinstance(cell, float) else escape_formula(cell) for cell in cells)
    write_whole(out, lines.getvalue().encode())


def _print(facts: dict[str, Any], out: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    print_plain(data_line(facts["data"]))
    print_plain(f"Targets for {facts['for']}, from what was known at the close of {facts['day']}.")
    for book in facts["books"]:
        proof = "as the gate tested it" if book["tested"] else "weights learnt after the tests"
        if len(book["factors"]) == 1:
            proof = f"its score is followed by {percent(book['rate'], 0)} a day, each day's book in equal sleeves"
        names = ", ".join(short_id(name) for name in book["evidence"])
        source = "" if book["evidence"] == [book["run"]] else f" of {book['run']}"
        print_plain(f"  {percent(book['share'], 0)} of equity a side follows {names}{source} ({proof})")
    for run, why in facts["left_out"].items():
        print_plain(f"  left out: {run}, because {why}")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for head in ("symbol", "weight", "bounds", "decision"):
        table.add_column(head, justify="left" if head in ("symbol", "decision") else "right")
    rows = sorted(facts["targets"], key=lambda row: (-row["weight"], row["symbol"]))
    shown = rows if len(rows) <= 2 * MAX_SHOWN else [*rows[:MAX_SHOWN], *rows[-MAX_SHOWN:]]
    for row in shown:
        bounds = f"{percent(row['low'], 2)} to {percent(row['high'], 2)}"
        decided = row["decision"] + (f": {row['reasons'].replace('_', ' ')}" if row["reasons"] else "")
        table.add_row(Text(mask_unprintable(row["symbol"])), percent(row["weight"], 2), bounds, decided)
    stdout_console().print(table)
    if len(shown) < len(rows):
        print_plain(f"and {count(len(rows) - len(shown))} between them; --out FILE writes all")
    room = "" if facts["scale"] == 1 else f"; the policy has room for {number(100 * facts['scale'], 1)} % of the book"
    print_plain(f"{plural(facts['approved'], 'target')} approved, {count(facts['refused'])} refused{room}.")
    print_plain(f"Decision {facts['decision'][:16]} under policy {facts['policy'][:16]}.")
    for note in facts["policy_notes"]:
        print_plain(note)
    if out is not None:
        print_plain(f"Written: {out}")
