"""Options, data and arguments that several commands share, and the name of the person who acts."""

from __future__ import annotations

import getpass
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..errors import DeskError
from ..facts.standing import DEFAULT_WORKSPACE
from ..figures import count

DIALECTS = "alphaloom, worldquant, qlib, alphaagent, alphagen or factorminer"


def check_file_exists(file: Path | None) -> Path | None:
    """Refuse a missing file of prices or sectors before a command imports modules that take seconds to load."""
    if file is not None and not file.exists():
        from ...market import refuse_missing

        refuse_missing(file)
    return file


def refuse_existing(file: Path, *, force: bool) -> None:
    """Refuse to write over a file unless it is forced."""
    if file.exists() and not force:
        raise DeskError(
            f"{file} is there already.",
            field="FILE",
            got=str(file),
            hint="Add --force to write over it.",
            code="file_exists",
            exit_code=1,
        )


def check_campaign_file(file: Path | None) -> Path | None:
    """Refuse a campaign file that is missing or not YAML before a command imports modules that take seconds to load."""
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
        "--sectors",
        callback=check_file_exists,
        help='Sectors, Parquet or CSV: symbol, sector; a symbol without a row is in the group "unknown".',
    ),
]
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
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Who does it; by default the name that you gave the desk, or your login name."
    ),
]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its folder, or latest.")]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="PATH", help="Also write one self-contained page: tables, plots, no script."),
]
DialectOption = Annotated[str, typer.Option("--dialect", metavar="NAME", help=f"The formula's language: {DIALECTS}.")]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="local|ray",
        help="Where Python factors run and formulas are scored: here, or on Ray (the package ray).",
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


@dataclass(frozen=True)
class DataOptions:
    """The campaign file, the data that replace the file's, the workspace, and the sandbox's executor and backend."""

    campaign: Path | None = None
    panel: Path | None = None
    sectors: Path | None = None
    as_of: date | None = None
    workspace: Path | None = None
    executor: str | None = None
    backend: str | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `market` for the files beside the prices and how the tables are written, over those of the file."""


def data_line(data: Mapping[str, Any]) -> str:
    """Return one line about the prices that were used; synthetic ones are named as such."""
    span = f"{count(data['days'])} days x {count(data['symbols'])} symbols, {data['first_day']} to {data['last_day']}"
    if data["synthetic"]:
        return f"data: SYNTHETIC market, seed {data['seed']}, {span}; for your own prices add --panel FILE"
    return f"data: {data['file']}, {span}"


OPTION_PATTERN = re.compile(r"--[a-z][a-z-]*(=.*)?")
"""Words that can only be options; ``--close + 1`` is a formula."""


class FormulaCommand(TyperCommand):
    """A command that reads ``-rank(high)`` as a formula, not as options -r, -a, ... and -h."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move formulas behind ``--``, after which nothing is read as an option."""
        options, formulas = self._separate(ctx, args)
        return super().parse_args(ctx, [*options, "--", *formulas])

    def _separate(self, ctx: Any, args: list[str]) -> tuple[list[str], list[str]]:
        """Return options with their values, and the rest."""
        takes = {
            name: not getattr(parameter, "is_flag", False)
            for parameter in self.get_params(ctx)
            for name in parameter.opts
        }
        takes |= dict.fromkeys(self.get_help_option_names(ctx), False)
        options: list[str] = []
        formulas: list[str] = []
        remaining = iter(args)
        for arg in remaining:
            if arg == "--":
                formulas += remaining
            elif arg in takes and arg.startswith("-"):
                options += [arg, *([value] if takes[arg] and (value := next(remaining, None)) is not None else [])]
            else:
                (options if OPTION_PATTERN.fullmatch(arg) else formulas).append(arg)
        return options, formulas


MAX_NAME_CHARS = 100


PASSWORD_FILE_VARIABLE = "ALPHALOOM_PASSWORD_FILE"
SECOND_PASSWORD_FILE_VARIABLE = "ALPHALOOM_SECOND_PASSWORD_FILE"
"""Variables that name a file with the password of --by, and of --second, where no terminal can ask for it."""


def signer_name(
    requested: str | None,
    workspace: Path | None,
    scope: str | None = None,
    *,
    field: str = "--by",
    variable: str = PASSWORD_FILE_VARIABLE,
) -> str:
    """Return the requested name, or the login name; with its account where a name was given to the desk.

    Where the workspace has users, it must be one of them: the password is read from the file that a variable names, or
    asked for on the terminal. A password, not a token, so that a person has one secret for the browser and for
    commands; a script has a user of its own, with few scopes.

    Raises
    ------
    DeskError
        Neither name exists, or it is too long or not printable; or the user or the password is unknown, or the user
        lacks the scope.
    """
    from ...ledger import find_account
    from ..users import GivenNames, Users

    place = workspace or DEFAULT_WORKSPACE
    name = (requested if requested is not None else find_account()).strip()
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise DeskError(
            "Nobody would stand for this.",
            field=field,
            got=name[:MAX_NAME_CHARS],
            allowed=f"a name of 1 to {MAX_NAME_CHARS} characters",
            hint=f"Give your name: {field} NAME.",
            code="no_name",
        )
    users = Users(place)
    if not users.all():
        return GivenNames(place).sign(name)
    # No limit of tries: whoever runs this command can read the file of hashes too, and its cost is what slows them.
    user = users.admit(name, _read_password(name, variable))
    if user is None:
        hint = "Give the name of a user: --by NAME. alphaloom desk user list names them."
        raise DeskError(
            "There is no user of this name and password.", field=field, got=name, hint=hint, code="not_admitted",
            exit_code=1,
        )  # fmt: skip  # a table
    if scope is not None:
        user.as_signer().check(scope)
    return name


def signed_reason(reason: str, by: str | None, workspace: Path | None, scope: str) -> str:
    """Return a reason with the name of the person who gives it; without one where nobody is named and none need be."""
    from ..users import Users

    if by is None and not Users(workspace or DEFAULT_WORKSPACE).all():
        return reason
    return f"{reason.strip()} ({signer_name(by, workspace, scope)})"


def _read_password(name: str, variable: str) -> str:
    """Return the password of a user, from the file that a variable names, or typed on the terminal."""
    place = os.environ.get(variable)
    if place:
        return read_password_file(Path(place))
    if not sys.stdin.isatty():
        raise DeskError(
            f"This workspace has users, and nobody can be asked for the password of {name}.",
            field="password",
            hint=f"Run it on a terminal, or name a file that only you can read: {variable}=FILE.",
            code="not_admitted",
            exit_code=1,
        )
    return getpass.getpass(f"Password of {name}: ")


def read_password_file(file: Path) -> str:
    """Return the first line of a file that no other account may read.

    Raises
    ------
    DeskError
        It cannot be read, or others may read it.
    """
    from ...ledger.files import open_given
    from ...mcp_servers.access import find_exposure

    try:
        with open_given(file) as opened:
            wrong = [str(mistake) for mistake in find_exposure(os.fstat(opened.fileno()))]
            line = opened.readline(4 * MAX_NAME_CHARS * 10).decode()
    except (OSError, UnicodeDecodeError) as error:
        wrong = [f"cannot read it: {error}"]
    if wrong:
        raise DeskError(f"The file of the password: {'; '.join(wrong)}", field=str(file), code="password")
    return line.rstrip("\r\n")
