"""The options that several commands share."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "AsOf",
    "By",
    "CampaignFile",
    "Ceiling",
    "DialectOption",
    "Executor",
    "FieldsOption",
    "FormulaFile",
    "GroupsOption",
    "LedgerAddress",
    "Overrides",
    "PanelFile",
    "RunName",
    "SandboxBackend",
    "SectorsFile",
    "Seed",
    "Workspace",
    "check_campaign_file",
    "check_file_exists",
]

DIALECTS = "alphaloom, worldquant, qlib, alphaagent, alphagen or factorminer"


def check_file_exists(file: Path | None) -> Path | None:
    """Refuse a file of prices or sectors that is missing, before a command imports what takes seconds to load."""
    if file is not None and not file.exists():
        from ...market import refuse_missing

        refuse_missing(file)
    return file


def check_campaign_file(file: Path | None) -> Path | None:
    """Refuse a campaign file that is missing or no YAML, before a command imports what takes seconds to load."""
    if file is not None:
        from ...ledger.files import read_text

        read_text(file)
    return file


PanelFile = Annotated[
    Path | None,
    typer.Option(
        "--panel",
        callback=check_file_exists,
        help="Prices, Parquet or CSV: date, symbol, open, high, low, close, volume.",
    ),
]
SectorsFile = Annotated[
    Path | None,
    typer.Option(
        "--sectors", callback=check_file_exists,
        help='Sectors, Parquet or CSV: symbol, sector; a symbol without a row is in the group "unknown".',
    ),
]  # fmt: skip
AsOf = Annotated[
    datetime | None,
    typer.Option(
        "--as-of",
        formats=["%Y-%m-%d"],
        help="The last day that may be known; a later row is an error. The panel's last by default.",
    ),
]
Ceiling = Annotated[
    datetime | None,
    typer.Option(
        "--as-of",
        formats=["%Y-%m-%d"],
        help="The last day that anybody may know: what came later is cut off, and prices are adjusted as then.",
    ),
]
CampaignFile = Annotated[
    Path | None,
    typer.Option(
        "--campaign",
        metavar="FILE",
        callback=check_campaign_file,
        help="Data, windows, costs and budget as in this campaign file.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="The seed of everything random.")]
Workspace = Annotated[
    Path | None, typer.Option("--workspace", help="The folder that holds runs and their record; .alphaloom by default.")
]
LedgerAddress = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="ADDRESS",
        help="A new workspace keeps its record in PostgreSQL: postgresql://USER@HOST/DATABASE, no password in it.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting, e.g. budget.evaluations=2000. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does it; your login name by default.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, or latest.")]
DialectOption = Annotated[str, typer.Option("--dialect", metavar="NAME", help=f"The formula's language: {DIALECTS}.")]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="local|ray",
        help="Where Python factors run: here, or on Ray (the package ray).",
    ),
]
SandboxBackend = Annotated[
    str | None,
    typer.Option("--sandbox-backend", metavar="NAME", help="Their wall: native, bubblewrap, container or gvisor."),
]
FormulaFile = Annotated[
    str | None,
    typer.Option(
        "--file", metavar="FILE", help="One formula a line, perhaps 'name: formula'; # begins a comment; - is stdin."
    ),
]
FieldsOption = Annotated[
    str | None, typer.Option("--fields", metavar="NAME,...", help="Further columns of your panel that may be read.")
]
GroupsOption = Annotated[
    str | None, typer.Option("--groups", metavar="NAME,...", help="Further groupings of your panel, beside sector.")
]
